"""Rules that alter English sentences, and generated text."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from experiments.bundled_models import (
    english,
    word_swaps,
)
from experiments.bundled_models.alterations import RULES, generate_alterations
from experiments.bundled_models.clauses import finite_verb, transitive_clause
from experiments.bundled_models.generated_text import (
    generate_captions,
)
from experiments.bundled_models.near_misses import change_tense, exchange_roles, negate
from experiments.bundled_models.paraphrases import (
    be_polite,
    change_voice,
    contract,
    introduce,
    reorder,
)
from experiments.bundled_models.related_sentences import (
    GROUP_SIZE,
    related_rows,
)
from experiments.bundled_models.word_swaps import (
    swap_antonym,
    swap_colour,
    swap_entity,
    swap_number,
    swap_quantifier,
    swap_synonym,
)


@pytest.mark.parametrize(
    "forms",
    [
        *("bite bites bit bitten biting", "try tries tried tried trying"),
        *("stop stops stopped stopped stopping", "visit visits visited visited visiting"),
        *("lie lies lay lain lying", "go goes went gone going", "have has had had having"),
        *("watch watches watched watched watching", "begin begins began begun beginning"),
    ],
)
def test_verbs_are_inflected(forms: str) -> None:
    base, *_ = forms.split()
    names = ("base", "s", "past", "participle", "ing")
    assert [english.inflected(base, name) for name in names] == forms.split()
    pairs = zip(forms.split(), names, strict=True)
    assert [english.base_of(form, name) for form, name in pairs] == [base] * 5


def test_nouns_and_articles() -> None:
    plurals = {"dog": "dogs", "city": "cities", "boy": "boys", "box": "boxes", "child": "children"}
    assert {noun: english.plural(noun) for noun in plurals} == plurals
    numbers = {"the dog": False, "two dogs": True, "a pair of dogs": False, "the glass": False}
    assert {phrase: english.is_plural(phrase.split()) for phrase in numbers} == numbers
    words = "dog owl honest-man hour user uniform uncle unusual one-way European Ukrainian"
    articles = [english.indefinite(word).split()[0] for word in words.split()]
    assert articles == ["a", "an", "an", "an", "a", "a", "an", "an", "a", "a", "a"]
    assert english.with_right_article("I saw a old dog", 8) == "I saw an old dog"


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("The dog bit the man.", (2, "bite", "past")),
        ("Mary quickly opens the door.", (2, "open", "s")),
        ("She had gone home.", (1, "had", "auxiliary")),
        ("Two dogs run.", (2, "run", "base")),
        ("The boy plays outside.", (2, "play", "s")),
        ("A man dressed in black is here.", (5, "be", "auxiliary")),
        ("Bodies found in the river.", None),
        ("A dog running on grass", None),
        ("the many plays of the year", None),
        ("", None),
    ],
)
def test_finite_verbs(text: str, verb: tuple[int, str, str] | None) -> None:
    found = finite_verb(text.split())
    assert (found and (found.place, found.base, found.form)) == verb


def test_a_transitive_clause_has_four_parts() -> None:
    words = ["The", "old", "man", "is", "riding", "a", "horse", "in", "the", "park."]
    assert transitive_clause(words) == (words[:3], words[3:5], words[5:7], words[7:])
    for text in ("She has a dog.", "A woman watches a dog jump down.", "The man was here."):
        assert transitive_clause(text.split()) is None


def every(rule: object, text: str) -> set[str | None]:
    """All that a rule makes of a text; None where it does not apply."""
    return {rule(text, random.Random(seed)) for seed in range(60)}  # type: ignore[operator]


@pytest.mark.parametrize(
    ("rule", "text", "altered"),
    [
        (negate, "The dog bit the man.", "The dog did not bite the man."),
        (negate, "She can swim.", "She cannot swim."),
        (negate, "There is a dog.", "There is no dog."),
        (negate, "Is the man here?", "Isn't the man here?"),
        (negate, "The dog did not bite the man.", "The dog bit the man."),
        (negate, "He doesn't sing.", "He sings."),
        (negate, "He never sings.", "He sings."),
        (change_tense, "The dog bit the man.", "The dog will bite the man."),
        (change_tense, "She will sing a song.", "She sang a song."),
        (change_tense, "He has left.", "He had left."),
        (exchange_roles, "The dog bit the man.", "The man bit the dog."),
        (exchange_roles, "A man is riding two horses.", "Two horses are riding a man."),
        (exchange_roles, "He saw her.", "She saw him."),
        (exchange_roles, "The cat is bigger than the dog.", "The dog is bigger than the cat."),
        (exchange_roles, "Anna talked to Peter.", "Peter talked to Anna."),
        (exchange_roles, "Anna lives in Paris.", None),
        (exchange_roles, "Anna left on Monday.", None),
        (contract, "I do not know.", "I don't know."),
        (contract, "It's late.", "It is late."),
        (contract, "It's been late.", None),
        (change_voice, "The dog bit the man.", "The man was bitten by the dog."),
        (change_voice, "An apple is eaten by the boy.", "The boy eats an apple."),
        (change_voice, "He kicks two red balls.", "Two red balls are kicked by him."),
        (change_voice, "She has a dog.", None),
        (introduce, "A man is playing a flute.", "There is a man playing a flute."),
        (introduce, "There is a man playing a flute.", "A man is playing a flute."),
        (introduce, "The man is playing.", None),
        (reorder, "A man is running in the park.", "In the park, a man is running."),
        (reorder, "On Monday, the shop opens.", "The shop opens on Monday."),
        (reorder, "He is looking at the camera.", None),
        (reorder, "A man and a woman are singing.", "A woman and a man are singing."),
        (be_polite, "Can you open the door?", "Can you please open the door?"),
        (be_polite, "The door is open.", None),
        (swap_antonym, "The door opened.", "The door closed."),
        (swap_antonym, "They want to end it.", "They want to begin it."),
        (swap_antonym, "the left hand", None),
        (swap_antonym, "hot and cold", None),
        (swap_synonym, "She purchased it.", "She bought it."),
        (swap_synonym, "An automobile, a sofa and a kid", "An automobile, a sofa and a child"),
        (swap_number, "COVID-19", None),
        (swap_quantifier, "the most beautiful", None),
        (swap_quantifier, "as often as that", None),
        (swap_entity, "no name", None),
    ],
)
def test_rules(rule: object, text: str, altered: str | None) -> None:
    assert every(rule, text) == {altered}


@pytest.mark.parametrize(
    ("rule", "text", "altered"),
    [
        (change_tense, "It is late.", {"It was late.", "It will be late."}),
        (negate, "Open the door.", {"Do not open the door.", "Never open the door."}),
        (swap_antonym, "It is a boring idea.", {"It is an exciting idea."}),
        (swap_colour, "a red car", {"a blue car", "an orange car"}),
        (swap_entity, "a German car", {"an Italian car", "a French car"}),
        (swap_quantifier, "Nobody came.", {"Everyone came.", "Someone came."}),
        (swap_quantifier, "He never sings.", {"He always sings.", "He often sings."}),
    ],
)
def test_rules_with_several_results(rule: object, text: str, altered: set[str]) -> None:
    assert every(rule, text) >= altered


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("12 dogs", r"(?!12)[1-9]\d? dogs"),
        ("in 1987", r"in (?!1987)(?:19|20)\d\d"),
        ("$1,250 paid", r"\$(?!1,250)\d?,?\d{3} paid"),
        ("two dogs", r"(?!two)[a-z]+ dogs"),
    ],
)
def test_numbers(text: str, pattern: str) -> None:
    for other in every(swap_number, text):
        assert re.fullmatch(pattern, str(other)), other


def test_names_become_names_of_their_kind() -> None:
    for name, kind in {"Paris": "cities", "Anna": "women", "Monday": "weekdays"}.items():
        altered = {str(each) for each in every(swap_entity, f"We saw {name} there.")}
        assert len(altered) > 3
        others = set(word_swaps.lists()[kind]) - {name}
        assert altered <= {f"We saw {other} there." for other in others}


SENTENCES = [
    "the dog has bitten the man",
    "a man was not there at all",
    "she will sing a song tonight",
    "no no",
    "rain in spain stays mainly in the plain",
]


def test_every_sentence_is_altered_and_the_seed_decides() -> None:
    sentences = SENTENCES * 40
    altered = list(generate_alterations(sentences, seed=5))
    assert all(map(str.__ne__, altered, sentences))
    assert altered == list(generate_alterations(sentences, seed=5))
    assert altered != list(generate_alterations(sentences, seed=6))


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


def test_captions_agree_in_number_and_article() -> None:
    for caption in generate_captions(3000):
        assert caption[0].isupper()
        first, second = caption.lower().split()[:2]
        if first in {"two", "three", "four", "some", "several"}:
            assert " is " not in caption
        if first == "a" and second not in {"few"}:
            assert second[0] not in "aeiou", caption


def test_neighbours_are_the_nearest_by_cosine() -> None:
    """Compared with the sorted matrix of all cosines; the vectors need not have length 1."""
    vectors = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T - 2 * np.eye(30)
    groups = related_rows(vectors).reshape(30, GROUP_SIZE)
    for row, group in enumerate(groups):
        nearest = np.argsort(-cosines[row])[: GROUP_SIZE - 2]
        np.testing.assert_array_equal(group, [2 * row, 2 * row + 1, *(2 * nearest)])
