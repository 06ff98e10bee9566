from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiments.corpora import definitions
from experiments.sbert_defsent.defined_words import defined_words, split_of

SPLITS = ("train", "dev", "test")
# Ids as an uncased vocabulary has them: case and accents do not count.
IDS = {"cat": 5, "dog": 6, "resume": 7, "turkey": 8}


def single_ids(words: Sequence[str]) -> np.ndarray:
    plain = (word.lower().replace("é", "e") for word in words)
    return np.array([IDS.get(word, 0) for word in plain], np.int32)


def all_parts(rows: list[tuple[str, str]]) -> dict[str, list[dict]]:
    examples = [{"word": word, "definition": text, "example": ""} for word, text in rows]
    return {split: [*defined_words(examples, single_ids, split)] for split in SPLITS}


def test_words_of_one_token_alone_each_once() -> None:
    rows = [
        ("cat", "a small animal"),
        ("tabby cat", "one with stripes"),
        ("Cat", " a small animal "),
        ("cat", "a nasty woman"),
        ("unheard", "not heard"),
        ("dog", ""),
    ]
    found = [each for part in all_parts(rows).values() for each in part]
    assert found == [
        {"definition": "a small animal", "word": 5},
        {"definition": "a nasty woman", "word": 5},
    ]


def test_no_word_is_in_two_parts(data_dir: Path) -> None:
    """Uses all words of the real dictionaries."""
    words = {example["word"] for example in definitions(data_dir)}
    ids = {word: number for number, word in enumerate(sorted({w.lower() for w in words}), 1)}

    def every_word(chosen: Sequence[str]) -> np.ndarray:
        return np.array([ids[word.lower()] for word in chosen])

    parts = {
        split: {each["word"] for each in defined_words(definitions(data_dir), every_word, split)}
        for split in SPLITS
    }
    for one, other in combinations(parts.values(), 2):
        assert not one & other
    shares = np.array([len(part) for part in parts.values()]) / len(ids)
    np.testing.assert_allclose(shares, [0.8, 0.1, 0.1], atol=0.005)


def test_other_spellings_of_a_word_stay_with_it() -> None:
    rows = [(word, f"meaning {n}") for n, word in enumerate(["résumé", "Resume", "resume "])]
    sizes = sorted(len(part) for part in all_parts(rows).values())
    assert sizes == [0, 0, 2], "the third is unknown to this vocabulary"
    assert len({split_of(word) for word, _ in rows}) == 1


def test_accents_do_not_count() -> None:
    """If accents counted, some of these ten words would come into another part."""
    words = [
        "café",
        "naïve",
        "façade",
        "fiancée",
        "cliché",
        "décor",
        "crêpe",
        "jalapeño",
        "piñata",
        "protégé",
    ]
    plain = [
        "cafe",
        "naive",
        "facade",
        "fiancee",
        "cliche",
        "decor",
        "crepe",
        "jalapeno",
        "pinata",
        "protege",
    ]
    assert [split_of(word) for word in words] == [split_of(word) for word in plain]


@given(st.text())
def test_any_text_has_a_part(word: str) -> None:
    assert split_of(word) == split_of(f" {word} ") in SPLITS


def test_the_parts_stay_what_they_are() -> None:
    """Otherwise a word that a model has learned could come into a later test."""
    words = ("cat", "dog", "turkey", "seven", "blue", "run")
    assert [split_of(word) for word in words] == ["test", *["train"] * 5]
