"""Whole T5s, with the decoder's logits, read from checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.weights import Target, assign_weights, check_shapes
from use_st5.models.t5.checkpoint import _left_out, open_t5, read_sentence_t5
from use_st5.models.t5.model import T5


def read_t5(checkpoint: Checkpoint) -> T5:
    """A T5 with the weights of a checkpoint."""
    names, config, source = open_t5(checkpoint)
    expected = names.shapes(config, source, decoder=True)
    transposed = "logits" in names.transposed
    if not config.tied_softmax:
        shape = (config.hidden_dim, config.vocabulary_size)
        expected[names.logits] = shape[::-1] if transposed else shape
    check_shapes(expected, source, left_out=_left_out(names, decoder=True))
    model = T5(config)
    model.build()
    mapping = names.targets(model)
    if model.logits is not None:
        mapping[names.logits] = Target(model.logits.kernel, transposed=transposed)
    assign_weights(mapping, source)
    return model


def encoder_outputs(checkpoint: Checkpoint, ids: Any) -> np.ndarray:
    """The outputs of a checkpoint's encoder for ids, float32 `[batch, length, dim]`."""
    model = read_sentence_t5(checkpoint)
    return np.asarray(model.encoder(model.embedding(ids), tokens=np.not_equal(ids, 0)))
