"""Near misses, each by hand."""

from __future__ import annotations

import random

import pytest

from experiments.bundled_models.near_misses import change_tense, exchange_roles, negate


def every(rule: object, text: str) -> set[str | None]:
    return {rule(text, random.Random(seed)) for seed in range(40)}  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("The dog bit the man.", "The dog did not bite the man."),
        ("He has a dog.", "He does not have a dog."),
        ("They play.", "They do not play."),
        ("She can swim.", "She cannot swim."),
        ("A man is here.", "A man is not here."),
        ("There is a dog.", "There is no dog."),
        ("Is the man here?", "Isn't the man here?"),
        ("Who is Anna?", "Who isn't Anna?"),
    ],
)
def test_negation(text: str, denied: str) -> None:
    assert every(negate, text) == {denied}


@pytest.mark.parametrize(
    ("text", "affirmed"),
    [
        ("The dog did not bite the man.", "The dog bit the man."),
        ("He doesn't sing.", "He sings."),
        ("They don't play.", "They play."),
        ("She cannot swim.", "She can swim."),
        ("Isn't the man here?", "Is the man here?"),
        ("He never sings.", "He sings."),
        ("There is no dog.", "There is a dog."),
    ],
)
def test_negation_removed(text: str, affirmed: str) -> None:
    assert every(negate, text) == {affirmed}


def test_imperatives_are_denied() -> None:
    commands = {"Do not open the door.", "Don't open the door.", "Never open the door."}
    assert every(negate, "Open the door.") == commands


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("The dog bit the man.", {"The dog will bite the man."}),
        ("The dog bites.", {"The dog bit.", "The dog will bite."}),
        ("She will sing a song.", {"She sang a song."}),
        ("It is late.", {"It was late.", "It will be late."}),
        ("He has left.", {"He had left."}),
        ("He did not go.", {"He will not go."}),
    ],
)
def test_tense(text: str, others: set[str]) -> None:
    assert every(change_tense, text) == others


@pytest.mark.parametrize(
    ("text", "exchanged"),
    [
        ("The dog bit the man.", "The man bit the dog."),
        ("A man is riding two horses.", "Two horses are riding a man."),
        ("He saw her.", "She saw him."),
        ("He saw them.", "They saw him."),
        ("The cat is bigger than the dog.", "The dog is bigger than the cat."),
        ("Two cats are more fun than one dog.", "One dog is more fun than two cats."),
        ("Anna talked to Peter.", "Peter talked to Anna."),
        ("They flew from Paris to New York.", "They flew from New York to Paris."),
        ("Anna lives in Paris.", None),
        ("We met Anna on Monday.", "Anna met us on Monday."),
        ("Anna left on Monday.", None),
        ("Rain brings US trade down.", None),
        ("Thank you, Anna.", None),
        ("Man held after teen shot in Belfast", None),
    ],
)
def test_roles(text: str, exchanged: str | None) -> None:
    assert every(exchange_roles, text) == {exchanged}
