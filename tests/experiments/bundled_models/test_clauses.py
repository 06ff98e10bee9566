"""Finite verbs and clauses: found in plain sentences, but not if the word lists leave doubt."""

from __future__ import annotations

import pytest

from experiments.bundled_models.clauses import finite_verb, noun_phrase_end, transitive_clause


@pytest.mark.parametrize(
    ("text", "place", "base", "form"),
    [
        ("The dog bit the man.", 2, "bite", "past"),
        ("Mary quickly opens the door.", 2, "open", "s"),
        ("He has a dog.", 1, "have", "s"),
        ("She had gone home.", 1, "had", "auxiliary"),
        ("The man did it.", 2, "do", "past"),
        ("They play chess.", 1, "play", "base"),
        ("Two dogs run.", 2, "run", "base"),
        ("The boy plays outside.", 2, "play", "s"),
        ("A man dressed in black is here.", 5, "be", "auxiliary"),
        ("The man who sat there left.", 3, "sit", "past"),
    ],
)
def test_finite_verbs(text: str, place: int, base: str, form: str) -> None:
    verb = finite_verb(text.split())
    assert verb is not None
    assert (verb.place, verb.base, verb.form) == (place, base, form)


@pytest.mark.parametrize(
    "text",
    [
        "Bodies found in the river.",
        "A dog running on grass",
        "at ten am.",
        "five cows in a snow covered field",
        "the many plays of the year",
        "the military potential of the strategic forces",
        "of the walk",
        "",
    ],
)
def test_no_finite_verb(text: str) -> None:
    assert finite_verb(text.split()) is None


@pytest.mark.parametrize(
    ("text", "length"),
    [("the big dog in the park", 3), ("the end of the road", 5), ("Anna Smith sings", 2)]
    + [("dogs", 0), ("the dog, which", 2), ("a b c d e f", 0)],
)
def test_noun_phrases(text: str, length: int) -> None:
    assert noun_phrase_end(["x", *text.split()], 1) == 1 + length


def test_a_transitive_clause_has_four_parts() -> None:
    words = ["The", "old", "man", "is", "riding", "a", "horse", "in", "the", "park."]
    assert transitive_clause(words) == (words[:3], words[3:5], words[5:7], words[7:])


@pytest.mark.parametrize(
    "text",
    [
        "She has a dog.",
        "A woman watches a dog jump down.",
        "Nothing stops the man.",
        "They love each other.",
        "The man was here.",
        "The man, a doctor, opened the door.",
    ],
)
def test_no_transitive_clause(text: str) -> None:
    assert transitive_clause(text.split()) is None
