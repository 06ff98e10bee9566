"""What a text of a given length costs: compute time and memory (USE paper, Figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.footprint.measure import measure_footprint as measure_footprint
    from use_st5.footprint.record import FootprintRecord as FootprintRecord

__getattr__, __dir__, __all__ = public_names(__name__)
