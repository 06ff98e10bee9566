"""Training text without the sentences of test sets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

Example = TypeVar("Example", bound=Mapping[str, Any])

_NOT_WORDS = re.compile(r"\W+")


def normalized(sentence: str) -> str:
    """The lowercase words of a sentence, which are equal for copies of it."""
    return _NOT_WORDS.sub(" ", sentence.lower()).strip()


def without_held_out(examples: Iterable[Example], held_out: Collection[str]) -> Iterator[Example]:
    """The examples without held-out texts.

    Args:
        examples: Values by name; those that are strings are looked at.
        held_out: Sentences as `normalized` gives them.
    """
    for example in examples:
        texts = (value for value in example.values() if isinstance(value, str))
        if not any(normalized(text) in held_out for text in texts):
            yield example
