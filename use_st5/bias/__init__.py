"""Bias tests of published papers: WEAT and SEAT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.bias.weat import WEATResult as WEATResult
    from use_st5.bias.weat import WEATTest as WEATTest
    from use_st5.bias.weat import read_weat as read_weat
    from use_st5.bias.weat import run_weat as run_weat
    from use_st5.bias.weat import weat_tests as weat_tests

__getattr__, __dir__, __all__ = public_names(__name__)
