"""Sentences made by a seeded script, for a teacher to label.

A student that learns from a teacher's vectors needs sentences, not labels, so text may be
generated: descriptions of everyday scenes, questions of fact and opinions, of which the permissive
corpora hold few (the words for them are in `scenes.json`, `questions.json` and `opinions.json`),
short spans of real sentences, which teach words and bi-grams almost one by one, and alterations of
real sentences, in which a word is replaced, left out, put in, denied or exchanged. Two sentences at
random have little to do with each other, so a batch of them teaches a student little about what
moves the meaning of one. A sentence and its alteration share most words; how near they stay is for
the teacher to say (data augmentation for distillation as in TinyBERT, arXiv 1909.10351, section
3.2, there with a language model's words).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

_SCENES = Path(__file__).with_name("scenes.json")
_QUESTIONS = Path(__file__).with_name("questions.json")
_OPINIONS = Path(__file__).with_name("opinions.json")
_DESCRIPTIONS = 0.4  # their share among the opinions
# One or more capitalized words behind another word.
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)*")
_SLOT = re.compile(r"\{(\w+)\}")
# As the Penn Treebank separates them, in which reviews are often given.
_BEFORE_TOKEN = re.compile(r"(?<=\w)(?=n't\b)|(?<=\w)(?='(?!t\b))|(?<=\w)(?=[.,:])")
_VOWEL_SOUND = re.compile(
    r"(?!one\b|use|uni[oqtvf]|eu)[aeiou]|hon(?:est|ou?r)|hour|heir", re.IGNORECASE
)
_AUXILIARIES = (
    "am is are was were be been do does did has have had can could will would shall should may "
    "might must"
)
_PLURALS = ("two ", "three ", "four ", "some ", "several ", "a few ")

Words = list[str]


def generate_captions(count: int, *, seed: int = 0) -> Iterator[str]:
    """Descriptions of everyday scenes, such as "A woman is slicing a carrot in a kitchen.".

    Args:
        count: How many; repetitions are possible.
        seed: Same seed, same sentences.

    Yields:
        One sentence each.
    """
    draw = random.Random(seed)
    scenes = json.loads(_SCENES.read_text(encoding="utf-8"))
    verbs = tuple(scenes["actions"])
    for _ in range(count):
        subject = draw.choice(scenes["people" if draw.random() < 0.7 else "animals"])
        verb = draw.choice(verbs)
        words = [_with_article(subject, draw), _auxiliary(subject, draw), verb]
        words += [draw.choice(scenes["actions"][verb]), draw.choice(scenes["places"])]
        sentence = " ".join(word for word in words if word)
        yield sentence[0].upper() + sentence[1:] + draw.choice((".", ".", ""))


def generate_spans(
    sentences: Sequence[str], count: int, *, min_words: int = 1, max_words: int = 6, seed: int = 0
) -> Iterator[str]:
    """Random spans of consecutive words of given sentences.

    Args:
        sentences: What to cut from.
        count: How many spans.
        min_words: Fewest words of a span.
        max_words: Most words of a span.
        seed: Same seed and sentences, same spans.

    Yields:
        One span each.
    """
    draw = random.Random(seed)
    for _ in range(count):
        words = draw.choice(sentences).split()
        length = draw.randint(min_words, max_words)
        start = draw.randrange(max(1, len(words) - length + 1))
        yield " ".join(words[start : start + length])


def generate_questions(
    sentences: Sequence[str], nouns: Collection[str], count: int, *, seed: int = 0
) -> Iterator[str]:
    """Questions such as "How many museums are there in Paris?", whatever the answer.

    Args:
        sentences: Their nouns and names fill the frames, as often as they occur.
        nouns: What counts as a noun, in lowercase.
        count: How many; repetitions are possible.
        seed: Same seed and sentences, same questions.

    Yields:
        One question each.

    Raises:
        ValueError: The sentences hold no noun or no name.
    """
    draw = random.Random(seed)
    frames = json.loads(_QUESTIONS.read_text(encoding="utf-8"))["frames"]
    names = [name for sentence in sentences for name in _NAME.findall(sentence)]
    words = (word.strip(",.?") for sentence in sentences for word in sentence.split())
    things = [word for word in words if len(word) > 2 and word in nouns]
    if not names or not things:
        raise ValueError("Expected sentences with nouns and capitalized names in them.")
    fillers: dict[str, Callable[[], str]] = {
        "name": lambda: draw.choice(names),
        "noun": lambda: draw.choice(things),
        "a_noun": lambda: _indefinite(draw.choice(things)),
        "year": lambda: str(draw.randint(1066, 2020)),
        "number": lambda: str(draw.randint(2, 12)),
    }
    for _ in range(count):
        yield _SLOT.sub(lambda slot: fillers[slot[1]](), draw.choice(frames))


def generate_opinions(count: int, *, seed: int = 0) -> Iterator[str]:
    """Opinions as in reviews, and plain descriptions of the same subjects.

    Such as "a gorgeous, witty thriller that never loses its way", "The acting is wooden and the
    plot makes no sense." and "A young lawyer returns to her home town after her father's death.":
    a student learns what is good, what is bad, and what is no opinion.

    Args:
        count: How many; repetitions are possible.
        seed: Same seed, same sentences.

    Yields:
        One sentence or phrase each.
    """
    draw = random.Random(seed)
    words = json.loads(_OPINIONS.read_text(encoding="utf-8"))
    for _ in range(count):
        kind = "descriptions" if draw.random() < _DESCRIPTIONS else "opinions"
        yield _styled(_filled(draw.choice(words[kind]), words, draw), draw)


def generate_alterations(sentences: Sequence[str], *, seed: int = 0) -> Iterator[str]:
    """One alteration of each sentence.

    Args:
        sentences: Texts of at least two words; the words that come in are theirs, too.
        seed: Same seed and sentences, same alterations.

    Yields:
        A sentence that differs from the one at its place.

    Raises:
        ValueError: Sentences have fewer than two words, or there is just one.
    """
    if len(sentences) < 2 or any(" " not in sentence for sentence in sentences):
        raise ValueError("Expected at least two sentences, of two words or more each.")
    draw = random.Random(seed)
    for sentence in sentences:
        yield _altered(sentence, draw, lambda: draw.choice(sentences).split())


def _indefinite(noun: str) -> str:
    return f"{'an' if _VOWEL_SOUND.match(noun) else 'a'} {noun}"


def _filled(frame: str, words: dict[str, Words], draw: random.Random) -> str:
    """The frame with words in its slots, which may have slots, too; none twice if possible."""
    used: set[str] = set()
    person = draw.choice((("he", "his", "men"), ("she", "her", "women")))
    roles = dict(zip(("he", "his", "first"), person, strict=True))

    def fill(slot: re.Match[str]) -> str:
        name = slot[1].removeprefix("a_")
        if name in {"he", "his"}:
            return roles[name]
        choices = words[roles.get(name, name)]
        text = draw.choice([each for each in choices if each not in used] or choices)
        used.add(text)
        text = _SLOT.sub(fill, text)
        return _indefinite(text) if slot[1].startswith("a_") else text

    return _SLOT.sub(fill, frame)


def _styled(sentence: str, draw: random.Random) -> str:
    """As written, without the full stop, capitalized, or in lowercase tokens."""
    style = draw.random()
    if style < 0.3:
        return _BEFORE_TOKEN.sub(" ", sentence.lower())
    if style < 0.45:
        return sentence.removesuffix(".")
    return sentence if style < 0.6 else sentence[0].upper() + sentence[1:]


def _with_article(subject: str, draw: random.Random) -> str:
    if subject.split()[0] in {"two", "three", "four", "some", "several", "a"}:
        return subject
    article = draw.choice(("a", "a", "a", "the", "one"))
    return _indefinite(subject) if article == "a" else f"{article} {subject}"


def _auxiliary(subject: str, draw: random.Random) -> str:
    if subject.startswith(_PLURALS):
        return draw.choice(("are", "are", ""))
    return draw.choice(("is", "is", "is", "is not", ""))


def _altered(sentence: str, draw: random.Random, other: Callable[[], Words]) -> str:
    """Draws until something is different: an exchange of equal words is not."""
    while True:
        words = draw.choice(_KINDS)(sentence.split(), draw, other)
        if words and (altered := " ".join(words)) != sentence:
            return altered


def _replace(words: Words, draw: random.Random, other: Callable[[], Words]) -> Words:
    for place in _places(words, draw, share=4):
        words[place] = draw.choice(other())
    return words


def _remove(words: Words, draw: random.Random, _other: Callable[[], Words]) -> Words:
    gone = _places(words, draw, share=3)
    return [word for place, word in enumerate(words) if place not in gone]


def _insert(words: Words, draw: random.Random, other: Callable[[], Words]) -> Words:
    for place in sorted(_places(words, draw, share=4), reverse=True):
        words.insert(place, draw.choice(other()))
    return words


def _deny(words: Words, _draw: random.Random, _other: Callable[[], Words]) -> Words:
    """With "not" behind the first auxiliary verb, or without the first "not"."""
    auxiliaries = _AUXILIARIES.split()
    lower = [word.lower() for word in words]
    if "not" in lower:
        del words[lower.index("not")]
    elif place := next((i for i, word in enumerate(lower, 1) if word in auxiliaries), 0):
        words.insert(place, "not")
    return words


def _exchange(words: Words, draw: random.Random, _other: Callable[[], Words]) -> Words:
    """Two words change places: who did it to whom."""
    first, second = draw.sample(range(len(words)), 2)
    words[first], words[second] = words[second], words[first]
    return words


def _splice(words: Words, _draw: random.Random, other: Callable[[], Words]) -> Words:
    """The first half of one sentence, the second half of another."""
    end = other()
    return words[: (len(words) + 1) // 2] + end[len(end) // 2 :]


def _places(words: Words, draw: random.Random, *, share: int) -> set[int]:
    """Some places, at least one and at most one in `share`."""
    most = max(1, len(words) // share)
    return set(draw.sample(range(len(words)), draw.randint(1, most)))


_KINDS = (_replace, _replace, _remove, _insert, _deny, _exchange, _splice)
