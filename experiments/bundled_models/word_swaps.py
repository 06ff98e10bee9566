"""Words exchanged for others by the lists of `alterations.json`: antonyms, names, numbers."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from experiments.bundled_models.english import (
    AUXILIARIES,
    BE,
    DETERMINERS,
    HAVE,
    PREPOSITIONS,
    PRONOUNS,
    bare,
    base_of,
    in_case_of,
    inflected,
    listed,
    plural,
    verb_forms,
    with_right_article,
)

_WORD = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*(?!')")
_PLACES = ("countries", "nationalities", "cities", "states", "continents")
_NAMES = ("women", "men", "surnames", *_PLACES, "months", "weekdays", "companies")
_VERB_FORMS = ("base", "s", "past", "participle", "ing")
_NO_INFINITIVE = BE | HAVE
_BEFORE_BASE = (AUXILIARIES - _NO_INFINITIVE) | {"to", "i", "you", "we", "they", "not", "please"}
# A word behind `_IDIOM_BEFORE`, or one of `_IDIOMS` without a determiner, is part of an idiom.
_IDIOM_BEFORE = frozenset(("as", "so", "how", "no", "too"))
_IDIOMS = frozenset(
    ("kind", "sort", "front", "top", "back", "well", "long", "little", "few", "much", "pretty")
) | {"like", "right", "last", "light", "lie"}
_BEFORE_NOUN = frozenset(("up", "down", "over", "under", "if", "unless", "left"))
_PARTICLES = frozenset(("out", "up", "down", "off", "forward", "away", "back", "over"))
_NOUNS_IN_ING = frozenset(
    ("building", "painting", "drawing", "meeting", "beginning", "ending", "feeling", "opening")
) | {"leading", "parking", "living", "fighting", "closing", "warning", "killing"}

Table = Mapping[str, Sequence[str]]


@cache
def lists() -> dict[str, list[str]]:
    """The lists of `alterations.json`."""
    return json.loads(Path(__file__).with_name("alterations.json").read_text(encoding="utf-8"))


@cache
def antonyms() -> Table:
    """Word → words that mean the opposite."""
    return _table("antonyms", both_ways=True)


@cache
def synonyms() -> Table:
    """Word → words that mean nearly the same."""
    return _table("synonyms", both_ways=False)


def _table(name: str, *, both_ways: bool) -> Table:
    """Makes a table; infinitives, which may also be nouns, have keys such as "to open"."""
    replacements: dict[str, list[str]] = {}
    for mark, word, other in _pairs(name):
        replacements.setdefault(mark + word, []).append(other)
        if both_ways and " " not in other:
            replacements.setdefault(mark + other, []).append(word)
    return {word: list(dict.fromkeys(others)) for word, others in replacements.items()}


def _pairs(name: str) -> Iterator[tuple[str, str, str]]:
    def pair(row: str, form: Callable[[str], str]) -> tuple[str, str]:
        word, other = row.split()
        return form(word), form(other.replace("_", " "))

    for row in lists()[f"{name}_plain"]:
        yield "", *pair(row, str)
    for row in lists()[f"{name}_nouns"]:
        yield "", *pair(row, str)
        yield "", *pair(row, plural)
    for row in lists()[f"{name}_verbs"]:
        pasts = pair(row, partial(inflected, form="past"))
        participles = pair(row, partial(inflected, form="participle"))
        for form in _VERB_FORMS:
            forms = pair(row, partial(inflected, form=form))
            # "killed" may be "slew" or "slain"; "plays" may be no verb.
            alike = sum(map(str.__eq__, pasts, participles)) != 1
            if not set(forms) & listed("common_nouns") and (
                alike or forms not in (pasts, participles)
            ):
                yield "to " if form == "base" else "", *forms


def swap_antonym(text: str, draw: random.Random) -> str | None:
    """Replaces one word by a word of the opposite meaning."""
    return swap(text, antonyms(), draw)


def swap_synonym(text: str, draw: random.Random) -> str | None:
    """Replaces one word by a word of nearly the same meaning."""
    return swap(text, synonyms(), draw)


def swap(text: str, table: Table, draw: random.Random) -> str | None:
    """Replaces one word by one of its words in a table.

    Args:
        text: A sentence.
        table: Word in lowercase → words that may replace it.
        draw: Chooses the word and its replacement.

    Returns:
        The altered text; None if no word of the text can be replaced.
    """
    present = set(text.lower().split())
    candidates = [(each, set(_others(each, table)) - present) for each in _WORD.finditer(text)]
    candidates = [(place, others) for place, others in candidates if others]
    if not candidates:
        return None
    place, others = draw.choice(candidates)
    word = in_case_of(draw.choice(sorted(others)), place[0])
    return with_right_article(text[: place.start()] + word + text[place.end() :], place.start())


def _others(place: re.Match[str], table: Table) -> Sequence[str]:
    """The words that may replace the word at a place."""
    word = place[0].lower()
    if place[0] != word and place.start():  # a name's part
        return ()
    before = place.string[: place.start()].lower().rsplit(None, 1)[-1:] or [""]
    infinitive = f"to {word}" if before[0] in _BEFORE_BASE else word
    replacements = table.get(infinitive) or table.get(word) or ()
    after = place.string[place.end() :].split(None, 1)[:1] or [""]
    return replacements if replacements and not _idiomatic(word, before[0], bare(after[0])) else ()


def _idiomatic(word: str, before: str, after: str) -> bool:
    """Whether the words around it show that a word has another meaning than in the lists."""
    if word in _IDIOMS and (after == "of" or before not in DETERMINERS):
        return True
    if after in _PARTICLES and verb_forms().get(word) or (word == "used" and after == "to"):
        return True  # "find out"
    if word in _BEFORE_NOUN and after not in DETERMINERS | PRONOUNS:
        return True
    if before in _IDIOM_BEFORE or (word in _NOUNS_IN_ING and before not in BE):
        return True
    past = base_of(word, "past") and before in DETERMINERS | PREPOSITIONS
    return bool(past) and not _listed_as_other(word)  # a noun: "a rose"


@cache
def _listed_as_other(word: str) -> bool:
    """Whether a verb's form is also listed as a noun or an adjective."""
    kinds = ("antonyms_plain", "antonyms_nouns", "synonyms_plain", "synonyms_nouns")
    return any(word in row.split() for kind in kinds for row in lists()[kind])


@cache
def _names() -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern that matches the listed names, and name → the name of its list."""
    kinds = {name: kind for kind in _NAMES for name in lists()[kind]}
    longest_first = sorted(kinds, key=len, reverse=True)
    return re.compile(rf"\b(?=[A-Z])(?:{'|'.join(longest_first)})\b(?!-)"), kinds


def entity_kind(name: str) -> str | None:
    """The list of `alterations.json` that a name, or its first or last word, is in."""
    kinds = _names()[1]
    parts = name.split()
    return kinds.get(name) or kinds.get(parts[-1]) or kinds.get(parts[0])


def swap_entity(text: str, draw: random.Random) -> str | None:
    """Replaces a person, place, month, weekday or company by another of its kind."""
    pattern, kinds = _names()
    places = list(pattern.finditer(text))
    if not places:
        return None
    old = draw.choice(places)[0]
    new = draw.choice([name for name in lists()[kinds[old]] if name not in text])
    place = text.index(old)
    altered = re.sub(rf"\b{old}\b(?!-)", new, text)
    return with_right_article(altered, place)


@cache
def dates() -> frozenset[str]:
    """Months and weekdays in lowercase."""
    return frozenset(each.lower() for each in (*lists()["months"], *lists()["weekdays"]))


@cache
def colours() -> Table:
    """Colour → the other colours."""
    every = lists()["colours"]
    return {colour: [other for other in every if other != colour] for colour in every}


def swap_colour(text: str, draw: random.Random) -> str | None:
    """Replaces a colour by another."""
    return swap(text, colours(), draw)


_DIGITS = re.compile(r"(?<![\w.,:/-])\$?(\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w:/-])")


@cache
def _number_words() -> Table:
    table: dict[str, list[str]] = {}
    for kind in ("quantities", "large_quantities", "ordinals"):
        every = lists()[kind]
        table.update({word: [other for other in every if other != word] for word in every})
    return table


def swap_number(text: str, draw: random.Random) -> str | None:
    """Replaces a number in digits or in words by another."""
    digits = list(_DIGITS.finditer(text))
    if (not digits or draw.random() < 0.3) and (altered := swap(text, _number_words(), draw)):
        return altered
    if not digits:
        return None
    place = draw.choice(digits)
    return text[: place.start(1)] + _other_number(place[1], draw) + text[place.end(1) :]


def _other_number(digits: str, draw: random.Random) -> str:
    number = int(digits.replace(",", ""))
    if len(digits) == 4 and 1000 <= number <= 2100:  # a year
        return str(number + draw.choice((-1, 1)) * draw.randint(1, 40))
    most = max(3, number // 2)
    new = number + draw.choice((-1, 1)) * draw.randint(1, most)
    if new < 2:
        new = number + draw.randint(1, most)
    return f"{new:,}" if "," in digits else str(new)


_QUANTIFIERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\ball of\b", ("some of", "none of", "most of", "few of")),
    (r"(?<!the )\b(?:some|many|most|several) of\b", ("none of", "all of", "few of")),
    (r"\bnone of\b", ("all of", "most of", "some of")),
    (r"\b(?<!at )(?<!after )(?<!of )all the\b", ("none of the", "some of the", "few of the")),
    (
        r"\b(?<!at )(?<!after )(?<!of )(?<!are )(?<!were )all(?= \w+s\b)",
        ("no", "some", "few", "not all", "many"),
    ),
    (r"\bsome(?= \w+s\b| people| men| women| children)", ("no", "all", "most", "many", "few")),
    (r"\bseveral(?= \w)", ("no", "all", "few")),
    (r"\b(?<!how )(?<!so )(?<!too )(?<!as )(?<!not )(?<!very )many(?= \w)", ("no", "few", "all")),
    (
        r"(?:^|(?<=that ))most(?= \w+s\b| people| men| women| children)",
        ("no", "few", "all", "some"),
    ),
    (r"\b(?<!a )(?<!the )(?<!very )few(?= \w+s\b| people| men| women| children)", ("many", "all")),
    (r"(?<!only )\ba few(?= \w)", ("no", "many", "all")),
    (r"\ba lot of\b", ("little", "hardly any", "no")),
    (r"\b(?:every|each)(?= [a-z])(?! other)", ("no", "almost no")),
    (r"\bno(?= (?:\w+s|people|men|women|children)\b)", ("some", "many", "most")),
    (r"(?!^)\balways\b", ("never", "sometimes", "rarely")),
    (
        r"(?<!as )(?<!how )(?<!so )(?<!very )(?<!more )(?!^)\b(?:often|usually)\b",
        ("never", "always", "rarely"),
    ),
    (r"(?!^)\bsometimes\b", ("never", "always")),
    (r"(?!^)\bnever\b", ("always", "often", "sometimes")),
    (r"\b(?:everyone|everybody)\b", ("no one", "almost no one")),
    (r"\b(?:someone|somebody)\b", ("no one", "everyone")),
    (r"\b(?:nobody|no one)\b", ("everyone", "someone")),
    (r"\beverything\b", ("nothing", "almost nothing")),
    (r"\bsomething\b", ("nothing", "everything")),
    (r"\bnothing\b", ("everything", "something")),
    (r"\beverywhere\b", ("nowhere", "here and there")),
    (r"\bat least\b", ("at most", "fewer than")),
    (r"\bat most\b", ("at least", "more than")),
    (r"\bmore than\b", ("less than", "exactly")),
    (r"\bless than\b", ("more than", "exactly")),
    (r"\bfewer than\b", ("more than", "exactly")),
)
_ANY_QUANTIFIER = re.compile(
    r"\b(?:all|some|many|most|several|none|few|every|each|no|always|often|usually|sometimes|never|a|"
    r"at|more|less|fewer|every\w+|some\w+|nobody|nothing)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"n't\b|\bnot\b|\bnever\b", re.IGNORECASE)
_COMPILED = tuple((re.compile(old, re.IGNORECASE), new) for old, new in _QUANTIFIERS)


def swap_quantifier(text: str, draw: random.Random) -> str | None:
    """Replaces all, some, no, many, always, never … by another quantifier."""
    if not _ANY_QUANTIFIER.search(text):  # most have none, and this is faster
        return None
    candidates = [(place, new) for old, new in _COMPILED if (place := old.search(text))]
    if not candidates:
        return None
    place, choices = draw.choice(candidates)
    if _NEGATED.search(text):
        choices = tuple(each for each in choices if not each.startswith(("no", "none", "few")))
    if not choices:
        return None
    word = in_case_of(draw.choice(choices), place[0])
    return text[: place.start()] + word + text[place.end() :]
