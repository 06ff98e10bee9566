"""Reads checkpoints of several formats as named arrays; no code of a checkpoint is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.convert.checkpoint import Checkpoint as Checkpoint
    from use_st5.convert.checkpoint import open_checkpoint as open_checkpoint

__getattr__, __dir__, __all__ = public_names(__name__)
