"""Training text without test sentences."""

from __future__ import annotations

from use_st5.data.held_out import normalized, without_held_out


def test_two_copies_of_a_sentence_are_one() -> None:
    assert normalized(" THE cat, eats!") == normalized("The cat eats") == "the cat eats"


def test_an_example_goes_with_any_of_its_texts() -> None:
    examples = [
        {"premise": "A.", "hypothesis": "B.", "label": 1},
        {"premise": "b", "hypothesis": "C.", "label": 1},
        {"premise": "D", "hypothesis": "E", "label": 1},
    ]
    assert list(without_held_out(examples, {"b", "1"})) == examples[2:]
