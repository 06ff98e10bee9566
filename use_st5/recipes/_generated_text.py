"""Sentences made by a seeded script, for a teacher to label.

A student that learns from a teacher's vectors needs sentences, not labels, so text may be
generated: descriptions of everyday scenes, of which the permissive corpora hold few (the words for
them are in `scenes.json`), and short spans of real sentences, which teach words and bi-grams almost
one by one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

_SCENES = Path(__file__).with_name("scenes.json")
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


def _with_article(subject: str, draw: random.Random) -> str:
    if subject.split()[0] in {"two", "three", "four", "some", "several", "a"}:
        return subject
    article = draw.choice(("a", "a", "a", "the", "one"))
    return f"an {subject}" if article == "a" and subject[0] in "aeiou" else f"{article} {subject}"


def _auxiliary(subject: str, draw: random.Random) -> str:
    if subject.startswith(_PLURALS):
        return draw.choice(("are", "are", ""))
    return draw.choice(("is", "is", "is", "is not", ""))
