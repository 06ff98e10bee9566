"""English words for the rules of alteration: verb forms, plurals, articles, capitals."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

Words = list[str]


@cache
def _lists() -> dict[str, list[str]]:
    """The lists of `english.json`."""
    return json.loads(Path(__file__).with_name("english.json").read_text(encoding="utf-8"))


@cache
def listed(name: str) -> frozenset[str]:
    """A list of `english.json` as a set."""
    return frozenset(_lists()[name])


DETERMINERS = listed("determiners")
PREPOSITIONS = listed("prepositions")
CONNECTIVES = listed("connectives")
PLURALS = listed("plurals")
_MANY = frozenset(("two", "three", "four", "five", "six", "several", "many", "these", "those"))
PRONOUNS = frozenset(("i", "you", "he", "she", "it", "we", "they"))
BE = frozenset(("am", "is", "are", "was", "were"))
MODALS = frozenset(("can", "could", "will", "would", "shall", "should", "may", "might", "must"))
HAVE = frozenset(("has", "have", "had"))
DO = frozenset(("do", "does", "did"))
AUXILIARIES = BE | MODALS | HAVE | DO

PLURAL_PRONOUNS = frozenset(["i", "you", "we", "they"])
_NOT_PLURAL = re.compile(r"(?:ss|us|is|news)$")
_VOWEL_SOUND = re.compile(
    r"(?!one\b|use|uni[oqtvf]|eu|ukr)[aeiou]|hon(?:est|ou?r)|hour|heir", re.IGNORECASE
)
_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_HISSING = re.compile(r"(?:s|x|z|ch|sh|[^aeiou]o)$")


@cache
def _irregular() -> dict[str, tuple[str, str]]:
    rows = (row.split() for row in _lists()["irregular"])
    return {base: (past, participle) for base, past, participle in rows}


@cache
def inflected(base: str, form: str) -> str:
    """A form of a verb, such as bite, bites, bit, bitten or biting for "bite".

    Args:
        base: The infinitive; further words behind it stay, as in "turn down".
        form: "base", "s", "past", "participle" or "ing".
    """
    base, *rest = base.split(" ", 1)
    return " ".join([_one_word(base, form), *rest])


def _one_word(base: str, form: str) -> str:
    if form == "base":
        return base
    if form == "s":
        return "has" if base == "have" else plural(base)
    if form != "ing" and base in _irregular():
        return _irregular()[base][form == "participle"]
    stem = base + base[-1] if base in listed("doubled") else base
    if form == "ing":
        if base.endswith("ie"):
            return base[:-2] + "ying"
        silent = base.endswith("e") and not base.endswith(("ee", "oe", "ye"))
        return (stem[:-1] if silent else stem) + "ing"
    if _CONSONANT_Y.search(base):
        return base[:-1] + "ied"
    return stem + ("d" if base.endswith("e") else "ed")


def plural(noun: str) -> str:
    """The plural of a noun; the same rules give the form of a verb with -s."""
    irregular = {"man": "men", "woman": "women", "child": "children", "wife": "wives"}
    for singular, plurals in irregular.items():
        if re.search(rf"(?:\b|_){singular}$", noun) or (
            len(singular) == 3 and noun.endswith(singular)
        ):
            return noun[: -len(singular)] + plurals
    if _CONSONANT_Y.search(noun):
        return noun[:-1] + "ies"
    return noun + ("es" if _HISSING.search(noun) else "s")


@cache
def verb_forms() -> dict[str, tuple[tuple[str, str], ...]]:
    """Word → (base, form) of each verb that it may be a form of."""
    by_word: dict[str, list[tuple[str, str]]] = {}
    for base in (*_irregular(), *_lists()["regular"]):
        for form in ("base", "s", "past", "participle", "ing"):
            by_word.setdefault(inflected(base, form), []).append((base, form))
    return {word: tuple(forms) for word, forms in by_word.items()}


def base_of(word: str, form: str) -> str | None:
    """The verb that a word is the form of, if any."""
    return next((base for base, each in verb_forms().get(word, ()) if each == form), None)


def is_participle(word: str) -> bool:
    """Whether the word may be a participle, so that "has" before it is an auxiliary."""
    return word == "been" or word.endswith("ed") or base_of(word, "participle") is not None


def passive_possible(base: str) -> bool:
    """Whether the verb takes an object that may become the subject."""
    return base not in listed("never_passive")


def bare(word: str) -> str:
    """The word in lowercase, without punctuation around it."""
    return word.strip(".,;:!?\"'()").lower()


def ends_clause(word: str) -> bool:
    """Whether punctuation follows the word."""
    return word[-1] in ".,;:!?"


def is_plural(phrase: Words) -> bool:
    """Whether a noun phrase takes "are"."""
    lower = [bare(word) for word in phrase]
    if "and" in lower or (len(lower) > 1 and lower[0] in _MANY):
        return True
    head = lower[lower.index("of") - 1] if "of" in lower[1:] else lower[-1]
    if head in PLURALS or head in PLURAL_PRONOUNS:
        return True
    return head.endswith("s") and not _NOT_PLURAL.search(head) and "'" not in head


def indefinite(noun: str) -> str:
    """The noun with "a" or "an"."""
    return f"{'an' if _VOWEL_SOUND.match(noun) else 'a'} {noun}"


def with_right_article(text: str, place: int) -> str:
    """Corrects the "a" or "an", if there is one, before the word that begins at a place."""
    article = re.search(r"\b([Aa])n? $", text[:place])
    if not article:
        return text
    right = article[1] + ("n " if _VOWEL_SOUND.match(text[place:]) else " ")
    return text[: article.start()] + right + text[place:]


def in_case_of(word: str, model: str) -> str:
    """The word, capitalized or in capitals if its model is."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[0].upper() + word[1:] if model[0].isupper() else word


def lower_first(phrase: Words) -> Words:
    """The phrase as it stands inside a sentence: names and "I" keep their capital."""
    first = phrase[0]
    if bare(first) in DETERMINERS | {"he", "she", "it", "we", "they", "you"}:
        first = first[0].lower() + first[1:]
    return [first, *phrase[1:]]


def upper_first(text: str, model: str) -> str:
    """The text with a capital if its model begins with one."""
    return text[0].upper() + text[1:] if model[0].isupper() else text
