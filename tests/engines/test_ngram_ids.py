"""Ids without TensorFlow, compared with those of the graph."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.engines.fuzzed import check_same_ids, fuzzed_texts
from tests.tokenizers.real_sentences import real_sentences
from use_st5.engines import ngram_ids
from use_st5.engines.ngram_ids import NGramIds
from use_st5.hub.bundled import bundled_folder
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary


@pytest.fixture(scope="module", params=["bundled", "buckets"])
def both(request: pytest.FixtureRequest) -> Any:
    """Our ids and the graph, for the bundled vocabulary or a small one with buckets for pairs."""
    vocabulary = NGramVocabulary.load(bundled_folder("use_dan_en") / "assets" / "vocabulary.txt")
    if request.param == "buckets":
        vocabulary = NGramVocabulary(vocabulary.unigrams[:200], vocabulary.bigrams[:3000], 7, 11)
    text = tf.TensorSpec([None], tf.string)
    flat = tf.function(NGramTokenizer(vocabulary).flat, input_signature=[text], autograph=False)
    return NGramIds(vocabulary), flat


def test_fuzzed_texts(both: Any) -> None:
    check_same_ids(both[0].flat, both[1], ["", *fuzzed_texts(4000), " "])


def test_bytes_that_are_no_utf_8(both: Any) -> None:
    draw = random.Random(0)
    raw = [bytes(draw.choices([*range(256), *b"aaa bbb"], k=20)) for _ in range(2000)]
    texts = [each.decode("utf-8", "replace") for each in raw]
    check_same_ids(both[0].flat, both[1], texts, raw)


def test_real_sentences(both: Any, data_dir: Path) -> None:
    check_same_ids(both[0].flat, both[1], real_sentences(data_dir, 30_000))


def test_memory_of_words_is_bounded(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram_ids, "_KEPT", 50)
    monkeypatch.setattr(ngram_ids, "_MOST_WORDS", 100)
    ours = NGramIds(both[0].vocabulary)
    for seed in range(3):
        texts = fuzzed_texts(400, seed)
        for start in range(0, 400, 40):
            check_same_ids(ours.flat, both[1], texts[start : start + 40])
    assert len(ours._cache) <= 50
    assert len(ours._spelled) - ours._fixed < 1000


@pytest.mark.parametrize("few", [0, 128])
def test_one_text_has_the_same_ids(both: Any, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(ngram_ids, "_FEW", few)
    monkeypatch.setattr(ngram_ids, "_PIECE", 30)
    texts = fuzzed_texts(200)
    for text in (*texts, " ".join(texts), "how old are you", "", "\x00"):
        blocks = [*both[0].blocks(text)]
        np.testing.assert_array_equal(np.concatenate(blocks), both[0].flat([text]).ids)
