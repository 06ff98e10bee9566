"""Definitions of words of one token, in three parts that share no word."""

from __future__ import annotations

import hashlib
import itertools
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

Split = Literal["train", "dev", "test"]
# Eight of ten words are for training, one for development, and one for the test.
_TRAIN = 8
_READ_AT_ONCE = 4096


def split_of(word: str) -> Split:
    """The part that a word belongs to: eight of ten words train, the ninth is dev, the last test.

    Case and accents, which some vocabularies do not distinguish, do not change the part of a word.
    Nothing is random: with other or further dictionaries, every word stays in its part.
    """
    decomposed = unicodedata.normalize("NFKD", word.strip())
    letters = "".join(each for each in decomposed if not unicodedata.combining(each))
    digest = hashlib.sha256(letters.casefold().encode("utf-8", "surrogatepass")).digest()
    place = int.from_bytes(digest[:8], "big") % 10
    return "train" if place < _TRAIN else "dev" if place == _TRAIN else "test"


def defined_words(
    examples: Iterable[Mapping[str, Any]],
    single_ids: Callable[[Sequence[str]], np.ndarray],
    split: Split,
) -> Iterator[dict[str, Any]]:
    """The definitions of one part, each with the id of its word.

    As in DefSent (Tsukagoshi et al. 2021, section 4.1) only words that are one token are kept, and
    the parts share no word. A definition that two dictionaries share is yielded once.

    Args:
        examples: Words with definitions, as from `experiments.corpora.definitions`.
        single_ids: Words → int `[words]`, the id of each word that is one token, and 0 for the
            others: the method of a BERT's tokenizer.
        split: The part.

    Yields:
        `{"definition": str, "word": int}`, in the order of the examples, not shuffled.
    """
    seen: set[tuple[int, str]] = set()
    remaining = iter(examples)
    while batch := [*itertools.islice(remaining, _READ_AT_ONCE)]:
        chunk = [example for example in batch if split_of(example["word"]) == split]
        if not chunk:
            continue
        ids = single_ids([example["word"] for example in chunk])
        for example, word in zip(chunk, ids.tolist(), strict=True):
            definition = example["definition"].strip()
            if word and definition and (word, definition) not in seen:
                seen.add((word, definition))
                yield {"definition": definition, "word": word}
