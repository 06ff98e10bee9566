"""Alterations: each sentence gets one, the seed decides, and rules come before chance."""

from __future__ import annotations

import random

import pytest

from experiments.bundled_models import alterations
from experiments.bundled_models.alterations import RULES, altered_by_rule, generate_alterations

SENTENCES = [
    "the dog has bitten the man",
    "a man was not there at all",
    "she will sing a song tonight",
    "no no",
    "rain in spain stays mainly in the plain",
]


def alter(kind: str, sentence: str, *, seed: int = 0) -> list[str]:
    return getattr(alterations, kind)(sentence.split(), random.Random(seed), "x y z w".split)


def test_every_sentence_is_altered_and_the_seed_decides() -> None:
    sentences = SENTENCES * 40
    altered = list(generate_alterations(sentences, seed=5))
    assert all(map(str.__ne__, altered, sentences))
    assert altered == list(generate_alterations(sentences, seed=5))
    assert altered != list(generate_alterations(sentences, seed=6))


def test_new_words_at_random_are_those_of_other_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alterations, "_AT_RANDOM", 1.0)
    words = {word for sentence in SENTENCES for word in sentence.split()} | {"not"}
    assert {word for each in generate_alterations(SENTENCES * 40) for word in each.split()} <= words


@pytest.mark.parametrize("seed", range(5))
def test_kinds(seed: int) -> None:
    words = SENTENCES[4].split()
    replaced = alter("_replace", SENTENCES[4], seed=seed)
    assert len(replaced) == 8
    assert 1 <= sum(map(str.__ne__, replaced, words)) <= 2
    assert 8 - 2 <= len(alter("_remove", SENTENCES[4], seed=seed)) <= 7
    inserted = alter("_insert", SENTENCES[4], seed=seed)
    assert [word for word in inserted if word not in "xyzw"] == words
    assert 9 <= len(inserted) <= 10
    exchanged = alter("_exchange", SENTENCES[4], seed=seed)
    assert sorted(exchanged) == sorted(words)
    assert sum(map(str.__ne__, exchanged, words)) in {0, 2}  # 0 if "in" is exchanged with "in"


def test_denial_and_splice() -> None:
    assert " ".join(alter("_deny", SENTENCES[0])) == "the dog has not bitten the man"
    assert " ".join(alter("_deny", SENTENCES[1])) == "a man was there at all"
    assert alter("_deny", "no no") == ["no", "no"]
    assert alter("_splice", "a b c d e") == ["a", "b", "c", "z", "w"]


@pytest.mark.parametrize("sentences", [["one sentence"], ["two words", "word"]])
def test_too_little_to_alter(sentences: list[str]) -> None:
    with pytest.raises(ValueError, match="two"):
        list(generate_alterations(sentences))


def test_rules_come_first_and_chance_where_none_applies() -> None:
    ruled = [" ".join(SENTENCES[0].split())] * 400
    by_rule = {altered_by_rule(ruled[0], random.Random(seed)) for seed in range(100)}
    share = sum(altered in by_rule for altered in generate_alterations([*ruled, "x y"])) / 400
    assert 0.6 < share < 0.8
    assert altered_by_rule("no no", random.Random(0)) is None


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(
    "text", ["x y", "A", "?", "...", "'s", "Is it?", "not", "I", "the a", "Who"]
)
def test_rules_bear_any_text(name: str, text: str) -> None:
    altered = RULES[name](text, random.Random(0))
    assert altered is None or altered.strip()


def test_every_rule_alters_some_sentence() -> None:
    sentences = [
        "The dog is chasing two cats in the park.",
        "Anna moved from Paris to Rome on Monday.",
        "All dogs don't bark.",
        "A man is buying a red car.",
        "Can you tell me what the time is?",
    ]
    for name, rule in RULES.items():
        altered = [rule(each, random.Random(0)) for each in sentences]
        assert any(altered), name
        assert all(map(str.__ne__, (each or "" for each in altered), sentences)), name
