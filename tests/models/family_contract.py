"""The contract of every family of Transformers, tested on a tiny encoder of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

import use_st5
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.family import family_of
from use_st5.models.lora import apply_lora
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import TrainingArguments
from use_st5.training.trainer import Trainer

WORDS = ("the", "cat", "sat", "on", "a", "mat", "dog", "ran")
TEXTS = ["the cat sat", "", "a dog ran on the mat", "the " * 9]
_PAIRS = [{"anchor": f"{a} {b}", "positive": f"{b} {a}"} for a in WORDS[:4] for b in WORDS[4:]]
_FRESH = """
import sys
import numpy as np
import tensorflow_text
import tensorflow_hub as hub

print(np.asarray(hub.load(sys.argv[1])(sys.argv[2:])).tolist())
"""


class FamilyContract:
    """The tests of a family, for a subclass in a module that has a fixture `encoder`.

    Attributes:
        name: The name of the family.
        adapted: The number of layers of the encoder that get an adapter.
    """

    name: str
    adapted: int

    def test_it_is_adapted(self, encoder: TrainableEncoder) -> None:
        check_adapters(encoder, layers=self.adapted)

    @pytest.mark.end_to_end
    def test_it_is_trained(self, encoder: TrainableEncoder) -> None:
        check_training(encoder)

    @pytest.mark.parametrize(
        "precision", ["int8", pytest.param("float32", marks=pytest.mark.end_to_end)]
    )
    def test_it_is_exported(
        self, encoder: TrainableEncoder, precision: str, tmp_path: Path
    ) -> None:
        assert family_of(encoder.model).name == self.name
        check_export(encoder, precision, tmp_path / precision)

    @pytest.mark.end_to_end
    def test_it_compares_pairs(self, encoder: TrainableEncoder, tmp_path: Path) -> None:
        check_cross_encoder(encoder, tmp_path / "judge")

    @pytest.mark.end_to_end
    @pytest.mark.process
    def test_a_fresh_process_loads_it(
        self, encoder: TrainableEncoder, tmp_path: Path, fresh_python: Callable[..., str]
    ) -> None:
        pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
        check_fresh_process(encoder, tmp_path / "model", fresh_python)


def check_training(encoder: TrainableEncoder) -> None:
    """Two steps with GradCache change every part of the network and stay finite."""
    before = {each.path: np.asarray(each) for each in encoder.model.trainable_variables}
    args = TrainingArguments(
        learning_rate=0.01, batch_size=8, micro_batch_size=4, steps=2, jit_compile=False
    )
    Trainer(encoder, {"pairs": (_PAIRS, ContrastiveLoss())}, args, progress=False).train()
    for each in encoder.model.trainable_variables:
        assert np.isfinite(each).all(), each.path
        assert np.abs(np.asarray(each) - before[each.path]).max() > 0, each.path


def check_adapters(encoder: TrainableEncoder, layers: int) -> None:
    """New adapters change no vector; changed ones do, and merging them keeps the vectors."""
    before = encoder.encode(TEXTS)
    adapters = apply_lora(encoder.model, targets="all_linear", rank=2)
    assert len(adapters.layers) == layers
    np.testing.assert_allclose(encoder.encode(TEXTS), before, atol=1e-6)
    for tensor in adapters.tensors.values():
        tensor.assign(tensor + 0.1)
    adapted = encoder.encode(TEXTS)
    assert np.abs(adapted - before).max() > 1e-3
    adapters.merge()
    np.testing.assert_allclose(encoder.encode(TEXTS), adapted, atol=1e-5)


def check_export(encoder: TrainableEncoder, precision: str, folder: Path) -> None:
    """The SavedModel has the model's vectors, and the model can be loaded from it again."""
    vectors = encoder.encode(TEXTS)
    manifest = encoder.export(folder, precision=precision)
    assert manifest.family == family_of(encoder.model).name
    exported = use_st5.load(folder).encode(TEXTS)
    scale = np.abs(vectors).max()
    atol = {"float32": 1e-5, "int8": 0.05 * scale}[precision]
    np.testing.assert_allclose(exported, vectors, atol=atol)
    again = TrainableEncoder.load(folder)
    assert type(again.model) is type(encoder.model)
    np.testing.assert_allclose(again.encode(TEXTS), exported, atol=1e-5)


def check_fresh_process(
    encoder: TrainableEncoder, folder: Path, fresh_python: Callable[..., str]
) -> None:
    """A process that imports only TensorFlow's libraries gets the same vectors."""
    encoder.export(folder)
    found = json.loads(fresh_python("-c", _FRESH, folder, *TEXTS).splitlines()[-1])
    np.testing.assert_allclose(found, encoder.encode(TEXTS), atol=1e-5)


def check_cross_encoder(encoder: TrainableEncoder, folder: Path) -> None:
    """A cross-encoder made from it scores pairs, also after its export."""
    keras.utils.set_random_seed(0)
    below = family_of(encoder.model).pair_model(encoder.model)
    assert below is not None
    judge = TrainableEncoder(CrossEncoderModel(below), encoder.tokenizer)
    pairs = [*zip(TEXTS, TEXTS[::-1], strict=True)]
    scores = judge.encode(pairs)
    assert np.ptp(scores) > 1e-4
    judge.export(folder)
    exported = CrossEncoder.load(folder).predict(pairs)
    np.testing.assert_allclose(exported, 1 / (1 + np.exp(-scores[:, 0])), atol=1e-5)
