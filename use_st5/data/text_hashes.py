"""Hashes of texts that do not depend on case, spaces and punctuation."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Behind a letter `+` and `#` count: "C", "C++" and "C#" are not the same.
_ASCII_OTHERS = re.compile(r"((?<![\w+#])[+#]+|[^\w+#\u0080-\U0010ffff]+)+")
_OTHERS = re.compile(r"[^\w\u0000-\u007f]")


def normalized(sentence: str) -> str:
    """Returns the lowercase words of a sentence; they are equal for all copies of it.

    Marks, such as the vowel signs of Indic scripts, and emoji are kept, and so is a text of
    punctuation only.
    """
    text = sentence.lower()
    words = _OTHERS.sub(_mark_or_space, text)
    return _ASCII_OTHERS.sub(" ", words).strip() or text.strip()


def _mark_or_space(match: re.Match[str]) -> str:
    """A mark (Unicode's Mn, Mc, Me) or a symbol (So) itself, and a space for anything else."""
    category = unicodedata.category(match[0])
    return match[0] if category[0] == "M" or category == "So" else " "


# The number of texts that are hashed at once.
_AT_ONCE = 100_000
_SPACE = ord(" ")
# Byte → byte: each ASCII character becomes that of `normalized`, but all spaces are kept.
_WORDS = bytes(
    ord(_ASCII_OTHERS.sub(" ", chr(code).lower())) if code < 128 else code for code in range(256)
)


def text_hashes(texts: pa.ChunkedArray) -> np.ndarray:
    """A hash of each text of a column of large_string, as `normalized`, uint64 `[texts]`."""
    hashes = np.zeros(len(texts), np.uint64)
    for start in range(0, len(texts), _AT_ONCE):
        part = texts.slice(start, _AT_ONCE).combine_chunks()
        word, symbol = (pc.match_substring_regex(part, p) for p in (r"\w", "[+#]"))
        plain = pc.and_(pc.string_is_ascii(part), pc.and_not(word, symbol))
        plain = plain.to_numpy(zero_copy_only=False)
        part_hashes = hashes[start : start + len(part)]
        part_hashes[plain] = _hashed(_ascii_words(part.filter(pa.array(plain))))
        other_texts = part.filter(pa.array(~plain)).to_pylist()
        part_hashes[~plain] = _hashed(normalized(text).encode() for text in other_texts)
    return hashes


def _hashed(words: Iterable[bytes]) -> np.ndarray:
    digests = b"".join([hashlib.blake2b(word, digest_size=8).digest() for word in words])
    return np.frombuffer(digests, ">u8").astype(np.uint64)


def _ascii_words(texts: pa.Array) -> list[bytes]:
    """Returns `normalized` of texts that are all ASCII, have a word, and have no `+` or `#`."""
    if not len(texts):
        return []
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
    data = texts.buffers()[2].slice(offsets[0], offsets[-1] - offsets[0]).to_pybytes()
    bounds = offsets - offsets[0]
    characters = np.frombuffer(data.translate(_WORDS), np.uint8)
    spaces = characters == _SPACE
    # Only the first of several spaces is kept, and none before or after a text.
    behind_space = np.concatenate([[True], spaces])[:-1]
    behind_space[bounds[bounds < len(characters)]] = True
    is_kept = ~(spaces & behind_space)
    words = characters[is_kept]
    bounds = np.concatenate([[0], np.cumsum(is_kept)])[bounds]
    starts, ends = bounds[:-1], bounds[1:]
    ends = ends - ((ends > starts) & (np.append(words, 0)[ends - 1] == _SPACE))
    content = words.tobytes()
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    return [content[start:end] for start, end in spans]
