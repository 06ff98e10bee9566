"""BERT's pooler: a layer over the first token, which a cross-encoder begins with."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # It imports TensorFlow, which training under JAX does without.
    from use_st5.convert.checkpoint import Checkpoint

# Kernel and bias: in folders of transformers, with and without a task's model around the BERT, and
# in google-research/bert. RoBERTa's own classifiers do without the pooler of their checkpoint.
_NAMES = (
    ("bert.pooler.dense.weight", "bert.pooler.dense.bias"),
    ("pooler.dense.weight", "pooler.dense.bias"),
    ("bert/pooler/dense/kernel", "bert/pooler/dense/bias"),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Pooler:
    """`tanh(x·kernel + bias)` of the first token's output, as pre-training left it.

    It is no part of a sentence vector: a model carries it along and neither trains nor exports it.

    Attributes:
        kernel: float32 `[hidden_dim, hidden_dim]`.
        bias: float32 `[hidden_dim]`.
    """

    kernel: Any
    bias: Any


def read_pooler(checkpoint: Checkpoint, hidden_dim: int) -> Pooler | None:
    """The pooler of a BERT's checkpoint; None where it has none, and of a RoBERTa.

    Raises:
        ValueError: It is of another width than the model.
    """
    shapes = checkpoint.source.shapes()
    there = [pair for pair in _NAMES if shapes.keys() >= {*pair}]
    if checkpoint.settings.get("model_type") != "bert" or not there:
        return None
    kernel, bias = there[0]
    for name, expected in ((kernel, (hidden_dim, hidden_dim)), (bias, (hidden_dim,))):
        if shapes[name] != expected:
            raise ValueError(
                f"{checkpoint.source.where}: {name}: expected the shape {[*expected]}, found "
                f"{[*shapes[name]]}."
            )
    found = [np.asarray(checkpoint.source.read(name), np.float32) for name in (kernel, bias)]
    return Pooler(found[0].T if kernel.endswith(".weight") else found[0], found[1])
