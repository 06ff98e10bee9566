"""A USE-DAN in NumPy, compared with its SavedModel."""

from __future__ import annotations

import json
import random
import shutil
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.engines.fuzzed import check_same_ids, every_code_point, fuzzed_texts, ngram_vocabulary
from tests.tokenizers.real_sentences import real_sentences
from tests.toy_encoders import Toy
from use_st5.encode.encoder import SentenceEncoder
from use_st5.engines import dan, word_ids
from use_st5.engines.ptb_tokens import is_letter, normal, parts, pieces, tokens_of
from use_st5.engines.word_ids import NGramIds, fingerprint64
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer

TEXTS = ["How old are you?", "", " ", "the cat", "The cat sat on the mat. " * 300, "ﷺ naïve “q”"]


def test_vectors_are_those_of_the_saved_model(toy_use_dan: Toy) -> None:
    for folder in toy_use_dan.folders.values():
        expected = SentenceEncoder(folder).encode([*TEXTS, *fuzzed_texts(500)])
        found = SentenceEncoder(folder, backend="onnx").encode([*TEXTS, *fuzzed_texts(500)])
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_vectors_of_the_bundled_model() -> None:
    texts = [*TEXTS, *fuzzed_texts(500)]
    expected = use_st5.load("use_dan_en").encode(texts)
    found = use_st5.load("use_dan_en", backend="onnx").encode(texts)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_that_was_saved_again(toy_use_dan: Toy, tmp_path: Path) -> None:
    encoder = SentenceEncoder(toy_use_dan.folders["int8"])
    encoder.save(tmp_path / "again")
    found = SentenceEncoder(tmp_path / "again", backend="onnx").encode(TEXTS)
    np.testing.assert_allclose(found, encoder.encode(TEXTS), atol=1e-5)


def test_long_texts_are_read_in_pieces(toy_use_dan: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SentenceEncoder(toy_use_dan.folders["int8"], backend="onnx")
    expected = encoder.encode(TEXTS)
    monkeypatch.setattr(dan, "_LONG", 10)
    monkeypatch.setattr(dan, "_ROWS", 3)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)
    monkeypatch.setattr(dan, "_LONG", 10**9)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)


@pytest.mark.parametrize("hidden", [[], [12], [12, 16, 16], [16, 12]])
def test_wrong_hidden_dims_are_refused(toy_use_dan: Toy, tmp_path: Path, hidden: list[int]) -> None:
    folder = shutil.copytree(toy_use_dan.folders["int8"], tmp_path / "model")
    record = folder / "use_st5.json"
    facts = json.loads(record.read_text("utf-8"))
    assert facts["config"]["config"]["hidden_dims"] != hidden
    facts["config"]["config"]["hidden_dims"] = hidden
    record.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(ValueError, match="hidden_dims, not two|do not belong together"):
        SentenceEncoder(folder, backend="onnx")


def test_an_unknown_activation_is_refused(toy_use_dan: Toy, tmp_path: Path) -> None:
    folder = shutil.copytree(toy_use_dan.folders["int8"], tmp_path / "model")
    record = folder / "use_st5.json"
    record.write_text(record.read_text("utf-8").replace('"tanh"', '"swish"'), encoding="utf-8")
    with pytest.raises(ValueError, match="no engine has the activation 'swish'"):
        SentenceEncoder(folder, backend="onnx")


def tokens(text: str) -> list[str]:
    return [*chain.from_iterable(map(tokens_of, parts(normal(text))))]


def check_tokens(texts: list[str]) -> None:
    expected = PTBTokenizer()(tf.constant(texts)).to_list()
    for text, each in zip(texts, expected, strict=True):
        assert tokens(text) == [token.decode() for token in each], repr(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They'll save.", ["they", "'ll", "save", "."]),
        ('"I cannot," he said.', ["``", "i", "can", "not", ",", "''", "he", "said", "."]),
        ("wanna 'tis wanna  'tis", ["wan", "na", "'tis", "wan", "na", "'t", "is"]),
        ("''a ''b", ["''", "a", "``", "b"]),
        ("e.g. this.", ["e.g.", "this", "."]),
        ("", []),
        (" \t\u3000", []),
    ],
)
def test_examples(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected
    check_tokens([text])


def test_fuzzed_texts() -> None:
    check_tokens(fuzzed_texts(4000))


@pytest.mark.end_to_end
@pytest.mark.parametrize("pattern", ["{}", "a{}b", "x '{}."])
def test_every_code_point(pattern: str) -> None:
    check_tokens(every_code_point(pattern))


def test_letters_are_those_of_the_graph() -> None:
    every = every_code_point("{}")
    expected = tf.strings.regex_full_match(every, r"[\pL\pM\pN]").numpy().tolist()
    assert [*map(is_letter, every)] == expected


def test_real_sentences(data_dir: Path) -> None:
    check_tokens(real_sentences(data_dir, 20_000))


def test_pieces_have_the_tokens_of_the_whole() -> None:
    text = normal("“wanna 'tis” " + " ".join(fuzzed_texts(300)) + " end.")
    found: list[str] = []
    start = 0
    for piece in pieces(text, 20):
        last = start + len(piece) == len(text)
        found += chain.from_iterable(map(tokens_of, parts(piece, first=not start, last=last)))
        start += len(piece)
    assert start == len(text)
    assert found == tokens(text)


def test_buckets_are_those_of_tensorflow_for_every_length() -> None:
    draw = random.Random(0)
    texts = [draw.randbytes(length) for length in [*range(200), 1000, 4096] for _ in range(3)]
    expected = tf.strings.to_hash_bucket_fast(texts, 2**61 - 1).numpy()
    assert [fingerprint64(text) % (2**61 - 1) for text in texts] == expected.tolist()


@pytest.fixture(scope="module", params=["words", "pieces", "buckets"])
def both(request: pytest.FixtureRequest) -> Any:
    """Our ids and the graph, for vocabularies with buckets or pieces."""
    vocabulary = ngram_vocabulary(request.param)
    text = tf.TensorSpec([None], tf.string)
    flat = tf.function(NGramTokenizer(vocabulary).flat, input_signature=[text], autograph=False)
    return NGramIds(vocabulary), flat


def test_ids_of_fuzzed_texts(both: Any) -> None:
    check_same_ids(both[0].flat, both[1], ["", *fuzzed_texts(4000), " "])


def test_bytes_that_are_no_utf_8(both: Any) -> None:
    draw = random.Random(0)
    raw = [bytes(draw.choices([*range(256), *b"aaa bbb"], k=20)) for _ in range(2000)]
    texts = [each.decode("utf-8", "replace") for each in raw]
    check_same_ids(both[0].flat, both[1], texts, raw)


def test_ids_of_real_sentences(both: Any, data_dir: Path) -> None:
    check_same_ids(both[0].flat, both[1], real_sentences(data_dir, 30_000))


def test_memory_of_words_is_bounded(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_ids, "_KEPT", 50)
    monkeypatch.setattr(word_ids, "_MOST_WORDS", 100)
    ours = NGramIds(both[0].vocabulary)
    for seed in range(3):
        texts = fuzzed_texts(400, seed)
        for start in range(0, 400, 40):
            check_same_ids(ours.flat, both[1], texts[start : start + 40])
    assert len(ours._cache) <= 50
    assert len(ours._spelled) - ours._fixed < 1000


@pytest.mark.parametrize("few", [0, 128])
def test_one_text_has_the_same_ids(both: Any, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(word_ids, "_FEW", few)
    monkeypatch.setattr(word_ids, "_PIECE", 30)
    texts = fuzzed_texts(200)
    more = (
        "how old are you",
        "",
        "\x00",
        "how antidisestablishmentarianism, of cookie-cutter 26,000",
    )
    for text in (*texts, " ".join(texts), *more):
        blocks = [*both[0].blocks(text)]
        np.testing.assert_array_equal(np.concatenate(blocks), both[0].flat([text])[0])
