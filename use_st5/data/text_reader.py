"""Running text: sentences with their neighbours, from plain files and folders of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from use_st5.data.formats import LONGEST_ROW
from use_st5.data.reader import ReadReport
from use_st5.data.sentence_splitter import split_sentences
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
            for example in _triples(chain.from_iterable(self._paragraphs(path, report))):
                report.examples += 1
                yield example
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


def _triples(sentences: Iterable[str]) -> Iterator[dict[str, str]]:
    window: deque[str] = deque(maxlen=3)
    for sentence in sentences:
        window.append(sentence)
        if len(window) == 3:
            yield dict(zip(("previous", "sentence", "next"), window, strict=True))


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
