"""A new family works in the whole library after one registration."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.models import toy_family
from tests.models.family_contract import check_adapters
from use_st5.convert.checkpoint import Checkpoint
from use_st5.layers.saved_model_layer import SavedModelLayer
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.models.family import (
    families,
    family_for,
    family_named,
    family_of,
    family_with,
    register,
)
from use_st5.tokenizers.tokenizer import Tokenizer
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.array_data import ArrayData
from use_st5.training.task import Task
from use_st5.training.tensorflow_loop import TensorFlowLoop

TEXTS = ["How old are you?", "", "What is your age?", "naïve café 😀"]
PRESET = "toy_trigrams_small"


@pytest.fixture(scope="module")
def trained() -> TrainableEncoder:
    """A toy after two steps of training on pairs."""
    keras.utils.set_random_seed(0)
    encoder = TrainableEncoder.fresh(PRESET, max_length=30)
    before = encoder.encode(TEXTS)
    anchors = encoder.tokenizer.token_ids(["a cat", "two dogs", "the sea", "old men"] * 2, 12)
    positives = encoder.tokenizer.token_ids(["cats", "a dog", "seas", "a man"] * 2, 12)
    data = ArrayData({"anchor": anchors.numpy(), "positive": positives.numpy()})
    task = Task("pairs", ContrastiveLoss(temperature=0.1), data, batch_size=4)
    options = {"steps_per_execution": 1, "jit_compile": False}
    TensorFlowLoop(encoder, [task], keras.optimizers.Adam(0.05), **options).run(2)
    assert np.abs(encoder.encode(TEXTS) - before).max() > 1e-3
    return encoder


@pytest.mark.parametrize("precision", toy_family.FAMILY.precisions)
def test_trained_exported_and_loaded(
    trained: TrainableEncoder, precision: str, tmp_path: Path
) -> None:
    folder = tmp_path / precision
    manifest = trained.export(folder, precision=precision)
    assert (manifest.family, manifest.tokenizer) == ("toy_trigrams", "trigrams")
    vectors = use_st5.load(folder).encode(TEXTS)
    np.testing.assert_allclose(
        vectors, trained.encode(TEXTS), atol={"int8": 0.05}.get(precision, 1e-5)
    )
    hub = pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
    np.testing.assert_allclose(hub.load(str(folder))(TEXTS), vectors, atol=1e-6)
    again = TrainableEncoder.load(folder)
    np.testing.assert_allclose(again.encode(TEXTS), vectors, atol=1e-5)


def test_tuned_inside_a_keras_model_it_is_loaded_again(
    trained: TrainableEncoder, tmp_path: Path
) -> None:
    folder, tuned = tmp_path / "int8", tmp_path / "tuned"
    trained.export(folder, precision="int8")
    before = use_st5.load(folder).encode(TEXTS)
    with pytest.warns(UserWarning, match="are int8 and stay as they are"):
        layer = SavedModelLayer(folder, trainable=True)
    model = keras.Sequential([keras.Input(shape=(), dtype="string"), layer, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.05), "mse", jit_compile=False)
    model.fit(tf.constant(TEXTS), np.arange(4.0), epochs=2, verbose=0)
    layer.save(tuned)
    vectors = use_st5.load(tuned).encode(TEXTS)
    assert np.abs(vectors - before).max() > 1e-3
    np.testing.assert_allclose(TrainableEncoder.load(tuned).encode(TEXTS), vectors, atol=1e-5)


def test_adapted() -> None:
    check_adapters(TrainableEncoder.fresh(PRESET), layers=1)


@pytest.mark.end_to_end
@pytest.mark.process
def test_evaluated_and_benchmarked(
    trained: TrainableEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from use_st5.cli.main import app

    monkeypatch.chdir(tmp_path)
    trained.export("toy")
    folder = tmp_path / "data" / "stsbenchmark"
    folder.mkdir(parents=True)
    rows = [("a cat", "cats", 4.5), ("a dog", "the sea", 0.5), ("old men", "old man", 4.0)]
    text = "".join(
        f"main-news\tMSRpar\t2012test\t{number:04}\t{score}\t{first}\t{second}\n"
        for number, (first, second, score) in enumerate(rows)
    )
    for split in ("train", "dev", "test"):
        (folder / f"sts-{split}.csv").write_text(text, encoding="utf-8")
    run: Callable = CliRunner().invoke
    arguments = ["evaluate", "toy", "--data", "data", "--tasks", "stsb", "--out", "scores.json"]
    result = run(app, arguments)
    assert result.exit_code == 0, result.output
    assert "stsb" in json.loads((tmp_path / "scores.json").read_text())["tasks"]


def test_its_tokenizer_keeps_the_contract() -> None:
    assert isinstance(toy_family.TrigramTokenizer(), Tokenizer)


def test_a_checkpoint_that_no_family_reads_is_named() -> None:
    source: Any = SimpleNamespace(shapes=dict)
    where = Path("here")
    checkpoint = Checkpoint(
        where=where,
        format="Hugging Face",
        source=source,
        folder=where,
        settings={"model_type": "gpt2"},
    )
    known = "MPNet, ModernBERT, BERT, DistilBERT, RoBERTa, XLM-RoBERTa, T5, mT5 and StaticEmbedding"
    expected = f"here: found Hugging Face with model_type 'gpt2'; use_st5 reads {known}."
    with pytest.raises(ValueError, match=re.escape(expected)):
        family_for(checkpoint, None)


def test_the_list_of_families() -> None:
    assert {
        "bert",
        "modernbert",
        "mpnet",
        "static_embedding",
        "t5",
        "use_dan",
        "use_transformer",
        "toy_trigrams",
    } <= set(families())
    assert all(family.learning_rates[""] > 0 for family in families().values())
    assert family_with(PRESET) is family_named("toy_trigrams") is toy_family.FAMILY
    with pytest.raises(TypeError, match="known family .*received a Sequential"):
        family_of(keras.Sequential())
    with pytest.raises(ValueError, match="Expected one of the families"):
        family_named("none")

    class Another(toy_family.TrigramFamily):
        name = "t5"

    with pytest.raises(ValueError, match="'t5' is taken"):
        register(Another())
