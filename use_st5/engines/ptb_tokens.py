"""The tokens of `use_st5.tokenizers.ptb_tokenizer.PTBTokenizer`, without TensorFlow.

A text is cut at white space, and each part is split into tokens by itself, so that a part that was
seen before costs one look-up in a dictionary. The rules of the Treebank rarely look beyond a part:
at the beginning and the end of a text, and for `wanna 't`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# Marks a part if its place in the text matters; no text contains this character.
_EDGE = "\n"

_BEYOND_ASCII = {
    **dict.fromkeys("\u2018\u2019\u201b\u02bc\x91\x92", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\x93\x94", '"'),
    **dict.fromkeys("\u2012\u2013\u2014\u2015\x96\x97", "--"),
    "\u2026": "...",
    **dict.fromkeys(map(chr, [*range(0x20), *range(0x7F, 0x91), *range(0x95, 0x96)]), " "),
    **dict.fromkeys(map(chr, range(0x98, 0xA1)), " "),
    **dict.fromkeys(map(chr, range(0x2000, 0x200C)), " "),
    **dict.fromkeys("\u1680\u2028\u2029\u202f\u205f\u3000\ufeff", " "),
    "İ": "i\u0307",
}
_TRANSLATED = str.maketrans(_BEYOND_ASCII)
# New characters since Unicode 14: TensorFlow's tables of lower case do not know them. For a capital
# sigma next to one of them, the word ends there.
_NEW = (
    "888 890-891 898-89F 8C9-8D2 C3C CF3 ECE 180F 1AC1-1ACE 1DFA 2C2F 2C5F A7C0-A7C1 "
    "A7D0-A7D1 A7D3 A7D5-A7D9 A7F2-A7F4 FBC2 10570-1057A 1057C-1058A 1058C-10592 10594-10595 "
    "10597-105A1 105A3-105B1 105B3-105B9 105BB-105BC 10780-10785 10787-107B0 107B2-107BA "
    "10EFD-10EFF 10F82-10F85 11070 11073-11074 110C2 11241 11F00-11F42 13439-13455 1AFF0-1AFF3 "
    "1AFF5-1AFFB 1AFFD-1AFFE 1CF00-1CF2D 1CF30-1CF46 1DF00-1DF09 1DF0B-1DF1E 1DF25-1DF2A "
    "1E030-1E06D 1E08F 1E2AE 1E4D0-1E4F9"
)

# In TensorFlow's tables the first two are marks, which a capital sigma ignores; in later tables of
# Unicode they are not marks. The other two still are marks.
_WERE_MARKS, _MARKS = "\u1734\U0001171e", "\U000e01ee\U000e01ef"
_AS_MARKS, _BACK = str.maketrans(_WERE_MARKS, _MARKS), str.maketrans(_MARKS, _WERE_MARKS)


def _points(ranges: str) -> Iterator[int]:
    """The code points of ranges such as "41-5A 61"."""
    for each in ranges.split():
        first, _, last = each.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


_NOT_LOWERED = re.compile(f"[{''.join(map(chr, _points(_NEW)))}]")
# The digits of Unicode 15: Python 3.11 knows those of Unicode 14.
_DIGITS = r"\d\U00011f50-\U00011f59\U0001e4f0-\U0001e4f9"
# Word boundaries are those of ASCII.
_B = r"(?a:\b)"

_OPENING_AT_START = re.compile(r"""^"|``|([ (\[{<])(?:"|'')""")
_LAST_STOP = re.compile(r"""([^.])\.([\])}>"']*) *\Z""")
_RULES = tuple(
    (re.compile(pattern), rewrite)
    for pattern, rewrite in (
        (rf"([:,])([^{_DIGITS}]|\Z)", r" \1 \2"),
        (r"\.\.\.|--|[;@#$%&?!()\[\]{}<>]", r" \g<0> "),
        (r"''|\"", " '' "),
        (r"([^' ])('(?:[smd]|ll|re|ve)?|n't)('?)(?: |\Z)", r"\1 \2 \3 "),
        (
            rf"{_B}(?:(can)(not)|(gim|lem)(me)|(gon)(na)|(got)(ta)){_B}",
            r" \1\3\5\7 \2\4\6\8 ",
        ),
        (
            rf"{_B}(d)('ye){_B}|{_B}(more)('n){_B}|{_B}(wan)(na(?: |\Z))|(?:^| )('t)(is|was){_B}",
            r" \1\3\5\7 \2\4\6\8 ",
        ),
    )
)
# The rule for the first of these two words includes the space between them.
_TAKES_SPACE = "wanna 't"
# Words without punctuation that rules nevertheless split.
_PAIRS = frozenset({"cannot", "gimme", "lemme", "gonna", "gotta", "wanna"})


def normal(text: str) -> str:
    """A text in lower case, with the characters of a keyboard and spaces for all white space."""
    if text.isascii():
        return (text if text.isprintable() else text.translate(_TRANSLATED)).lower()
    return _lower(text.translate(_TRANSLATED))


def parts(text: str, *, first: bool = True, last: bool = True) -> list[str]:
    """The parts of a normal text between white space, for `tokens_of`.

    They are marked if their place matters: `first` and `last` are true at the ends of a text.
    """
    if _TAKES_SPACE in text:
        return [each + _EDGE * 2 for each in _tokens(text, first=first, last=last)]
    words = text.split()
    if words:
        if last and "." in words[-1]:
            words[-1] += _EDGE
        if first and text[0] in "\"'":
            words[0] = _EDGE + words[0]
    return words


def pieces(text: str, characters: int) -> Iterator[str]:
    """Cuts a normal text at spaces where `parts` allows it, at least `characters` apart."""
    start = 0
    while start < len(text):
        end = text.find(" ", start + characters)
        while end > 0 and text.startswith(_TAKES_SPACE, end - _TAKES_SPACE.index(" ")):
            end = text.find(" ", end + 1)
        end = end if end > 0 else len(text)
        yield text[start:end]
        start = end


def tokens_of(part: str) -> tuple[str, ...]:
    """The tokens of one part; some parts that are only a punctuation mark have none."""
    if part.isalnum() and part.isascii() and part not in _PAIRS:
        return (part,)
    if part.endswith(_EDGE * 2):  # It is a token already.
        return (part[:-2],)
    first, last = part.startswith(_EDGE), part.endswith(_EDGE)
    return tuple(_tokens(part.strip(_EDGE), first=first, last=last))


def _tokens(text: str, *, first: bool, last: bool) -> list[str]:
    """The tokens of a text, or of a part with the white space next to it."""
    spaced_text = text if first else f" {text}"
    spaced_text = _OPENING_AT_START.sub(r"\1 `` ", spaced_text)
    if last:
        spaced_text = _LAST_STOP.sub(r"\1 .\2 ", spaced_text)
    for pattern, rewrite in _RULES:
        spaced_text = pattern.sub(rewrite, spaced_text)
    return [each for each in spaced_text.split(" ") if each]


def _lower(text: str) -> str:
    """Lower case according to TensorFlow's tables of Unicode."""
    if text.isascii():
        return text.lower()
    were, are = (any(mark in text for mark in marks) for marks in (_WERE_MARKS, _MARKS))
    if were and not are:
        return _lower(text.translate(_AS_MARKS)).translate(_BACK)
    if not _NOT_LOWERED.search(text):
        return text.lower()
    pieces, separators = _NOT_LOWERED.split(text), _NOT_LOWERED.findall(text)
    return "".join(a.lower() + b for a, b in zip(pieces, [*separators, ""], strict=True))


# Letters, marks and numbers of Unicode 15, which Python 3.11 does not know, and those of Unicode
# 15.1, which TensorFlow does not know.
_LATER_LETTERS = (
    "CF3 ECE 10EFD-10EFF 1123F-11241 11F00-11F10 11F12-11F3A 11F3E-11F42 11F50-11F59 1342F "
    "13440-13455 1B132 1B155 1D2C0-1D2D3 1DF25-1DF2A 1E030-1E06D 1E08F 1E4D0-1E4F9 2B739 "
    "31350-323AF"
)
_UNKNOWN_LETTERS = "2EBF0-2EE5D"

_EXTRA, _MISSING = frozenset(_points(_LATER_LETTERS)), frozenset(_points(_UNKNOWN_LETTERS))


def is_letter(character: str) -> bool:
    """Whether RE2 takes a character for a letter, a mark or a number."""
    point = ord(character)
    if point in _EXTRA:
        return True
    return unicodedata.category(character)[0] in "LMN" and point not in _MISSING
