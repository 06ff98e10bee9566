"""Running text: rules that split it into sentences, and sentences with their neighbours."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from use_st5.data.tables import LONGEST_ROW, ReadReport
from use_st5.io.lines import LongLine, as_paths, read_lines

# The number of lines that show the layout of a file; front matter alone would mislead.
_SAMPLE = 2000
# Prose wrapped at a fixed width has full lines of this many characters; a list of names has fewer.
_MIN_WIDTH, _MAX_WIDTH = 40, 120
# In wrapped prose about two thirds of the lines start in the middle of a sentence, with a small
# letter; if each line is a paragraph or a sentence, hardly any line does.
_MIN_SMALL_STARTS = 0.25
_MIN_BLANKS = 0.02
_SHORT = 0.75
_FINAL = (".", "!", "?", "…", '"', "'", "”", "’", ":", ")")


class TextReader:
    """An iterable over `{"previous": str, "sentence": str, "next": str}` of running text.

    Paragraphs end at blank lines, or at each line's end if a line holds a whole paragraph; the
    layout of each file is found from its first 2000 lines. Paragraphs are split into sentences by
    `split_sentences`; a sentence without any letter or digit is dropped. Files are decoded as
    UTF-8, a line that is no valid UTF-8 as windows-1252 (noted in the report). A line of more than
    ten million bytes is malformed, and left out. Neighbours may come from another paragraph, but
    not from another file.

    Args:
        path: A file (gzip or plain), a list of files, or a folder: all its `*.txt` and `*.txt.gz`
            files at any depth, in the order of their paths.
        layout: "auto", "wrapped" (a paragraph spans several lines) or "lines" (each line is one).

    Attributes:
        report: The `ReadReport` of the latest pass: rows are paragraphs.

    Raises:
        FileNotFoundError: A file is missing, or a folder holds no text file.
        ValueError: `layout` is none of the above; during the pass: no text at all.
    """

    def __init__(
        self,
        path: str | Path | list[str] | list[Path],
        *,
        layout: str = "auto",
    ) -> None:
        if layout not in ("auto", "wrapped", "lines"):
            raise ValueError(f"layout: expected 'auto', 'wrapped' or 'lines', received {layout!r}.")
        if isinstance(path, str | Path) and Path(path).is_dir():
            paths = sorted(Path(path).rglob("*"))
            self.paths = [p for p in paths if p.name.endswith((".txt", ".txt.gz")) and p.is_file()]
            if not self.paths:
                raise FileNotFoundError(f"{path}: expected *.txt or *.txt.gz files, found none.")
        else:
            self.paths = as_paths(path)
        self.layout = layout
        self.report = ReadReport()

    def __iter__(self) -> Iterator[dict[str, str]]:
        """Starts a pass over all triples of neighbouring sentences."""
        report = self.report = ReadReport()
        for path in self.paths:
            window: deque[str] = deque(maxlen=3)
            for sentence in chain.from_iterable(self._paragraphs(path, report)):
                window.append(sentence)
                if len(window) == 3:
                    report.examples += 1
                    yield dict(zip(("previous", "sentence", "next"), window, strict=True))
        self._check(report)

    def sentences(self) -> Iterator[str]:
        """Starts a pass over all sentences, in order."""
        report = self.report = ReadReport()
        for path in self.paths:
            for paragraph in self._paragraphs(path, report):
                report.examples += len(paragraph)
                yield from paragraph
        self._check(report)

    def _paragraphs(self, path: Path, report: ReadReport) -> Iterator[list[str]]:
        """Yields paragraphs as lists of sentences."""
        lines = _decoded(path, report)
        sample = list(islice(lines, _SAMPLE))
        short = {"lines": None, "wrapped": 0}.get(self.layout, short_line(sample))
        for paragraph in _joined(chain(sample, lines), short):
            sentences = [
                sentence
                for sentence in split_sentences(paragraph)
                if any(character.isalnum() for character in sentence)
            ]
            if sentences:
                report.rows += 1
                yield sentences

    def _check(self, report: ReadReport) -> None:
        if not report.rows:
            raise ValueError(
                f"{self.paths[0]}{' and more' if len(self.paths) > 1 else ''}: expected running "
                "text, found no sentence."
                + (f" Malformed: {report.offences[0]}." if report.offences else "")
            )


def _decoded(path: Path, report: ReadReport) -> Iterator[str]:
    for number, line in read_lines(path, longest=LONGEST_ROW, skip_long=True):
        if isinstance(line, LongLine):
            report.add_malformed(path, number, f"a line of more than {LONGEST_ROW:,} bytes")
            continue
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            report.notes["line decoded as windows-1252"] += 1
            try:
                yield line.decode("cp1252")
            except UnicodeDecodeError:  # Five bytes mean nothing there; all mean one in latin-1.
                yield line.decode("latin-1")


def short_line(lines: list[str]) -> float | None:
    """How the paragraphs of a file end, by its first lines, with the blank ones.

    Returns:
        None: at the end of each line; 0: at a blank line; another number: at a line of fewer
        characters, too, because a wrapped text without blank lines ends its paragraphs with one.
    """
    texts = [line.strip() for line in lines if line.strip()]
    if not texts:
        return None
    width = sorted(map(len, texts))[int(0.95 * (len(texts) - 1))]
    inside = sum(
        before.strip() != "" and not before.rstrip().endswith(_FINAL) and _starts_small(line)
        for before, line in zip(lines, lines[1:], strict=False)
    )
    if not _MIN_WIDTH <= width <= _MAX_WIDTH or inside < _MIN_SMALL_STARTS * len(texts):
        return None
    blanks = len(lines) - len(texts)
    return 0 if blanks >= _MIN_BLANKS * len(lines) else _SHORT * width


def _joined(lines: Iterable[str], short: float | None) -> Iterator[str]:
    """Joins lines into paragraphs; blank ones are left out."""
    block: list[str] = []
    for line in lines:
        text = line.strip()
        if block and (
            not text or short is None or (len(block[-1]) < short and not _starts_small(text))
        ):
            yield " ".join(block)
            block = []
        if text:
            block.append(text)
    if block:
        yield " ".join(block)


def _starts_small(line: str) -> bool:
    return line.strip()[:1].islower()


# Rules for the ends of sentences.


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
