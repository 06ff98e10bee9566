"""How the paragraphs of a plain text file are laid out in lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# Prose wrapped at a fixed width has full lines of so many characters; a list of names has fewer.
_MIN_WIDTH, _MAX_WIDTH = 40, 120
# In wrapped prose about two thirds of the lines start in the middle of a sentence, with a small
# letter; where each line is a paragraph or a sentence, hardly any does.
_MIN_SMALL_STARTS = 0.25
_MIN_BLANKS = 0.02
_SHORT = 0.75
_FINAL = (".", "!", "?", "…", '"', "'", "”", "’", ":", ")")


@dataclass(frozen=True)
class Layout:
    """What ends a paragraph.

    Attributes:
        kind: "wrapped": a blank line; "lines": the end of each line.
        width: Characters of a full line in a wrapped text without blank lines, whose paragraphs
            end with a short line; 0 in any other.
    """

    kind: str
    width: int = 0


def detect_layout(lines: list[str]) -> Layout:
    """Tells the layout from the first lines of a file, blank ones included."""
    texts = [line.strip() for line in lines if line.strip()]
    if not texts:
        return Layout("lines")
    width = sorted(map(len, texts))[int(0.95 * (len(texts) - 1))]
    inside = sum(
        before.strip() != "" and not before.rstrip().endswith(_FINAL) and _starts_small(line)
        for before, line in zip(lines, lines[1:], strict=False)
    )
    if not _MIN_WIDTH <= width <= _MAX_WIDTH or inside < _MIN_SMALL_STARTS * len(texts):
        return Layout("lines")
    blanks = len(lines) - len(texts)
    return Layout("wrapped", width=0 if blanks >= _MIN_BLANKS * len(lines) else width)


def paragraphs(lines: Iterable[str], layout: Layout) -> Iterator[str]:
    """Joins lines into paragraphs; blank ones are left out."""
    block: list[str] = []
    for line in lines:
        text = line.strip()
        if block and (not text or _is_last(block[-1], text, layout)):
            yield " ".join(block)
            block = []
        if text:
            block.append(text)
    if block:
        yield " ".join(block)


def _is_last(line: str, following: str, layout: Layout) -> bool:
    """Whether a paragraph ends with `line` although no blank line follows."""
    if layout.kind == "lines":
        return True
    return len(line) < _SHORT * layout.width and not _starts_small(following)


def _starts_small(line: str) -> bool:
    return line.strip()[:1].islower()
