"""Verb forms by hand, and the other forms that rules need."""

from __future__ import annotations

import pytest

from experiments.bundled_models import english


@pytest.mark.parametrize(
    "forms",
    [
        "bite bites bit bitten biting",
        "try tries tried tried trying",
        "play plays played played playing",
        "stop stops stopped stopped stopping",
        "visit visits visited visited visiting",
        "make makes made made making",
        "lie lies lay lain lying",
        "see sees saw seen seeing",
        "go goes went gone going",
        "have has had had having",
        "agree agrees agreed agreed agreeing",
        "watch watches watched watched watching",
        "cut cuts cut cut cutting",
        "begin begins began begun beginning",
    ],
)
def test_verbs_are_inflected(forms: str) -> None:
    base, *_ = forms.split()
    names = ("base", "s", "past", "participle", "ing")
    assert [english.inflected(base, name) for name in names] == forms.split()
    assert [
        english.base_of(form, name) for form, name in zip(forms.split(), names, strict=True)
    ] == [base] * 5


def test_a_particle_stays_behind_the_verb() -> None:
    assert english.inflected("turn down", "past") == "turned down"


def test_the_tables_are_as_large_as_they_should_be() -> None:
    assert len(english.listed("irregular")) >= 150
    for row in english.listed("irregular"):
        assert len(row.split()) == 3


@pytest.mark.parametrize(
    ("noun", "expected"),
    [("dog", "dogs"), ("city", "cities"), ("boy", "boys"), ("box", "boxes"), ("woman", "women")]
    + [("child", "children"), ("gentleman", "gentlemen"), ("human being", "human beings")],
)
def test_plurals(noun: str, expected: str) -> None:
    assert english.plural(noun) == expected


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [("the dog", False), ("two dogs", True), ("a pair of dogs", False), ("the dogs of war", True)]
    + [("a boy and a girl", True), ("the glass", False), ("some people", True), ("a bus", False)],
)
def test_number_of_a_noun_phrase(phrase: str, *, expected: bool) -> None:
    assert english.is_plural(phrase.split()) is expected


def test_articles_follow_the_sound() -> None:
    words = "dog owl honest-man hour user uniform uncle unusual one-way European Ukrainian"
    articles = [english.indefinite(word).split()[0] for word in words.split()]
    assert articles == ["a", "an", "an", "an", "a", "a", "an", "an", "a", "a", "a"]
    assert english.with_right_article("I saw a old dog", 8) == "I saw an old dog"
    assert english.with_right_article("An big dog", 3) == "A big dog"
    assert english.with_right_article("the big dog", 4) == "the big dog"


def test_case_of_a_model() -> None:
    assert [english.in_case_of("all", each) for each in ("no", "No", "NO", "I")] == [
        "all",
        "All",
        "ALL",
        "All",
    ]
    assert english.lower_first(["The", "dog"]) == ["the", "dog"]
    assert english.lower_first(["Anna"]) == ["Anna"]
