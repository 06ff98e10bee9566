"""Texts that are longer than a model reads: they are found, reported or refused."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from use_st5.encode.encoder import SentenceEncoder
from use_st5.encode.token_limit import most_tokens
from use_st5.export.saved_model import write_graph
from use_st5.models.encoder_model import checked_length
from use_st5.models.family import family_of
from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from use_st5.tokenizers.token_tokenizer import UnigramTokenizer

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
    with pytest.warns(UserWarning, match="3 of 7 texts are longer than 4 tokens; .* Split") as said:
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
