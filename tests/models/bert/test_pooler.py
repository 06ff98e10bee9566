"""The pooler is read where a BERT's checkpoint has one, and goes with the model's copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.recipes.tiny_bert import write_tiny_bert
from use_st5.convert.checkpoint import Checkpoint, open_checkpoint
from use_st5.convert.weight_source import WeightSource
from use_st5.models.bert.pooler import read_pooler
from use_st5.models.bert.sentence_bert import SentenceBert
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.model_loading import copy_of

KERNEL, BIAS = np.arange(9, dtype=np.float32).reshape(3, 3), np.ones(3, np.float32)


class Stored(WeightSource):
    """Tensors in memory."""

    where = "some_bert"

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self.tensors = tensors

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: each.shape for name, each in self.tensors.items()}

    def read(self, name: str) -> np.ndarray:
        return self.tensors[name]


def checkpoint(tensors: dict[str, np.ndarray], model_type: str = "bert") -> Checkpoint:
    return Checkpoint(
        where=Path("some_bert"),
        format="Hugging Face",
        source=Stored(tensors),
        settings={"model_type": model_type},
    )


@pytest.mark.parametrize(
    ("tensors", "kernel"),
    [
        ({"pooler.dense.weight": KERNEL, "pooler.dense.bias": BIAS}, KERNEL.T),
        ({"bert.pooler.dense.weight": KERNEL, "bert.pooler.dense.bias": BIAS}, KERNEL.T),
        ({"bert/pooler/dense/kernel": KERNEL, "bert/pooler/dense/bias": BIAS}, KERNEL),
        ({"pooler.dense.weight": KERNEL.astype(np.float16), "pooler.dense.bias": BIAS}, KERNEL.T),
    ],
)
def test_it_is_read_by_all_its_names(tensors: dict[str, np.ndarray], kernel: np.ndarray) -> None:
    pooler = read_pooler(checkpoint(tensors), 3)
    assert pooler is not None
    np.testing.assert_array_equal(pooler.kernel, kernel)
    np.testing.assert_array_equal(pooler.bias, BIAS)
    assert pooler.kernel.dtype == np.float32


def test_where_there_is_none_and_of_a_roberta_there_is_none() -> None:
    tensors = {"pooler.dense.weight": KERNEL, "pooler.dense.bias": BIAS}
    assert read_pooler(checkpoint({}), 3) is None
    # RobertaForSequenceClassification draws its layer anew.
    assert read_pooler(checkpoint(tensors, "roberta"), 3) is None


def test_one_of_another_width_is_refused() -> None:
    tensors = {"pooler.dense.weight": KERNEL, "pooler.dense.bias": BIAS}
    with pytest.raises(
        ValueError, match=r"pooler.dense.weight: expected the shape \[4, 4\], found"
    ):
        read_pooler(checkpoint(tensors), 4)


def test_a_model_carries_it_and_its_copies_do(tmp_path: Path) -> None:
    folder = write_tiny_bert(tmp_path / "bert", head=False, pooler=True)
    stored = load_file(folder / "model.safetensors")
    model = TrainableEncoder.of_checkpoint(open_checkpoint(folder)).model
    for each in (model, model.pooled("cls"), copy_of(model), copy_of(model, dropout=0.3)):
        np.testing.assert_array_equal(each.pooler.kernel, stored["pooler.dense.weight"].T)
        np.testing.assert_array_equal(each.pooler.bias, stored["pooler.dense.bias"])
    bare = SentenceBert(model.config)
    bare.build()
    assert bare.pooler is None
    assert len(bare.weights) == len(model.weights), "it is no weight of the model"
