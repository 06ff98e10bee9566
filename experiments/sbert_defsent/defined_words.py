"""Definitions of words of one token, in three parts without a common word."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from use_st5._streams import batched

Split = Literal["train", "dev", "test"]
# Of ten words so many train, one is for choices, and one for a last look.
_TRAIN = 8
_READ_AT_ONCE = 4096


def split_of(word: str) -> Split:
    """The part that a word belongs to: eight of ten words train, the ninth is dev, the last test.

    A word is in the same part wherever and however it is written: case and accents, which some
    vocabularies do not tell apart, do not count. Nothing is drawn: other dictionaries, or one more
    of them, leave every word where it is.
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
    the parts share no word. What two dictionaries say alike is given once.

    Args:
        examples: A word and its definition each, as `experiments.corpora.definitions` gives them.
        single_ids: Words → int `[words]`, the id of each that is one token, 0 for the others: that
            of a BERT's tokenizer.
        split: The part.

    Yields:
        `{"definition": str, "word": int}`, in the order of the examples: to be shuffled.
    """
    seen: set[tuple[int, str]] = set()
    for read in batched(examples, _READ_AT_ONCE):
        chunk = [example for example in read if split_of(example["word"]) == split]
        if not chunk:
            continue
        ids = single_ids([example["word"] for example in chunk])
        for example, word in zip(chunk, ids.tolist(), strict=True):
            definition = example["definition"].strip()
            if word and definition and (word, definition) not in seen:
                seen.add((word, definition))
                yield {"definition": definition, "word": word}
