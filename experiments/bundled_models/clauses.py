"""Clauses of English sentences, as far as word lists find them: verb, subject and object.

There is no tagger: if the lists leave a doubt, the functions find nothing, and a rule of alteration
does not apply. Sentences are lists of words with the punctuation that follows them.
"""

from __future__ import annotations

from dataclasses import dataclass

from experiments.bundled_models.english import (
    AUXILIARIES,
    BE,
    CONNECTIVES,
    DETERMINERS,
    HAVE,
    MODALS,
    PLURAL_PRONOUNS,
    PLURALS,
    PREPOSITIONS,
    PRONOUNS,
    Words,
    bare,
    base_of,
    ends_clause,
    inflected,
    is_participle,
    is_plural,
    listed,
    passive_possible,
    verb_forms,
)

_NOT = frozenset(("and", "or", "not", "be", "been", "being", "very", "more", "most", "so", "too"))
_ALONE = frozenset(("this", "that", "these", "those", "all", "both"))
_BEHIND_SUBJECT = frozenset(("down", "up", "out", "outside", "inside"))
_NO_SUBJECT = (DETERMINERS - _ALONE) | (PREPOSITIONS - _BEHIND_SUBJECT) | AUXILIARIES | _NOT
_OBJECTS = frozenset(("him", "her", "them", "me", "us", "that", "what", "how", "why"))
_BEGINS_OBJECT = DETERMINERS | PRONOUNS | listed("adverbs") | _OBJECTS
_BEHIND_NOUN = CONNECTIVES | AUXILIARIES | listed("adverbs")
# "watches a dog jump"
_BEFORE_CLAUSE = frozenset(("watch", "see", "hear", "help", "make", "let"))
_SUBJECT_OF = {"me": "I", "him": "he", "her": "she", "us": "we", "them": "they"}
_SUBJECT_OF |= {"it": "it", "you": "you"}
_OBJECT_OF = {subject.lower(): each for each, subject in _SUBJECT_OF.items()}


@dataclass(frozen=True)
class Verb:
    """A finite verb of a sentence.

    Attributes:
        place: The index of its word.
        base: "be", "bite", … or the auxiliary itself.
        form: "auxiliary", "s", "past" or "base".
    """

    place: int
    base: str
    form: str


def finite_verb(words: Words) -> Verb | None:
    """The first finite verb behind a subject, if the word lists know it beyond doubt."""
    lower = [bare(word) for word in words]
    for place, word in enumerate(lower):
        if word == words[place] and word in AUXILIARIES and place and _helps(lower, place):
            return Verb(place, "be" if word in BE else word, "auxiliary")
    verbs = [verb for place in range(1, len(words)) if (verb := _lexical(words, lower, place))]
    if len(verbs) > 1 and not _two_clauses(words, verbs[0].place, verbs[1].place):
        return None
    return verbs[0] if verbs else None


def _two_clauses(words: Words, first: int, second: int) -> bool:
    """Whether a connective or punctuation stands between two verbs."""
    connected = any(bare(word) in CONNECTIVES for word in words[first + 1 : second])
    return connected or any(ends_clause(word) for word in words[first:second])


def _helps(lower: Words, place: int) -> bool:
    """Whether the word is used as an auxiliary: not in "has a dog" or "did it"."""
    if lower[place] in BE | MODALS:
        return True
    rest = [word for word in lower[place + 1 : place + 4] if not word.endswith("ly")]
    rest = [word for word in rest if word not in {"not", "never", "also", "always", "already"}]
    if lower[place] in HAVE:
        return bool(rest) and is_participle(rest[0])
    return bool(rest) and base_of(rest[0], "base") is not None


def _lexical(words: Words, lower: Words, place: int) -> Verb | None:
    word, before = words[place].rstrip(".,;:!?"), lower[place - 1]
    forms = verb_forms().get(word)
    if not forms or before in _NO_SUBJECT or ends_clause(words[place - 1]):
        return None
    if before.endswith(("'s", "ing", "ed")):
        return None
    if base := base_of(word, "s"):
        plural_noun = word in listed("common_nouns") and before not in {"he", "she", "it", "who"}
        doubtful = plural_noun and (place != 2 or lower[0] not in DETERMINERS)
        return None if doubtful or is_plural([before]) else Verb(place, base, "s")
    if base := base_of(word, "past"):
        if base == word and before not in {"he", "she", "it"}:
            return None
        doubtful = inflected(base, "participle") == word and base not in listed("intransitive")
        if doubtful and (ends_clause(words[place]) or not _begins_object(words[place + 1 :])):
            return None
        return Verb(place, base, "past")
    if base := base_of(word, "base"):
        plural_phrase = is_plural([before]) and DETERMINERS & set(
            lower[max(0, place - 3) : place - 1]
        )
        if before in PLURAL_PRONOUNS or before in PLURALS or plural_phrase:
            return Verb(place, base, "base")
    return None


def _begins_object(words: Words) -> bool:
    """Whether an object, a clause or an adverb begins, so that "opened" is not a participle."""
    if not words:
        return False
    word = bare(words[0])
    return word in _BEGINS_OBJECT or not words[0].islower() or word.endswith("ly")


def noun_phrase_end(words: Words, start: int) -> int:
    """The index at which the noun phrase from `start` ends; `start` if there is none.

    The phrase begins with a determiner or is a name. It ends before a preposition, a connective,
    an adverb or a verb, or after punctuation. It has at most five words.
    """
    if start >= len(words):
        return start
    named = words[start][0].isupper() and start > 0
    if bare(words[start]) not in DETERMINERS and not named:
        return start
    for place in range(start, len(words)):
        word = bare(words[place])
        if place > start and (word in PREPOSITIONS - {"of"} or word in _BEHIND_NOUN):
            return place if place - start <= 5 else start
        if place > start and (word.endswith("ly") or (word.endswith("ing") and place > start + 1)):
            return place if place - start <= 5 else start
        if named and not words[place][0].isupper():
            return place
        if ends_clause(words[place]):
            return place + 1 if place + 1 - start <= 5 else start
    return len(words) if len(words) - start <= 5 else start


def transitive_clause(words: Words) -> tuple[Words, Words, Words, Words] | None:
    """Subject, verb, object and rest of a sentence that begins with a transitive clause.

    Returns:
        The words of each part; the object includes the punctuation behind it. The verb is one word
        in the past or the present tense, or a form of "be" and a word in -ing.
    """
    verb = finite_verb(words)
    if not verb or not 0 < verb.place <= 6 or not _simple_subject(words[: verb.place]):
        return None
    start = verb.place + 1
    if verb.form == "auxiliary":
        if verb.base != "be" or start >= len(words) or not base_of(bare(words[start]), "ing"):
            return None
        start += 1
    base = base_of(bare(words[start - 1]), "ing") if verb.form == "auxiliary" else verb.base
    if not base or not passive_possible(base) or words[start - 1] != bare(words[start - 1]):
        return None
    end = _object_end(words, start)
    if end == start or (base in _BEFORE_CLAUSE and end - start > 2 and _ends_in_verb(words, end)):
        return None
    return words[: verb.place], words[verb.place : start], words[start:end], words[end:]


def _ends_in_verb(words: Words, end: int) -> bool:
    return base_of(bare(words[end - 1]), "base") is not None


def _simple_subject(subject: Words) -> bool:
    """Whether all the words are a pronoun, a name, or one noun phrase."""
    if any(not each[-1].isalnum() for each in subject):
        return False
    if len(subject) == 1:
        word = bare(subject[0])
        no_name = DETERMINERS | listed("no_subjects")
        return word in _OBJECT_OF or (subject[0][0].isupper() and word not in no_name)
    return noun_phrase_end(subject, 0) == len(subject) or all(each[0].isupper() for each in subject)


def _object_end(words: Words, start: int) -> int:
    if start < len(words) and words[start].strip(".,;:!?") in {"me", "him", "us", "them"}:
        return start + 1
    if [bare(word) for word in words[start : start + 2]] == ["each", "other"]:
        return start
    end = noun_phrase_end(words, start)
    if end < len(words) and bare(words[end]) not in PREPOSITIONS and words[end - 1][-1].isalnum():
        return start  # a clause may follow, or an adverb's phrase
    return end


def as_subject(phrase: Words) -> Words:
    """The noun phrase as it is before a verb: "I" for "me"."""
    alone = len(phrase) == 1
    return [_SUBJECT_OF.get(phrase[0], phrase[0])] if alone else phrase


def as_object(phrase: Words) -> Words:
    """The noun phrase as it is behind a verb: "me" for "I"."""
    alone = len(phrase) == 1
    return [_OBJECT_OF.get(bare(phrase[0]), phrase[0])] if alone else phrase
