"""Generated sentences: seeded, and well-formed where a rule can say so."""

from __future__ import annotations

import pytest

from use_st5.recipes._generated_text import (
    generate_captions,
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
