"""Training on one's own data: the columns of a file say what it teaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.own_data.classifier import Classifier as Classifier
    from use_st5.own_data.columns import TASK_KINDS as TASK_KINDS
    from use_st5.own_data.settings import NAMED_SETTINGS as NAMED_SETTINGS
    from use_st5.own_data.settings import Settings as Settings
    from use_st5.own_data.training import Trained as Trained
    from use_st5.own_data.training import train as train

__getattr__, __dir__, __all__ = public_names(__name__)
