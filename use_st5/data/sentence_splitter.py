"""Splitting running text into sentences by rules of punctuation."""

from __future__ import annotations

import re


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


# These never end a sentence: the next word belongs to them.
_TITLES = _words(
    "mr mrs ms messrs dr prof rev revd hon gen col maj capt cmdr lieut lt sgt cpl pte adm st ste "
    "mt ft gov sen rep pres supt mme mlle mlles esq e.g i.e cf viz vs al eds approx ca "
    "fr br dept univ"
)
# These belong to a number that follows; without a number, "No." is a sentence.
_BEFORE_NUMBERS = _words(
    "no nos vol vols p pp fig figs ch chap sec sect art arts op bk jan feb mar apr jun jul aug sep "
    "sept oct nov dec"
)
# These may end a sentence: they do if the next word usually starts one.
_MAYBE_FINAL = _words(
    "etc inc ltd co corp bros jr sr a.m p.m a.d b.c ph.d m.d b.a m.a u.s u.k u.n d.c e.u "
    "ave blvd rd"
)
_STARTERS = _words(
    "a an the this that these those there here he she it we you they i his her its our their my "
    "your in on at by for from with as when while after before since if although though but and "
    "or so yet however then now what who why how where not no yes one some many most all each "
    "every both"
)

# Terminators, closing quotes and brackets, white space, then opening quotes and brackets before a
# first word. The quantifiers are possessive, and a match is tried only at the start of a run of
# terminators, so a run of any length takes linear time.
_CANDIDATE = re.compile(
    r"""(?<![.!?…。！？])(?P<end>[.!?…]++|[。！？]++)
        (?P<close>["'”’»)\]}」』”）]*+)
        (?P<space>\s+|(?<=[。！？」』”）])(?=\S))
        (?=(?P<open>["'“‘«(\[{¿¡「『（—–-]*\s?)(?P<next>[^\W_]+))""",
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"[^\s\"'“”‘’«»()\[\]{}—–]*\Z")
# The number of characters before a full stop that are examined: longer than any abbreviation.
_WINDOW = 40
_WHITE_SPACE = re.compile(r"\s+")


def split_sentences(text: str) -> list[str]:
    """Splits running text into its sentences, in order.

    A sentence ends at `.`, `!`, `?` or an ellipsis, including the closing quotes and brackets after
    it, if white space and an upper-case letter or a digit follow (perhaps after an opening quote).
    It ends at `。！？` without these conditions. It does not end after titles (`Mr.`), initials
    (`J. R. Smith`), abbreviations before numbers (`No. 7`) and inside decimals. After
    abbreviations that may stand last (`etc.`, `U.S.`) it ends if the next word often starts a
    sentence. White space, including line ends, becomes one space. No other character is lost.

    The rules are made for English prose; text without capitals is split at `!` and `?` only if
    these end the whole text.

    Args:
        text: One paragraph or more.

    Returns:
        Sentences without white space at their ends; none for blank text.
    """
    text = _WHITE_SPACE.sub(" ", text).strip()
    sentences: list[str] = []
    start = 0
    for candidate in _CANDIDATE.finditer(text):
        if _ends_sentence(text, start, candidate):
            sentences.append(text[start : candidate.end("close")])
            start = candidate.end("space")
    if start < len(text):
        sentences.append(text[start:])
    return sentences


def _ends_sentence(text: str, start: int, candidate: re.Match[str]) -> bool:
    end, following = candidate["end"], candidate["next"]
    if end[0] in "。！？":
        return True
    first = following[0]
    # A letter of a script without capitals, such as Chinese or Arabic, may start a sentence, too.
    has_no_case = first.isalpha() and first.upper() == first.lower()
    if not (first.isupper() or first.isdigit() or has_no_case):
        return False
    if end != "." or candidate["close"]:
        return True
    stop = candidate.start("end")
    return _full_stop_ends(text[max(start, stop - _WINDOW) : stop], following)


def _full_stop_ends(before: str, following: str) -> bool:
    """Whether a single full stop after `before`, the end of the sentence so far, ends it."""
    word = _LAST_WORD.search(before).group()  # type: ignore[union-attr]
    lower = word.casefold()
    if lower in _TITLES:
        return False
    if lower in _BEFORE_NUMBERS:
        return not following[0].isdigit()
    if lower in _MAYBE_FINAL:
        return following.casefold() in _STARTERS
    if len(word) == 1 and word.isupper():  # "you and I. He" against "I. Newton", "J. Smith"
        is_pronoun = word == "I" and before[:-1].rstrip()[-1:].islower()
        return is_pronoun and following.casefold() in _STARTERS
    # "1. Introduction": if a number is the whole sentence so far, it belongs to the next words.
    return not (word == before and word.isdigit())
