"""Generated sentences: seeded, and well-formed as far as rules can check; their alterations."""

from __future__ import annotations

import json
import random
import re

import pytest

from experiments.bundled_models import generated_text
from experiments.bundled_models.generated_text import (
    generate_captions,
    generate_opinions,
    generate_questions,
    generate_spans,
)


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


def test_every_frame_of_a_question_is_filled() -> None:
    frames = json.loads(generated_text._QUESTIONS.read_text(encoding="utf-8"))["frames"]
    assert len(set(frames)) == len(frames) >= 150
    sentences = ["She met Anna, a woman and two men."]
    questions = list(generate_questions(sentences, {"woman", "men"}, 5000))
    assert not [each for each in questions if "{" in each or "womans" in each or "a men" in each]
    assert "Why can't women see woman?" in questions


def test_questions_need_nouns_and_names() -> None:
    with pytest.raises(ValueError, match="names"):
        next(generate_questions(["the owl"], {"owl"}, 1))
