"""Words that are exchanged by lists, and cases in which they are left alone."""

from __future__ import annotations

import random
import re

import pytest

from experiments.bundled_models import word_swaps
from experiments.bundled_models.word_swaps import (
    swap_antonym,
    swap_colour,
    swap_entity,
    swap_number,
    swap_quantifier,
    swap_synonym,
)

_SOME = ("Some of them", "None of them", "Most of them", "Few of them")


def every(rule: object, text: str) -> set[str | None]:
    return {rule(text, random.Random(seed)) for seed in range(60)}  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["antonyms", "synonyms"])
def test_the_lists_hold_pairs(kind: str) -> None:
    rows = [
        row for part in ("plain", "nouns", "verbs") for row in word_swaps.lists()[f"{kind}_{part}"]
    ]
    assert len(set(rows)) >= 250
    assert all(len(set(row.split())) == 2 for row in rows)


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("The door opened.", {"The door closed."}),
        ("It is a boring idea.", {"It is an exciting idea.", "It is an interesting idea."}),
        (
            "Heavy rain fell in Big Sur.",
            {"Light rain fell in Big Sur.", "Heavy rain rose in Big Sur."},
        ),
        ("The cities were large.", {"The villages were large.", "The cities were tiny."}),
        ("A kind of rose", {None}),
        ("They want to end it.", {"They want to begin it."}),
        ("the left hand", {None}),
        ("They will find out.", {None}),
        ("as long as you like", {None}),
        ("near a building", {None}),
    ],
)
def test_antonyms(text: str, others: set[str | None]) -> None:
    assert every(swap_antonym, text) >= others


def test_an_antonym_is_not_one_that_is_there() -> None:
    assert every(swap_antonym, "hot and cold") == {None}


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("An automobile, a sofa and a kid", {"An automobile, a sofa and a child"}),
        ("She purchased it.", {"She bought it."}),
        ("the children", {"the kids"}),
        ("He rejected it.", {"He turned down it."}),
    ],
)
def test_synonyms(text: str, others: set[str]) -> None:
    assert every(swap_synonym, text) == others


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("12 dogs", r"(?!12)[1-9]\d? dogs"),
        ("in 1987", r"in (?!1987)(?:19|20)\d\d"),
        ("$1,250 paid", r"\$(?!1,250)\d?,?\d{3} paid"),
        ("two dogs", r"(?!two)[a-z]+ dogs"),
        ("the third time", r"the (?!third)(?:first|[a-z]+th) time"),
    ],
)
def test_numbers(text: str, pattern: str) -> None:
    for other in every(swap_number, text):
        assert re.fullmatch(pattern, str(other)), other


@pytest.mark.parametrize("text", ["10:30", "one day", "COVID-19", "a B2 plane", "9/11"])
def test_no_number(text: str) -> None:
    assert every(swap_number, text) == {None}


def test_names_become_names_of_their_kind() -> None:
    kinds = {"Paris": "cities", "Anna": "women", "Monday": "weekdays", "New York": "cities"}
    for name, kind in kinds.items():
        altered = {str(each) for each in every(swap_entity, f"We saw {name} there.")}
        assert len(altered) > 3
        others = set(word_swaps.lists()[kind]) - {name}
        assert altered <= {f"We saw {other} there." for other in others}
    assert every(swap_entity, "no name") == {None}
    assert word_swaps.entity_kind("Anna Karenina") == "women"


def test_an_article_follows_the_new_name() -> None:
    altered = every(swap_entity, "a German car")
    assert "an Italian car" in altered
    assert "a French car" in altered
    assert not [each for each in altered if re.match(r"a [AEIO](?!urop)|an [^AEIO]", str(each))]


def test_colours() -> None:
    altered = every(swap_colour, "a red car")
    assert len(altered) > 5
    assert {"a blue car", "an orange car"} <= altered


@pytest.mark.parametrize(
    ("text", "others"),
    [
        (
            "All of them left.",
            {f"{each} left." for each in _SOME},
        ),
        ("He never sings.", {f"He {each} sings." for each in ("always", "often", "sometimes")}),
        ("Nobody came.", {"Everyone came.", "Someone came."}),
        ("It costs at least ten.", {"It costs at most ten.", "It costs fewer than ten."}),
        ("at all", {None}),
        ("as often as that", {None}),
        ("the most beautiful", {None}),
        ("how many dogs", {None}),
        ("No, thanks", {None}),
        ("Sometimes I sing.", {None}),
    ],
)
def test_quantifiers(text: str, others: set[str | None]) -> None:
    assert every(swap_quantifier, text) == others
