"""Names and shapes of a T5's weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
import pytest

from use_st5.convert.weights import WeightSource
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.t5.checkpoint import (
    HUGGING_FACE,
    MESH_TENSORFLOW,
    MODEL_GARDEN,
    T5X,
    T5Names,
)
from use_st5.models.t5.model import T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5


class Shapes(WeightSource):
    """A source of tensors with these names, which cannot be read."""

    where = "here"

    def __init__(self, names: Iterable[str]) -> None:
        self._shapes = dict.fromkeys(names, (1,))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return self._shapes

    def read(self, name: str) -> np.ndarray:
        raise AssertionError(f"{name} is read")


FORMATS = [HUGGING_FACE, MESH_TENSORFLOW, MODEL_GARDEN, T5X]

# All widths are different, so that no two of them can be confused.
GATED = T5Config(
    40, 3, 16, 24, 5, key_value_dim=7, activation="gated_gelu", tied_softmax=False,
    scaled_softmax=False, num_decoder_layers=2, num_buckets=12,
)  # fmt: skip
RELU = dataclasses.replace(GATED, activation="relu", tied_softmax=True, scaled_softmax=True)


@pytest.mark.parametrize("config", [GATED, RELU])
@pytest.mark.parametrize("names", FORMATS)
def test_the_shapes_give_the_configuration_back(names: T5Names, config: T5Config) -> None:
    for pooling in ("decoder", "mean"):
        with without_initial_values():
            model = SentenceT5(config, pooling=pooling, projection_dim=None)
            model.build()
        mapping = names.targets(model)
        shapes = {name: target.stored_shape() for name, target in mapping.items()}
        assert names.shapes(config, Shapes(mapping), decoder=pooling == "decoder") == shapes
        assert len({id(target.variable) for target in mapping.values()}) == len(model.weights)
        expected = config
        if pooling == "mean":  # no weight is left that shows the output layer
            expected = dataclasses.replace(
                config, num_decoder_layers=None, tied_softmax=True, scaled_softmax=True
            )
        elif not config.tied_softmax:
            shapes[names.logits] = (config.hidden_dim, config.vocabulary_size)
        assert names.config(shapes, where="here") == expected


def test_what_is_no_t5() -> None:
    with pytest.raises(ValueError, match="here: expected the matrices of a T5: token_e"):
        T5X.config({"bert/kernel": (2, 2)}, where="here")
    shapes = {
        "token_embedder/embedding": (9, 4),
        "encoder/relpos_bias/rel_embedding": (3, 32),
        "encoder/layers_0/attention/query/kernel": (4, 8),
        "encoder/layers_0/mlp/wi/kernel": (4, 8),
    }
    with pytest.raises(ValueError, match="a multiple of 3 heads, found 8"):
        T5X.config(shapes, where="here")
