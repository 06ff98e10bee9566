"""Generated sentences: seeded, and well-formed where a rule can say so; alterations as they say."""

from __future__ import annotations

import json
import random
import re

import pytest

from experiments.bundled_models import generated_text
from experiments.bundled_models.generated_text import (
    generate_alterations,
    generate_captions,
    generate_opinions,
    generate_questions,
    generate_spans,
)

SENTENCES = [
    "the dog has bitten the man",
    "a man was not there at all",
    "she will sing a song tonight",
    "no no",
    "rain in spain stays mainly in the plain",
]


def test_same_seed_same_captions() -> None:
    assert list(generate_captions(50, seed=3)) == list(generate_captions(50, seed=3))
    assert list(generate_captions(50, seed=3)) != list(generate_captions(50, seed=4))


def test_captions_agree_in_number_and_article() -> None:
    for caption in generate_captions(3000):
        assert caption[0].isupper()
        first, second = caption.lower().split()[:2]
        if first in {"two", "three", "four", "some", "several"}:
            assert " is " not in caption
        if first == "a" and second not in {"few"}:
            assert second[0] not in "aeiou", caption


def test_opinions_are_seeded_and_seldom_the_same() -> None:
    opinions = list(generate_opinions(5000, seed=3))
    assert opinions == list(generate_opinions(5000, seed=3))
    assert opinions != list(generate_opinions(5000, seed=4))
    assert len({each.lower().rstrip(". ") for each in opinions}) > 4700
    assert not [each for each in opinions if re.search(r"[{}_]|  ", each)]


def test_opinions_have_each_slot_filled_by_some_list() -> None:
    words = json.loads(generated_text._OPINIONS.read_text(encoding="utf-8"))
    slots = re.findall(r"\{(?:a_)?(\w+)\}", json.dumps(words))
    assert set(slots) - {"he", "his", "first"} <= set(words)
    assert set(words) - {"opinions", "descriptions", "men", "women"} <= set(slots)
    assert [name for name, each in words.items() if len(each) != len(set(each))] == ["was"]
    good = {each for name in words if name.startswith("good_") for each in words[name]}
    bad = {each for name in words if name.startswith("bad_") for each in words[name]}
    assert not good & bad
    assert min(len(good), len(bad)) >= 150


def test_opinions_repeat_no_word_and_agree_in_article_and_person() -> None:
    sentences = {each.lower() for each in generate_opinions(5000)}
    assert not [each for each in sentences if re.search(r"\b(\w{4,}) (and|but) \1\b", each)]
    assert not [each for each in sentences if re.search(r"\ba [aio]|\ban [bcdfgjkl-np-tv-z]", each)]
    assert not [each for each in sentences if {"his", "her"} <= set(each.split())]
    assert any("an honest" in each for each in sentences)


@pytest.mark.parametrize(
    ("written", "tokens"),
    [
        ("I can't say, Anna's film.", "i ca n't say , anna 's film ."),
        ("first-rate: a joy", "first-rate : a joy"),
    ],
)
def test_reviews_in_lowercase_tokens(written: str, tokens: str) -> None:
    styles = {generated_text._styled(written, random.Random(seed)) for seed in range(50)}
    assert tokens in styles
    assert written in styles


def test_spans_are_consecutive_words() -> None:
    sentences = ["one two three four five six seven", "a"]
    for span in generate_spans(sentences, 200, min_words=2, max_words=3):
        assert any(f" {span} " in f" {sentence} " for sentence in sentences)
        assert len(span.split()) <= 3


def test_questions_take_their_words_from_the_sentences() -> None:
    sentences = ["Who drew the owl, and why, in San Marino?", "An apple ripens."]
    questions = list(generate_questions(sentences, {"owl", "apple"}, 500))
    assert questions == list(generate_questions(sentences, {"owl", "apple"}, 500))
    text = " ".join(questions)
    assert "{" not in text
    assert all(word in text for word in ("an owl", "an apple", "San Marino"))
    assert not {"ripens", "drew"} & set(text.split())


def test_questions_need_nouns_and_names() -> None:
    with pytest.raises(ValueError, match="names"):
        next(generate_questions(["the owl"], {"owl"}, 1))


def alter(kind: str, sentence: str, *, seed: int = 0) -> list[str]:
    return getattr(generated_text, kind)(sentence.split(), random.Random(seed), "x y z w".split)


def test_every_sentence_is_altered_and_the_seed_decides() -> None:
    sentences = SENTENCES * 40
    altered = list(generate_alterations(sentences, seed=5))
    assert all(map(str.__ne__, altered, sentences))
    assert altered == list(generate_alterations(sentences, seed=5))
    assert altered != list(generate_alterations(sentences, seed=6))


def test_new_words_are_those_of_other_sentences() -> None:
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
    assert sum(map(str.__ne__, exchanged, words)) in {0, 2}  # 0: "in" with "in"


def test_denial_and_splice() -> None:
    assert " ".join(alter("_deny", SENTENCES[0])) == "the dog has not bitten the man"
    assert " ".join(alter("_deny", SENTENCES[1])) == "a man was there at all"
    assert alter("_deny", "no no") == ["no", "no"]
    assert alter("_splice", "a b c d e") == ["a", "b", "c", "z", "w"]


@pytest.mark.parametrize("sentences", [["one sentence"], ["two words", "word"]])
def test_too_little_to_alter(sentences: list[str]) -> None:
    with pytest.raises(ValueError, match="two"):
        list(generate_alterations(sentences))
