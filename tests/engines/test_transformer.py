"""Transformers on ONNX Runtime, compared with their SavedModels."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import use_st5
from tests.engines.fuzzed import fuzzed_texts
from tests.tokenizers.test_added_tokens import write
from tests.tokenizers.test_framed_sentencepiece_tokenizer import whole
from tests.toy_encoders import Toy
from use_st5.convert.tokenizer_files import read_framed_model
from use_st5.encode.encoder import SentenceEncoder
from use_st5.engines import transformer
from use_st5.models import family
from use_st5.models.engines import family_engine
from use_st5.tokenizers.sentencepiece_tokenizer import FramedSentencePieceTokenizer
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")

TEXTS = [
    "How old are you?",
    "",
    " ",
    "the cat",
    "The cat sat on the mat. " * 20,
    "naïve “q”, [SEP]",
]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def check(folder: Path, texts: list[str], *, atol: float = 1e-5) -> None:
    """Checks vectors and cut texts of a model against those of its SavedModel."""
    expected, found = SentenceEncoder(folder), SentenceEncoder(folder, backend="onnx")
    how: dict[str, Any] = {"on_truncation": "ignore", "batch_size": 50}
    np.testing.assert_allclose(found.encode(texts, **how), expected.encode(texts, **how), atol=atol)
    np.testing.assert_allclose(found.encode(texts[0]), expected.encode(texts[0]), atol=atol)
    assert found.truncated(texts).tolist() == expected.truncated(texts).tolist()


def test_toys_of_both_precisions(toy: Toy) -> None:
    for folder in toy.folders.values():
        check(folder, [*TEXTS, *fuzzed_texts(300)])


def test_the_bundled_model() -> None:
    check(use_st5.load("use_transformer_en").folder, [*TEXTS, *fuzzed_texts(300)])


def test_threads_share_the_bias_of_distances() -> None:
    """Each gets the bias of its length, even if another thread runs between two lines of code."""
    table = np.arange(64, dtype=np.float32).reshape(32, 2)
    bias = transformer._PositionBias(table, 128)

    def another_thread(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is transformer._PositionBias.of_length.__code__ and event == "line":
            bias.of_length(5)
        return another_thread

    before = sys.gettrace()
    for length in (3, 5, 5, 3):
        sys.settrace(another_thread)
        try:
            found = bias.of_length(length)
        finally:
            sys.settrace(before)
        assert found.shape == (1, 2, length, length)


def test_which_families_have_an_engine() -> None:
    without = {"cross_encoder", "kerashub", "modernbert", "saved_model"}
    assert {name for name in family._OWN if family_engine(name)} == {*family._OWN} - without


def test_the_pieces_of_xlm_roberta(toy_bert: Toy, tmp_path: Path) -> None:
    from use_st5.models.bert.model import SentenceBert

    tokenizer = FramedSentencePieceTokenizer(read_framed_model(write(tmp_path, whole())))
    size = tokenizer.vocabulary.size
    config = dataclasses.replace(
        toy_bert.model.config, vocabulary_size=size, num_token_types=1, separator_id=None
    )
    model = SentenceBert(config)
    model.build()
    TrainableEncoder(model, tokenizer, name="toy").export(tmp_path / "toy")
    check(tmp_path / "toy", [*TEXTS, *fuzzed_texts(300)])


@pytest.mark.parametrize("pooling", ["cls", "max", "mean"])
@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_berts(toy_bert: Toy, tmp_path: Path, pooling: str, activation: str) -> None:
    from use_st5.models.bert.model import NormConfig, ProjectionConfig, SentenceBert

    config = dataclasses.replace(toy_bert.model.config, activation=activation, num_token_types=1)
    dense = {"cls": None, "max": ProjectionConfig(7, False, "relu")}.get(
        pooling, ProjectionConfig(7, True, "gelu")
    )
    after = (NormConfig(), ProjectionConfig(5, True, "sigmoid"), ProjectionConfig(6, False, "relu"))
    after = after if pooling == "cls" else ()
    model = SentenceBert(
        config, pooling=pooling, dense=dense, after=after, normalize=pooling == "max"
    )
    model.build()
    for variable in model.variables:
        if len(variable.shape) == 2:
            variable.assign(variable * 9)
    for precision in ("float32", "int8"):
        folder = tmp_path / precision
        TrainableEncoder(model, toy_bert.tokenizer, name="toy").export(folder, precision=precision)
        check(folder, TEXTS)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_mpnet_has_its_bias_of_distances(tmp_path: Path, precision: str) -> None:
    from use_st5.convert.tokenizer_files import MPNET_TOKENS
    from use_st5.models.mpnet.model import MPNetConfig, SentenceMPNet
    from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

    words = ["<s>", "<pad>", "</s>", "[UNK]", "the", "cat", "sat", "on", "mat", ".", "<mask>"]
    tokenizer = WordPieceTokenizer(words, special=MPNET_TOKENS)
    config = MPNetConfig(len(words), 2, 16, 32, 4, max_positions=200, relative_buckets=8)
    model = SentenceMPNet(config)
    model.build()
    for variable in model.variables:
        if len(variable.shape) == 2:
            variable.assign(variable * 9)
    folder = tmp_path / precision
    TrainableEncoder(model, tokenizer, name="toy").export(folder, precision=precision)
    check(folder, [*TEXTS, "the cat sat " * 60])


def test_other_poolings_are_refused(toy_bert: Toy, tmp_path: Path) -> None:
    from use_st5.models.bert.model import SentenceBert

    model = SentenceBert(toy_bert.model.config, pooling="lasttoken")
    model.build()
    TrainableEncoder(model, toy_bert.tokenizer, name="toy").export(tmp_path / "model")
    with pytest.raises(ValueError, match="no pooling 'lasttoken', TensorFlow has it"):
        SentenceEncoder(tmp_path / "model", backend="onnx")


@pytest.mark.parametrize("pooling", ["mean", "first"])
@pytest.mark.parametrize("activation", ["relu", "gated_gelu"])
def test_t5s(toy_t5: Toy, tmp_path: Path, pooling: str, activation: str) -> None:
    from use_st5.models.t5.sentence_t5 import SentenceT5

    config = dataclasses.replace(toy_t5.model.config, activation=activation, num_layers=2)
    projection = 24 if pooling == "mean" else None
    model = SentenceT5(config, pooling=pooling, projection_dim=projection)
    model.build()
    for precision in ("float32", "int8"):
        folder = tmp_path / precision
        encoder = TrainableEncoder(model, toy_t5.tokenizer, name="toy", max_length=160)
        encoder.export(folder, precision=precision)
        check(folder, [*TEXTS, "a b c " * 300])


def test_decoders_are_refused(toy_t5: Toy, tmp_path: Path) -> None:
    from use_st5.models.t5.sentence_t5 import SentenceT5

    model = SentenceT5(toy_t5.model.config, pooling="decoder")
    model.build()
    TrainableEncoder(model, toy_t5.tokenizer, name="toy").export(tmp_path / "model")
    with pytest.raises(ValueError, match="with a decoder runs with backend='tensorflow' alone"):
        SentenceEncoder(tmp_path / "model", backend="onnx")


def test_batches_of_any_size_give_the_same(
    toy_use_transformer: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = SentenceEncoder(toy_use_transformer.folders["int8"], backend="onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = encoder.encode(TEXTS)
        for tokens in (1, 7, 30):
            monkeypatch.setattr(transformer, "_TOKENS", tokens)
            np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)


def test_a_model_without_a_limit_reads_as_many_tokens_as_it_has_positions(
    toy_use_transformer: Toy, tmp_path: Path
) -> None:
    source = toy_use_transformer.folders["int8"]
    folder = shutil.copytree(source, tmp_path / "model")
    facts = json.loads((folder / "use_st5.json").read_text("utf-8"))
    facts["max_length"] = None
    (folder / "use_st5.json").write_text(json.dumps(facts), encoding="utf-8")
    encoder = SentenceEncoder(folder, backend="onnx")
    assert encoder.max_length == facts["config"]["config"]["max_length"]
    expected = SentenceEncoder(source).encode("a b " * 500, on_truncation="ignore")
    found = encoder.encode("a b " * 500, on_truncation="ignore")
    np.testing.assert_allclose(found, expected, atol=1e-5)
