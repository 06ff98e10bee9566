"""Documents without questions: their titles and headings with the passages under them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from use_st5._imports import require
from use_st5.data.text_reader import split_sentences

# A block of a document: the level of a heading (1 is the title), or 0 for a paragraph; its text.
Block = tuple[int, str]

# A heading of fewer words, such as "Examples", says too little without its document's title.
_SHORT_HEADING = 4
_FRONT_MATTER = re.compile(r"\A---\n(.*?\n)(?:---|\.\.\.)(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"""^title:[ ]*(["']?)(.+?)\1[ ]*$""", re.MULTILINE)
_NOT_CONTENT = "script, style, nav, header, footer, aside, form, table, figure, pre, template"
_HEADING = re.compile("h[1-6]")
_HTML_BLOCKS = "h1, h2, h3, h4, h5, h6, p, li, dd, blockquote"


def document_pairs(
    folder: str | Path, *, min_words: int = 20, max_words: int = 200, per_heading: int = 1
) -> Iterator[tuple[str, str]]:
    """Pairs of a heading and a passage under it, for training and for measuring search.

    The documents are all `.md`, `.markdown`, `.html`, `.htm` and `.txt` files at any depth. Code,
    tables, navigation and front matter are not text. A paragraph shorter than `min_words` is joined
    with the next one of its section; a longer one than `max_words` ends after its last sentence
    that fits. A heading of fewer than four words follows the document's title: "Beam Examples". A
    document without a heading has its first line as the title if that line is short, else the
    file's name. A passage and a heading with the same words give no pair, and a passage gives only
    one.

    Args:
        folder: A folder, or one file.
        min_words: Words of a passage at least.
        max_words: Words of a passage at most.
        per_heading: Passages of a heading at most.

    Yields:
        Query and passage, in the order of the files' paths.

    Raises:
        FileNotFoundError: There is no such document.
    """
    root = Path(folder)
    paths = [root] if root.is_file() else sorted(root.rglob("*"))
    readable = [path for path in paths if path.suffix.lower() in _PARSERS and path.is_file()]
    if not readable:
        raise FileNotFoundError(f"{folder}: expected {', '.join(_PARSERS)} files, found none.")
    passages: set[str] = set()
    for path in readable:
        text = path.read_text(encoding="utf-8", errors="replace").removeprefix("\ufeff")
        blocks = _PARSERS[path.suffix.lower()](text)
        name = re.sub(r"[-_]+", " ", path.stem)
        for query, paragraphs in _sections(blocks, default_title=name):
            added = 0
            for passage in _passages(paragraphs, min_words, max_words):
                if added < per_heading and passage not in passages and passage != query:
                    passages.add(passage)
                    added += 1
                    yield query, passage


def markdown_blocks(text: str) -> Iterator[Block]:
    """The blocks of a Markdown document; a title in its front matter comes first."""
    if front := _FRONT_MATTER.match(text):
        text = text[front.end() :]
        if title := _FRONT_TITLE.search(front[1]):
            yield 1, title[2]
    level, in_table = 0, False
    parser = require("markdown_it", "documents").MarkdownIt("commonmark")
    for token in parser.enable("table").parse(text):
        if token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"
        elif token.type == "heading_open":
            level = int(token.tag[1])
        elif token.type == "inline" and not in_table:
            parts = (
                " " if child.type in ("softbreak", "hardbreak") else child.content
                for child in token.children or ()
                if child.type in ("text", "code_inline", "softbreak", "hardbreak")
            )
            yield level, "".join(parts)
            level = 0
        elif token.type == "html_block":
            yield from html_blocks(token.content)


def html_blocks(text: str) -> Iterator[Block]:
    """The blocks of an HTML page: its headings, paragraphs and list items."""
    page = require("selectolax.lexbor", "documents").LexborHTMLParser(text)
    page.strip_tags(_NOT_CONTENT.split(", "))
    if (title := page.css_first("head > title")) and not page.css_first("h1"):
        yield 1, title.text()
    for line_break in page.css("br"):
        line_break.replace_with(" ")
    blocks: list[Block] = []
    for node in reversed(page.css(_HTML_BLOCKS)):  # Inner blocks leave before the outer is read.
        blocks.append((int(node.tag[1]) if _HEADING.fullmatch(node.tag) else 0, node.text()))
        node.decompose()
    yield from reversed(blocks)


def plain_blocks(text: str) -> Iterator[Block]:
    """The blocks of plain text: paragraphs between blank lines; a short first line is the title."""
    paragraphs = re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip())
    for number, paragraph in enumerate(paragraphs):
        is_title = number == 0 and len(paragraph.split()) <= 15 and paragraph[-1:] not in "."
        yield int(is_title), paragraph


_PARSERS = {
    ".md": markdown_blocks,
    ".markdown": markdown_blocks,
    ".html": html_blocks,
    ".htm": html_blocks,
    ".txt": plain_blocks,
}


def _sections(blocks: Iterable[Block], *, default_title: str) -> Iterator[tuple[str, list[str]]]:
    """The sections of a document: the query of each, and its paragraphs."""
    title = heading = ""
    paragraphs: list[str] = []
    for level, raw in blocks:
        text = " ".join(raw.split())
        if not text:
            continue
        if level:
            yield _query(title or default_title, heading), paragraphs
            heading, paragraphs = text, []
            title = title or text
        else:
            paragraphs.append(text)
    yield _query(title or default_title, heading), paragraphs


def _query(title: str, heading: str) -> str:
    if not heading or heading == title:
        return title
    return heading if len(heading.split()) >= _SHORT_HEADING else f"{title} {heading}"


def _passages(paragraphs: Iterable[str], min_words: int, max_words: int) -> Iterator[str]:
    """Joins short paragraphs, and cuts long ones at the end of a sentence."""
    words = 0
    sentences: list[str] = []
    for paragraph in paragraphs:
        for sentence in split_sentences(paragraph):
            count = len(sentence.split())
            if sentences and words + count > max_words:
                if words >= min_words:
                    yield " ".join(sentences)
                sentences, words = [], 0
            if count <= max_words:
                sentences.append(sentence)
                words += count
        if words >= min_words:
            yield " ".join(sentences)
            sentences, words = [], 0
