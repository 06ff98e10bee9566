"""An encoder out of a foreign checkpoint, by the family that knows it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from use_st5.convert.checkpoint import Checkpoint
from use_st5.models.t5 import checkpoints as t5
from use_st5.trainable_encoder import TrainableEncoder

_MAX_LENGTH = 256
_FAMILIES = {"t5": t5}


def load_checkpoint(
    checkpoint: Checkpoint,
    *,
    pooling: str | None = None,
    vocabulary: str | os.PathLike[str] | None = None,
    dtype: Any = None,
    max_length: int | None = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> TrainableEncoder:
    """The encoder of a checkpoint.

    Args:
        checkpoint: Opened.
        pooling: Where the checkpoint does not say it; None: the family's usual one.
        vocabulary: File of the vocabulary, where it is not beside the checkpoint.
        dtype: Keras dtype policy.
        max_length: Tokens beyond this number are cut; None: 256.
        on_tensor: Called with the name of each tensor that is in place.

    Raises:
        ValueError: No family knows it, or tensors, settings or vocabulary do not fit.
    """
    for family in _FAMILIES.values():
        if family.knows(checkpoint):
            model, vectorizer = family.read(
                checkpoint,
                pooling=pooling,
                vocabulary=None if vocabulary is None else Path(vocabulary),
                dtype=dtype,
                on_tensor=on_tensor,
            )
            return TrainableEncoder(model, vectorizer, max_length=max_length or _MAX_LENGTH)
    raise ValueError(
        f"{checkpoint.where}: expected the encoder of a known family ({', '.join(_FAMILIES)}), "
        f"found a checkpoint of {checkpoint.summary()}."
    )
