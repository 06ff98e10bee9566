"""Strings that have broken programs before: thousands by a seed, or a few by Hypothesis.

All are bytes, since a graph takes any: valid UTF-8, UTF-8 with lone surrogates, and neither.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Check = Callable[[list[bytes]], None]
"""Raises an AssertionError, or whatever the library raises, where a batch breaks a promise."""

SENTENCES = (
    "How old are you?",
    "The cat sat on the mat, didn't it?",
    "Mr. Smith paid $3.88 (about €3.50) at 10:30 a.m. on Jan. 5.",
    '"They\'ll save," she said, "and can\'t lose."',
    "Ünïcödé ÉCOLE ΣΑΣ İstanbul ﬁnance ½ ẞ",
    "今日は晴れです。明日は雨？",
    "Он пришёл, а она — нет…",
    "مرحبا بالعالم، كيف حالك؟",
    "See http://example.com/a,b?c=1&d=2#e or mail me@example.org.",
)
_TREEBANK = """
    `` '' " ' ... -- . , : ; ? ! ( ) [ ] { } < > n't 's 'll cannot gonna 'tis d'ye wanna more'n
    $ % & # @ No. Mr. <empty> <extra_id_0> </s> ## $1,000.50
"""
_ALPHABETS = {
    "ascii": [chr(code) for code in range(32, 127)],
    "treebank": _TREEBANK.split(),
    "white": [*"\t\n\v\f\r \x1c\x1d\x1e\x1f\x85\xa0\u1680\u180e\u2028\u2029\u202f\u205f\u3000"]
    + [chr(code) for code in range(0x2000, 0x200C)]
    + ["\ufeff", "a"],
    "marks": ["e\u0301", "a\u0308\u0323", "\u0301", "\u0307", "i\u0307", "İ", "ı", "\u20e3", "ﷺ"],
    "emoji": ["😀", "👩\u200d👩\u200d👧", "👍🏽", "🇫🇷", "\u200d", "\ufe0f", "❤️", "🏴\U000e0067"],
    "right_to_left": ["שלום", "مرحبا", "\u202e", "\u200f", "\u2066", "ـ", "٣,٤٥", " "],
    "cjk": ["今", "日", "は", "。", "！", "「", "」", "한국", "ｶﾞ", "𠀀", "\u3099"],
    "control": [chr(code) for code in range(32)] + ["\x7f", "\x80", "\x91", "\x96", "\x9f", "x"],
    "edges": ["\ufffd", "\uffff", "\U0010ffff", "\ue000", "K", "ſ", "ǅ", "ß", "\u0345"],
}
_BROKEN = [b"\xff", b"\xc3", b"\xe9", b"\x80", b"\xc0\x80", b"\xf0\x9f", b"\xe2\x80"]
# Halves of surrogate pairs, and a code point beyond the last one.
_BROKEN += [b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"a", b" ", "é".encode()]
ALPHABETS = {name: [text.encode() for text in texts] for name, texts in _ALPHABETS.items()}
ALPHABETS["broken"] = _BROKEN
_NAMES = list(ALPHABETS)
_PIECES = [piece for pieces in ALPHABETS.values() for piece in pieces]
_SENTENCES = [text.encode() for text in SENTENCES]


def batch(seed: int, size: int, pieces: int = 12) -> list[bytes]:
    """Draws strings; the same arguments give the same strings.

    Args:
        seed: Any number.
        size: The number of strings.
        pieces: Characters, or words, of a string on average; a few have a thousand times as many.
    """
    draw = random.Random(seed)
    return [draw.choice(_MAKERS)(draw, _few(draw, pieces)) for _ in range(size)]


def _of_one_alphabet(draw: random.Random, pieces: int) -> bytes:
    return b"".join(draw.choices(ALPHABETS[draw.choice(_NAMES)], k=pieces))


def _of_all_alphabets(draw: random.Random, pieces: int) -> bytes:
    return b"".join(draw.choices(_PIECES, k=pieces))


def _of_words(draw: random.Random, pieces: int) -> bytes:
    """Pieces with spaces between them, like words."""
    return b" ".join(_of_one_alphabet(draw, draw.randrange(9)) for _ in range(pieces // 4 + 1))


def _changed_sentence(draw: random.Random, pieces: int) -> bytes:
    """A sentence with bytes taken out, doubled or put in."""
    text = bytearray(draw.choice(_SENTENCES))
    for _ in range(pieces // 4):
        place = draw.randrange(len(text) + 1)
        text[place : place + draw.randrange(3)] = draw.choice(_PIECES)
    return bytes(text)


def _repeated(draw: random.Random, pieces: int) -> bytes:
    """Repeats a pattern without spaces, now and then a thousand times."""
    pattern = b"".join(draw.choices(_PIECES, k=draw.randrange(1, 4)))
    return pattern * (pieces if draw.randrange(300) else 1000)


def _few(draw: random.Random, mean: int) -> int:
    return min(int(draw.expovariate(1 / mean)), 8 * mean)


_MAKERS = (_of_one_alphabet, _of_all_alphabets, _of_words, _changed_sentence, _repeated)

TEXTS = st.one_of(
    st.lists(st.sampled_from(_PIECES), max_size=30).map(b"".join),
    st.text(st.characters(codec=None), max_size=30).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    ),
    st.binary(max_size=30),
)
BATCHES = st.lists(TEXTS, min_size=1, max_size=12)
FEW = settings(
    max_examples=12,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
"""Of the ordinary tests: always the same examples."""


def cleaned(texts: Sequence[bytes]) -> list[str]:
    """The texts as Python reads them."""
    return [text.decode("utf-8", "replace") for text in texts]


def hold(check: Check, texts: list[bytes]) -> None:
    """Checks a batch; a failure shows the smallest batch that fails.

    Args:
        check: The promises.
        texts: The batch.

    Raises:
        AssertionError: A promise is broken.
    """
    error = _failure(check, texts)
    if error is not None:
        least = smallest(texts, lambda some: bool(some) and _failure(check, some) is not None)
        error = _failure(check, least) or error
        raise AssertionError(f"{least!r}: {type(error).__name__}: {error}") from error


def smallest(texts: list[bytes], fails: Callable[[list[bytes]], bool]) -> list[bytes]:
    """The fewest texts, and of these the fewest bytes, that still fail."""
    texts = _fewer(texts, fails)
    for place in range(len(texts)):

        def fails_with(text: list[int], place: int = place) -> bool:
            return fails([*texts[:place], bytes(text), *texts[place + 1 :]])

        texts[place] = bytes(_fewer(list(texts[place]), fails_with))
    return texts


def _fewer(items: list[Any], fails: Callable[[list[Any]], bool]) -> list[Any]:
    """Takes stretches of items away, halves first, as long as the rest fails."""
    size = max(len(items) // 2, 1)
    while size:
        start = 0
        while start < len(items):
            rest = items[:start] + items[start + size :]
            if fails(rest):
                items = rest
            else:
                start += size
        size //= 2
    return items


def _failure(check: Check, texts: list[bytes]) -> Exception | None:
    try:
        check(texts)
    except Exception as error:  # any error of the library counts
        return error
    return None
