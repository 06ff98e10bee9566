"""Sentences made by a seeded script, for a teacher to label.

A student that learns from a teacher's vectors needs sentences, not labels, so text may be
generated: descriptions of everyday scenes and questions of fact, of which the permissive corpora
hold few (the words for them are in `scenes.json` and `questions.json`), and short spans of real
sentences, which teach words and bi-grams almost one by one.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

_SCENES = Path(__file__).with_name("scenes.json")
_QUESTIONS = Path(__file__).with_name("questions.json")
# One or more capitalized words behind another word.
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)*")
_SLOT = re.compile(r"\{(\w+)\}")
_PLURALS = ("two ", "three ", "four ", "some ", "several ", "a few ")


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


def _indefinite(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _with_article(subject: str, draw: random.Random) -> str:
    if subject.split()[0] in {"two", "three", "four", "some", "several", "a"}:
        return subject
    article = draw.choice(("a", "a", "a", "the", "one"))
    return _indefinite(subject) if article == "a" else f"{article} {subject}"


def _auxiliary(subject: str, draw: random.Random) -> str:
    if subject.startswith(_PLURALS):
        return draw.choice(("are", "are", ""))
    return draw.choice(("is", "is", "is", "is not", ""))
