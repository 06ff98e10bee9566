"""Rules that change the meaning of a sentence by small changes: who, when, whether.

Each rule takes a sentence and a random generator, and returns the altered sentence, or None if the
rule does not apply. Rules that exchange single words are in `word_swaps`.
"""

from __future__ import annotations

import random
import re

from experiments.bundled_models.clauses import (
    Verb,
    as_object,
    as_subject,
    finite_verb,
    transitive_clause,
)
from experiments.bundled_models.english import (
    AUXILIARIES,
    BE,
    DETERMINERS,
    DO,
    HAVE,
    PREPOSITIONS,
    PRONOUNS,
    Words,
    bare,
    base_of,
    inflected,
    is_plural,
    listed,
    lower_first,
    upper_first,
    verb_forms,
)
from experiments.bundled_models.word_swaps import antonyms, dates, entity_kind

_WITH_NOT = (*BE - {"am"}, *HAVE, *DO, "could", "would", "should")
_CONTRACTED = {each: f"{each}n't" for each in _WITH_NOT} | {"can": "can't", "will": "won't"}
_WITHOUT_NOT = {each: aux for aux, each in _CONTRACTED.items()} | {"cannot": "can"}
_THERE_IS = re.compile(r"\b([Tt]here (?:is|are|was|were)) (a|an|some|many|several|no)\b")
_PAST_OF = {"is": "was", "am": "was", "are": "were", "can": "could", "may": "might", "has": "had"}
_PAST_OF |= {"have": "had", "do": "did", "does": "did"}
_PRESENT_OF = {"was": "is", "were": "are", "could": "can", "did": "will"}
_NAME = r"[A-Z][a-z]+(?: [A-Z][a-z]+)*"
_NAMES = re.compile(rf"(?<![\w.'-]){_NAME}(?![\w-])")
_THAN = re.compile(
    r"(?P<one>[\w' -]{2,40}?) (?P<verb>is|are|was|were|has|have|had) "
    r"(?P<how>(?:(?:much|far|slightly|a bit) )?(?:more|less|fewer|[a-z]+er)(?: [a-z]+)?) than "
    r"(?P<two>[\w' -]{2,40}?)(?P<end>[.?!]?)"
)
_FROM_TO = re.compile(rf"\bfrom ({_NAME}) to ({_NAME})\b")
_TIMES = {"is": ("was", "will be"), "are": ("were", "will be"), "was": ("is", "will be")}
_TIMES |= {"were": ("are", "will be")}


def negate(text: str, draw: random.Random) -> str | None:
    """Negates the sentence or removes its negation: "bit" → "did not bite" and the reverse."""
    words = text.split()
    if affirmed := _affirmed(words):
        return " ".join(affirmed)
    if match := _THERE_IS.search(text):
        quantifier = (
            draw.choice(("some", "several")) if "are" in match[1] or "were" in match[1] else "a"
        )
        amount = quantifier if match[2] == "no" else "no"
        return text[: match.start(2)] + amount + text[match.end(2) :]
    first = bare(words[0])
    question = next((i for i, word in enumerate(words[:2]) if bare(word) in _CONTRACTED), None)
    if text.rstrip().endswith("?") and question is not None and "not" not in words:
        words[question] = upper_first(_CONTRACTED[bare(words[question])], words[question])
        return " ".join(words)
    if base_of(first, "base") and len(words) > 1 and bare(words[1]) in DETERMINERS:
        return " ".join([draw.choice(("Do not", "Don't", "Never")), first, *words[1:]])
    if verb := finite_verb(words):
        return " ".join(_denied(words, verb))
    return None


def _denied(words: Words, verb: Verb) -> Words:
    before, word, after = words[: verb.place], words[verb.place], words[verb.place + 1 :]
    if verb.form == "auxiliary":
        return [*before, "cannot" if word == "can" else f"{word} not", *after]
    ending = word[len(word.rstrip(".,;:!?")) :]
    auxiliary = {"s": "does", "past": "did", "base": "do"}[verb.form]
    return [*before, f"{auxiliary} not", verb.base + ending, *after]


def _affirmed(words: Words) -> Words | None:
    """The words without the first "not", "n't" or "never" of a finite verb."""
    for place, word in enumerate(words):
        if bare(word) in _WITHOUT_NOT:
            auxiliary, after = _WITHOUT_NOT[bare(word)], words[place + 1 :]
        elif bare(word) in AUXILIARIES and place + 1 < len(words) and words[place + 1] == "not":
            auxiliary, after = bare(word), words[place + 2 :]
        elif word == "never" and place:
            return words[:place] + words[place + 1 :]
        else:
            continue
        if not after:
            return None
        verb = after[0].rstrip(".,;:!?")
        form = {"does": "s", "did": "past", "do": "base"}.get(auxiliary)
        if place and form and base_of(verb, "base"):
            ending = after[0][len(verb) :]
            return [*words[:place], inflected(verb, form) + ending, *after[1:]]
        return [*words[:place], upper_first(auxiliary, word), *after]
    return None


def change_tense(text: str, draw: random.Random) -> str | None:
    """Changes the tense of the verb: past, present or future."""
    words = text.split()
    verb = finite_verb(words)
    if not verb:
        return None
    before, word, after = words[: verb.place], words[verb.place], words[verb.place + 1 :]
    if verb.form != "auxiliary":
        ending = word[len(word.rstrip(".,;:!?")) :]
        choices = [f"will {verb.base}"]
        if verb.form != "past":
            choices.append(inflected(verb.base, "past"))
        return " ".join([*before, draw.choice(choices) + ending, *after])
    if word in _TIMES:
        return " ".join([*before, draw.choice(_TIMES[word]), *after])
    if word in {"will", "would"} and after and base_of(bare(after[0]), "base"):
        stem = after[0].rstrip(".,;:!?")
        return " ".join([*before, inflected(stem, "past") + after[0][len(stem) :], *after[1:]])
    replacement = _PAST_OF.get(word) or _PRESENT_OF.get(word)
    return " ".join([*before, replacement, *after]) if replacement else None


def exchange_roles(text: str, draw: random.Random) -> str | None:
    """Exchanges two participants, such as the subject and the object."""
    rules = [_exchange_around_verb, _exchange_around_than, _exchange_names]
    for rule in draw.sample(rules, len(rules)):
        if altered := rule(text, draw):
            return altered
    return None


def _exchange_around_than(text: str, _draw: random.Random) -> str | None:
    """Makes "Y is bigger than X" of "X is bigger than Y"."""
    match = _THAN.fullmatch(text)
    if not match or match["two"].lower() in {"ever", "usual", "expected", "before"}:
        return None
    one, two = lower_first(match["one"].split()), match["two"].split()
    verb = match["verb"]
    if is_plural(one) != is_plural(two):
        verb = _of_other_number(verb)
    start = upper_first(" ".join(as_subject(two)), text)
    return f"{start} {verb} {match['how']} than {' '.join(as_object(one))}{match['end']}"


def _of_other_number(verb: str) -> str:
    pairs = {"is": "are", "was": "were", "has": "have", "had": "had"}
    return pairs.get(verb) or {plural: each for each, plural in pairs.items()}.get(verb, verb)


def _exchange_names(text: str, draw: random.Random) -> str | None:
    """Exchanges two names."""
    if route := _FROM_TO.search(text):
        return f"{text[: route.start()]}from {route[2]} to {route[1]}{text[route.end() :]}"
    names = [place for place in _NAMES.finditer(text) if _is_name(place)]
    capitals = sum(word[0].isupper() for word in text.split())
    if not 2 <= len(names) <= 5 or 2 * capitals > len(text.split()) + 2:  # a headline
        return None
    one, two = sorted(draw.sample(names, 2), key=re.Match.start)
    if not _alike(one, two):
        return None
    between = text[one.end() : two.start()]
    return text[: one.start()] + two[0] + between + one[0] + text[two.end() :]


def _is_name(place: re.Match[str]) -> bool:
    first = bare(place[0].split()[0])
    if bare(place[0]) in dates() or first in PRONOUNS or entity_kind(place[0]) == "nationalities":
        return False
    no_name = DETERMINERS | PREPOSITIONS | listed("no_subjects")
    is_word = first in no_name or first in antonyms() or first in verb_forms()
    if is_word and (" " not in place[0] or first in no_name):
        return False
    before = place.string[: place.start()].rstrip()
    if before and before[-1] not in '.!?:"“':
        return True
    next_word = bare((place.string[place.end() :].split() or ["."])[0])
    verb = next_word in AUXILIARIES or base_of(next_word, "s") or base_of(next_word, "past")
    return bool(verb) and next_word not in listed("common_nouns")


def _alike(one: re.Match[str], two: re.Match[str]) -> bool:
    """Whether two names may be exchanged; not, as far as listed, a person's name and a place's."""
    articles = [re.search(r"\b(?:the|an?) $", each.string[: each.start()]) for each in (one, two)]
    people = {"women", "men", "surnames"}
    kinds = [entity_kind(each[0]) for each in (one, two)]
    if None not in kinds and (kinds[0] in people) != (kinds[1] in people):
        return False
    return (articles[0] is None) == (articles[1] is None)


def _exchange_around_verb(text: str, _draw: random.Random) -> str | None:
    clause = transitive_clause(text.split())
    if not clause:
        return None
    subject, verb, thing, rest = clause
    if is_plural(subject) != is_plural(thing):
        if verb[0] in {"is", "are", "was", "were", "has", "have"}:
            verb = [_of_other_number(verb[0]), *verb[1:]]
        elif base_of(verb[-1], "past") is None:
            return None
    ending = thing[-1][len(thing[-1].rstrip(".,;:!?")) :]
    thing = [*thing[:-1], thing[-1].rstrip(".,;:!?")]
    start, end = as_subject(thing), as_object(lower_first(subject))
    sentence = " ".join([*start, *verb, *end]) + ending
    return " ".join([upper_first(sentence, text), *rest])
