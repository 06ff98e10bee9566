"""Paraphrases, each by hand."""

from __future__ import annotations

import random

import pytest

from experiments.bundled_models.paraphrases import (
    be_polite,
    change_voice,
    contract,
    introduce,
    reorder,
)


def every(rule: object, text: str) -> set[str | None]:
    return {rule(text, random.Random(seed)) for seed in range(40)}  # type: ignore[operator]


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("I do not know.", "I don't know."),
        ("It is late.", "It's late."),
        ("I am here.", "I'm here."),
        ("We cannot go.", "We can't go."),
        ("Then they will sing.", "Then they'll sing."),
    ],
)
def test_contractions_both_ways(full: str, short: str) -> None:
    assert every(contract, full) == {short}
    assert every(contract, short) == {full}


@pytest.mark.parametrize("text", ["It's been late.", "in it's mouth", "So it is.", "Let it be."])
def test_no_contraction(text: str) -> None:
    assert every(contract, text) == {None}


@pytest.mark.parametrize(
    ("active", "passive"),
    [
        ("The dog bit the man.", "The man was bitten by the dog."),
        ("A man is playing a flute.", "A flute is being played by a man."),
        ("The boy eats an apple.", "An apple is eaten by the boy."),
    ],
)
def test_voice_both_ways(active: str, passive: str) -> None:
    assert every(change_voice, active) == {passive}
    assert every(change_voice, passive) == {active}


@pytest.mark.parametrize(
    ("text", "passive"),
    [
        ("He kicks two balls hard.", None),
        ("He kicks two red balls.", "Two red balls are kicked by him."),
        ("I am watching the film.", "The film is being watched by me."),
        ("He opened the doors in the hall.", "The doors were opened by him in the hall."),
        ("She has a dog.", None),
    ],
)
def test_passive(text: str, passive: str | None) -> None:
    assert every(change_voice, text) == {passive}


def test_there_is_both_ways() -> None:
    text, there = "A man is playing a flute.", "There is a man playing a flute."
    assert every(introduce, text) == {there}
    assert every(introduce, there) == {text}
    assert every(introduce, "The man is playing.") == {None}
    assert every(introduce, "There is a wedding in town.") == {None}


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("A man is running in the park.", "In the park, a man is running."),
        ("He is looking at the camera.", None),
        ("A woman is putting meat in a pan.", None),
        ("Anna left the town yesterday.", "Yesterday, Anna left the town."),
        ("On Monday, the shop opens.", "The shop opens on Monday."),
        ("The man quickly ran home.", "Quickly, the man ran home."),
        ("It was found as often as gold.", None),
        ("A man and a woman ran home.", None),
        ("A man and a woman are singing.", "A woman and a man are singing."),
        ("He walks along a road and a man in a car stops.", None),
    ],
)
def test_order(text: str, moved: str | None) -> None:
    assert every(reorder, text) == {moved}


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Can you open the door?", "Can you please open the door?"),
        ("Please open the door.", "Open the door."),
        ("Open the door.", "Please open the door."),
        ("Can you tell me where the station is?", "Where is the station?"),
        ("The door is open.", None),
    ],
)
def test_politeness(text: str, other: str | None) -> None:
    assert every(be_polite, text) == {other}


def test_questions_become_indirect() -> None:
    assert every(be_polite, "Where is the station?") == {
        "Can you tell me where the station is?",
        "Do you know where the station is?",
        "Please tell me where the station is.",
    }
