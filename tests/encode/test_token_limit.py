"""Texts that are longer than a model reads: they are found, reported or refused."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import use_st5
from tests.toy_encoders import Toy
from use_st5.encode.encoder import SentenceEncoder
from use_st5.encode.similarity import cosine, unit_rows
from use_st5.encode.token_limit import most_tokens
from use_st5.export.saved_model import write_graph
from use_st5.models.encoder_model import checked_length
from use_st5.models.family import family_of
from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from use_st5.tokenizers.token_tokenizer import UnigramTokenizer
from use_st5.trainable_encoder import TrainableEncoder

# With a limit of four tokens, the third text and the last two are cut.
TEXTS = ["a b c d", "", "a b c d e f g", "don't a", "abcdefgh", "ü a b c d", "a, b, c"]
LONGER = [2, 5, 6]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model that reads four tokens: as exported now, and as before, without token counts."""
    vocabulary = NGramVocabulary(tuple("abcdefg"), unigram_buckets=3)
    config = USETransformerConfig(vocabulary.size, 6, 1, 8, 12, 2, dimension=8, max_length=4)
    model = USETransformer(config)
    model.build()
    graph = family_of(model).graph(
        model,
        UnigramTokenizer(vocabulary),
        precision="int8",
        max_length=checked_length(model, None),
    )
    root = tmp_path_factory.mktemp("models")
    write_graph(graph, root / "counts", name="new", metadata={})
    silent = dataclasses.replace(graph, token_counts=None)
    write_graph(silent, root / "silent", name="old", metadata={})
    return {"counts": root / "counts", "silent": root / "silent"}


@pytest.fixture(scope="module")
def encoder(folders: dict[str, Path]) -> SentenceEncoder:
    return SentenceEncoder(folders["counts"])


@pytest.fixture
def silence() -> Any:
    """Makes every warning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_one_warning_a_call_says_how_many(encoder: SentenceEncoder) -> None:
    with pytest.warns(UserWarning, match="3 of 7 texts are longer than 4 tokens; .* Pass") as said:
        vectors = encoder.encode(TEXTS, batch_size=2)
    assert len(said) == 1
    assert said[0].filename == __file__
    cut = ["a b c d", "", "a b c d", "don't a", "abcdefgh", "ü a b c", "a, b,"]
    np.testing.assert_allclose(vectors, encoder.encode(cut), atol=1e-5)
    assert np.abs(vectors[2] - encoder.encode("a b c")).max() > 1e-3
    with pytest.warns(UserWarning, match="1 of 1 texts is longer"):
        encoder.encode(TEXTS[2])


def test_silence_where_nothing_is_cut_or_none_is_to_know(
    encoder: SentenceEncoder, silence: None
) -> None:
    short = [text for index, text in enumerate(TEXTS) if index not in LONGER]
    encoder.encode(short)
    encoder.encode(short, on_truncation="error")
    encoder.encode([], on_truncation="error")
    encoder.encode(TEXTS, on_truncation="ignore")


def test_an_error_names_the_first_before_any_work(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "_run", None)
    with pytest.raises(ValueError, match="3 of 7 texts are .* the first at index 2"):
        encoder.encode(TEXTS, on_truncation="error")
    with pytest.raises(ValueError, match="Unknown on_truncation: 'raise'"):
        encoder.encode(TEXTS, on_truncation="raise")


def test_which_they_are(encoder: SentenceEncoder) -> None:
    assert encoder.truncated(TEXTS).tolist() == LONGER
    assert encoder.truncated(TEXTS[2]).tolist() == [0]
    assert encoder.truncated([]).tolist() == []
    many = encoder.truncated([TEXTS[i % 7] for i in range(10_000)])
    assert many.tolist() == [i for i in range(10_000) if i % 7 in LONGER]


def test_texts_too_short_to_be_cut_are_not_tokenized_again(folders: dict[str, Path]) -> None:
    encoder, asked = SentenceEncoder(folders["counts"]), []
    count = encoder._limit._token_counts
    encoder._limit._token_counts = lambda texts: asked.extend(texts.numpy()) or count(texts)
    assert encoder.truncated(["a", "ab", "abc", "ü"]).tolist() == []
    assert sorted(asked) == [b"abc", "ü".encode()]


def test_no_text_has_more_tokens_than_its_normalized_bytes() -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    # A ligature, a syllable, a square, a phrase in one character, an emoji, an unassigned one.
    strange = "ﬃ각㌫ﷺ😀\U0002ebef"
    texts = [f"a{c * count} {c}" for c in strange for count in range(1, 40)]
    counts = np.asarray(SentencePieceTokenizer().token_counts(texts))
    assert (counts <= [most_tokens(text) + 2 for text in texts]).all()
    assert most_tokens("naïve ﷺ") == len("nai\u0308ve ") + 1 + len("صلى الله عليه وسلم".encode())


def test_an_older_export_cannot_tell(folders: dict[str, Path], silence: None) -> None:
    encoder = SentenceEncoder(folders["silent"])
    assert encoder.max_length == 4
    assert encoder.encode(TEXTS).shape == (7, 8)
    assert encoder.truncated(TEXTS).tolist() == []
    with pytest.raises(ValueError, match="cannot count its tokens"):
        encoder.encode(TEXTS, on_truncation="error")


def test_it_still_counts_when_it_was_saved_again(encoder: SentenceEncoder, tmp_path: Path) -> None:
    encoder.save(tmp_path / "copy")
    assert SentenceEncoder(tmp_path / "copy").truncated(TEXTS).tolist() == LONGER


@pytest.mark.parametrize("prompt", ["", "a cat "])
def test_windows_hold_every_word_and_repeat_an_eighth(
    toy_use_transformer: Toy, prompt: str
) -> None:
    limit = SentenceEncoder(toy_use_transformer.folder)._limit
    room = 16 - len(prompt.split())
    counts = [*range(60), 500]
    rows, owners = limit.split([" ".join(map(str, range(count))) for count in counts], prompt)
    assert not len(limit.longer(rows))
    for index, count in enumerate(counts):
        windows = [
            [int(word) for word in row.removeprefix(prompt).split()]
            for row, owner in zip(rows, owners, strict=True)
            if owner == index
        ]
        assert {number for window in windows for number in window} == {*range(count)}
        if count > room:
            assert all(window == [*range(window[0], window[0] + room)] for window in windows)
            pairs = itertools.pairwise(windows)
            assert all(one[-1] - other[0] + 1 >= room // 8 for one, other in pairs)
            assert len(windows) == math.ceil((count - room // 8) / (room - room // 8))


def test_words_without_end_are_cut_and_a_long_prompt_is_refused(encoder: SentenceEncoder) -> None:
    for text in ("x" * 500, "ü" * 99, "don't" * 40, "a" + " \t\n" * 50 + "b c d e f"):
        rows, _ = encoder._limit.split([text], "")
        assert not len(encoder.truncated(rows))
        assert {*"".join(rows)} == {*text}
    with pytest.raises(ValueError, match="The prompt alone has 5 of 4 tokens"):
        encoder.encode(["a b c d e f"], prompt="a b c d e ", on_truncation="split")
    assert encoder.encode([], on_truncation="split").shape == (0, 8)


def test_a_long_text_gets_the_mean_of_its_windows(encoder: SentenceEncoder) -> None:
    texts = ["a b c d e f g", "a b"]
    rows, owners = encoder._limit.split(texts, "")
    assert (rows, owners.tolist()) == (["a b c d", "d e f g", "a b"], [0, 0, 1])
    one, other, short = encoder.encode(rows).astype(np.float64)
    mean = (one + other) / np.linalg.norm(one + other)
    np.testing.assert_allclose(
        encoder.encode(texts, on_truncation="split"), [mean, short], atol=1e-6
    )


def test_windows_of_documents_have_the_prompt_for_documents(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows, owners = encoder.document_windows(["a b c d e f g", "a b"])
    assert (windows, owners.tolist()) == (["a b c d", "d e f g", "a b"], [0, 0, 1])
    prompts = {"query": "q ", "passage": "p "}
    monkeypatch.setattr(SentenceEncoder, "prompts", prompts)
    for options, prompt in (({}, "p "), ({"prompt": "x "}, "x "), ({"prompt_name": "query"}, "q ")):
        windows, owners = encoder.document_windows(["a b c d e f", ""], **options)
        assert windows == [prompt + "a b c", prompt + "d e f", prompt]
        assert owners.tolist() == [0, 0, 1]


def need_onnx() -> None:
    """Skips a test without the extra."""
    for module in ("onnx", "onnxruntime"):
        pytest.importorskip(module, reason="the extra `onnx` is not installed")


@pytest.mark.parametrize("backend", ["tensorflow", "onnx", "trainable"])
def test_the_vector_of_a_long_text_does_not_depend_on_others(toy: Toy, backend: Any) -> None:
    if backend == "trainable":
        encoder: Any = TrainableEncoder.load(toy.folder)
    else:
        if backend == "onnx":
            need_onnx()
        encoder = SentenceEncoder(toy.folder, backend=backend)
    draw = random.Random(0)
    texts = [" ".join(draw.choices(["cat", "a", "dog.", "x"], k=k)) for k in (0, 5, 17, 70, 300, 9)]
    vectors = encoder.encode(texts, on_truncation="split")
    np.testing.assert_allclose(vectors[1], encoder.encode(texts[1]), atol=1e-6)
    for size in (1, 3):
        again = encoder.encode(texts[::-1], batch_size=size, on_truncation="split")[::-1]
        np.testing.assert_allclose(again, vectors, atol=1e-5)
    short = encoder.encode(
        texts, on_truncation="split", truncate_dim=3, normalize_embeddings=True, prompt=""
    )
    np.testing.assert_allclose(short, unit_rows(vectors[:, :3]), atol=1e-5)


@pytest.mark.parametrize("backend", ["onnx", "onnx-int8"])
def test_engines_split_as_tensorflow_does(backend: Any) -> None:
    need_onnx()
    texts = ["The cat sat on the mat, and the dog read the paper. " * 40, "How old are you?"]
    expected = use_st5.load("use_transformer_en").encode(texts, on_truncation="split")
    encoder = use_st5.load("use_transformer_en", backend=backend)
    vectors = encoder.encode(texts, on_truncation="split")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (cosine(vectors, expected) > (0.99 if backend == "onnx-int8" else 1 - 1e-6)).all()
    again = encoder.encode(texts[0], on_truncation="split", batch_size=1)
    np.testing.assert_allclose(again, vectors[0], atol=1e-5)
