"""Sentences made by a seeded script, for a teacher to label.

A student that learns from a teacher's vectors needs sentences, not labels, so text may be
generated. Descriptions of everyday scenes, questions of fact and opinions are generated because the
permissive corpora hold few of them (their words are in `scenes.json`, `questions.json` and
`opinions.json`). Short spans of real sentences teach words and bi-grams almost one by one. The
module `alterations` alters whole real sentences.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from experiments.bundled_models.english import indefinite, is_plural, plural

_SCENES = Path(__file__).with_name("scenes.json")
_QUESTIONS = Path(__file__).with_name("questions.json")
_OPINIONS = Path(__file__).with_name("opinions.json")
_DESCRIPTIONS = 0.4  # the share of descriptions among the opinions
# One or more capitalized words behind another word.
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)*")
_SLOT = re.compile(r"\{(\w+)\}")
# The places at which the Penn Treebank separates tokens; reviews are often in its format.
_BEFORE_TOKEN = re.compile(r"(?<=\w)(?=n't\b)|(?<=\w)(?='(?!t\b))|(?<=\w)(?=[.,:;])")
_PLURALS = ("two ", "three ", "four ", "some ", "several ", "a few ")

Words = list[str]


def generate_captions(count: int, *, seed: int = 0) -> Iterator[str]:
    """Descriptions of everyday scenes, such as "A woman is slicing a carrot in a kitchen.".

    Args:
        count: The number of descriptions; repetitions are possible.
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
        sentences: The sentences to cut spans from.
        count: The number of spans.
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
    """Questions such as "How many museums are there in Paris?", which need not have an answer.

    Args:
        sentences: The sentences whose nouns and names fill the frames, as often as they occur.
        nouns: The words that count as nouns, in lowercase.
        count: The number of questions; repetitions are possible.
        seed: Same seed and sentences, same questions.

    Yields:
        One question each.
    """
    draw = random.Random(seed)
    frames = json.loads(_QUESTIONS.read_text(encoding="utf-8"))["frames"]
    names = [name for sentence in sentences for name in _NAME.findall(sentence)]
    words = (word.strip(",.?") for sentence in sentences for word in sentence.split())
    things = [word for word in words if len(word) > 2 and word in nouns]
    if not names or not things:
        raise ValueError("Expected sentences with nouns and capitalized names in them.")
    single = [word for word in things if not is_plural([word])] or things
    fillers: dict[str, Callable[[], str]] = {
        "name": lambda: draw.choice(names),
        "noun": lambda: draw.choice(things),
        "nouns": lambda: plural(draw.choice(single)),
        "a_noun": lambda: indefinite(draw.choice(single)),
        "year": lambda: str(draw.randint(1066, 2020)),
        "number": lambda: str(draw.randint(2, 12)),
    }
    for _ in range(count):
        yield _SLOT.sub(lambda slot: fillers[slot[1]](), draw.choice(frames))


def generate_opinions(count: int, *, seed: int = 0) -> Iterator[str]:
    """Opinions as in reviews, and plain descriptions of the same subjects.

    Examples are "a gorgeous, witty thriller that never loses its way", "The acting is wooden and
    the plot makes no sense." and "A young lawyer returns to her home town after her father's
    death.". A student learns to distinguish praise, criticism and descriptions without an opinion.

    Args:
        count: The number of texts; repetitions are possible.
        seed: Same seed, same sentences.

    Yields:
        One sentence or phrase each.
    """
    draw = random.Random(seed)
    words = json.loads(_OPINIONS.read_text(encoding="utf-8"))
    for _ in range(count):
        kind = "descriptions" if draw.random() < _DESCRIPTIONS else "opinions"
        yield _styled(_filled(draw.choice(words[kind]), words, draw), draw)


def _filled(frame: str, words: dict[str, Words], draw: random.Random) -> str:
    """Fills a frame's slots with texts, which may have slots, too; no text twice if possible."""
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
        return indefinite(text) if slot[1].startswith("a_") else text

    return _SLOT.sub(fill, frame)


def _styled(sentence: str, draw: random.Random) -> str:
    """The sentence as written, without full stop, capitalized, or as lowercase tokens."""
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
    return indefinite(subject) if article == "a" else f"{article} {subject}"


def _auxiliary(subject: str, draw: random.Random) -> str:
    if subject.startswith(_PLURALS):
        return draw.choice(("are", "are", ""))
    return draw.choice(("is", "is", "is", "is not", ""))
