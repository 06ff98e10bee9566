"""Hashes of texts that do not depend on case, spaces and punctuation."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Behind a letter `+` and `#` count: "C", "C++" and "C#" are not the same.
_ASCII_OTHERS = re.compile(r"((?<![\w+#])[+#]+|[^\w+#\u0080-\U0010ffff]+)+")
_OTHERS = re.compile(r"[^\w\u0000-\u007f]")
# The number of texts that are hashed at once.
_AT_ONCE = 100_000


def normalized(sentence: str) -> str:
    """Returns the lowercase words of a sentence; they are equal for all copies of it.

    Marks, such as the vowel signs of Indic scripts, and emoji are kept, and so is a text of
    punctuation only.
    """

    def mark_or_space(match: re.Match[str]) -> str:
        # Unicode's marks (Mn, Mc, Me) and symbols (So) stay.
        category = unicodedata.category(match[0])
        return match[0] if category[0] == "M" or category == "So" else " "

    text = sentence.lower()
    words = _OTHERS.sub(mark_or_space, text)
    return _ASCII_OTHERS.sub(" ", words).strip() or text.strip()


def text_hashes(texts: pa.ChunkedArray) -> np.ndarray:
    """A hash of each text of a column of large_string, as `normalized`, uint64 `[texts]`."""
    hashes = np.zeros(len(texts), np.uint64)
    for start in range(0, len(texts), _AT_ONCE):
        part = texts.slice(start, _AT_ONCE).combine_chunks()
        # Arrow normalizes ASCII without `+` and `#` several times as fast.
        words = pc.replace_substring_regex(pc.ascii_lower(part), r"\W+", " ")
        words = pc.ascii_trim(words, " ")
        odd = pc.or_(pc.match_substring_regex(part, r"[+#]"), pc.equal(words, ""))
        plain = pc.and_not(pc.string_is_ascii(part), odd)
        others = [normalized(text) for text in part.filter(pc.invert(plain)).to_pylist()]
        words = pc.replace_with_mask(words, pc.invert(plain), pa.array(others, part.type))
        digests = [blake2b(text.encode(), digest_size=8).digest() for text in words.to_pylist()]
        hashes[start : start + len(part)] = np.frombuffer(b"".join(digests), ">u8")
    return hashes
