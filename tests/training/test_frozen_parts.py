from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from tests.training import toy
from use_st5.models.bert.model import BertConfig, SentenceBert
from use_st5.models.t5.model import T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.training.tensorflow_step import TensorFlowLoop
from use_st5.training.trainer import frozen_parts


class Naming(toy.ToyEncoder):
    """The toy with the attributes of a family's model, and a dense layer as its head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = self.table
        self.head = keras.Sequential([keras.layers.Dense(toy.DIMENSION)])
        self.head.build((None, toy.DIMENSION))

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.head(super().call(ids, training=training))


def moved(parts: tuple[str, ...]) -> set[str]:
    """The names of the parts that a training step changes."""
    keras.utils.set_random_seed(0)
    model = Naming()
    groups = {"embedding": model.table, "encoder": model.dense, "head": model.head}
    before = {name: each.get_weights() for name, each in groups.items()}
    with frozen_parts(model, parts):
        tasks = toy.tasks(only=("nli",))
        toy.loop(TensorFlowLoop, model, tasks, keras.optimizers.Adam(0.1)).run(1)
    assert all(variable.trainable for variable in model.weights), "as before"
    return {
        name
        for name, each in groups.items()
        if any((a != b).any() for a, b in zip(each.get_weights(), before[name], strict=True))
    }


def test_what_is_frozen_stays_and_the_rest_learns() -> None:
    assert moved(()) == {"embedding", "encoder", "head"}
    assert moved(("embedding", "head")) == {"encoder"}
    assert moved(("encoder",)) == {"embedding", "head"}


def test_what_was_frozen_before_stays_so() -> None:
    model = Naming()
    model.dense.bias.trainable = False
    with pytest.raises(RuntimeError, match="killed"), frozen_parts(model, ["encoder", "head"]):
        assert [v.path for v in model.trainable_variables] == [model.table.embeddings.path]
        raise RuntimeError("killed")
    assert len(model.trainable_variables) == 4
    assert not model.dense.bias.trainable


def test_families_name_their_parts_alike() -> None:
    model = SentenceT5(T5Config(32, 1, 8, 16, 1, 8))
    model.build()
    with frozen_parts(model, ["embedding"]):
        frozen = [v for v in model.weights if not v.trainable]
        assert [np.shape(v) for v in frozen] == [(32, 8)]
    for part in ("head", "tail"):
        with pytest.raises(ValueError, match=rf"'encoder'\], received '{part}'"):
            frozen_parts(model, [part]).__enter__()


def test_all_embeddings_are_those_that_transformers_calls_so() -> None:
    config = BertConfig(
        vocabulary_size=20, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16,
        max_positions=6, separator_id=3,
    )  # fmt: skip
    model = SentenceBert(config, head=True)
    model.build()
    with frozen_parts(model, ["all_embeddings"]):
        frozen = [v for v in model.weights if not v.trainable]
    assert [np.shape(v) for v in frozen] == [(20, 8), (6, 8), (2, 8), (8,), (8,)]
    t5 = SentenceT5(T5Config(32, 1, 8, 16, 1, 8))
    t5.build()
    with frozen_parts(t5, ["all_embeddings"]):
        assert [np.shape(v) for v in t5.weights if not v.trainable] == [(32, 8)]
