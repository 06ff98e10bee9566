"""Hashes of texts that do not depend on case, spaces and punctuation."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from use_st5.io.lines import in_threads

# Behind a letter `+` and `#` count: "C", "C++" and "C#" are not the same.
_ASCII_OTHERS = re.compile(r"((?<![\w+#])[+#]+|[^\w+#\u0080-\U0010ffff]+)+")
_OTHERS = re.compile(r"[^\w\u0000-\u007f]")
# The number of texts that are hashed at once.
_AT_ONCE = 20_000


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
    parts = (texts.slice(start, _AT_ONCE) for start in range(0, len(texts), _AT_ONCE))
    return np.concatenate([np.zeros(0, np.uint64), *in_threads(_hashes, parts)])


def _hashes(texts: pa.ChunkedArray) -> np.ndarray:
    part = texts.combine_chunks()
    # Arrow normalizes ASCII without `+` and `#` several times as fast, and in threads.
    words = pc.ascii_trim(pc.replace_substring_regex(pc.ascii_lower(part), r"\W+", " "), " ")
    odd = pc.or_(pc.match_substring_regex(part, "[+#]"), pc.equal(words, ""))
    plain = pc.and_not(pc.string_is_ascii(part), odd)
    others = [normalized(text) for text in part.filter(pc.invert(plain)).to_pylist()]
    words = pc.replace_with_mask(words, pc.invert(plain), pa.array(others, part.type))
    digests = [blake2b(text.encode(), digest_size=8).digest() for text in words.to_pylist()]
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)
