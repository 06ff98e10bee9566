"""Pairs of headings and passages, from Markdown, HTML and plain text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("markdown_it", reason="needs markdown-it-py (extra documents)")
pytest.importorskip("selectolax", reason="needs selectolax (extra documents)")

from use_st5.data.documents import document_pairs

MARKDOWN = """\
---
title: "The apiary"
---
# The apiary

Bees *live* in a [hive](https://x.org) with `frames`
and they make honey there.

```python
not_a_text = "code is left out of every pair"
```

| a table | of two |
|---|---|
| is | left out |

## Examples

- One hive with six frames.

Too short.

### How to feed the bees in winter

Sugar and water. Give them in the evening. Never give honey of another hive.
"""
HTML = """\
<html><head><title>Tea &amp; more</title><style>p {}</style></head><body>
<nav><p>a menu with many words that nobody wants</p></nav>
<h2>Green <i>tea</i></h2><p>Green tea is<br>not <b>fer</b>mented.</p>
<ul><li>Water of eighty degrees <ul><li>for two minutes only</li></ul></li></ul>
<script>var not_a_text = 1;</script></body></html>
"""


@pytest.fixture
def pairs(tmp_path: Path) -> Callable[..., list[tuple[str, str]]]:
    def of(name: str, text: str, **options: int) -> list[tuple[str, str]]:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return [*document_pairs(tmp_path, **{"min_words": 4, **options})]

    return of


def test_markdown(pairs: Callable) -> None:
    assert pairs("deep.md", MARKDOWN) == [
        ("The apiary", "Bees live in a hive with frames and they make honey there."),
        ("The apiary Examples", "One hive with six frames."),
        (
            "How to feed the bees in winter",
            "Sugar and water. Give them in the evening. Never give honey of another hive.",
        ),
    ]


def test_long_sections_are_cut_at_the_end_of_a_sentence(pairs: Callable) -> None:
    cut = pairs("a.md", MARKDOWN, max_words=8, per_heading=3)
    assert [passage for query, passage in cut if query.startswith("How to")] == [
        "Sugar and water. Give them in the evening.",
        "Never give honey of another hive.",
    ]


def test_html(pairs: Callable) -> None:
    assert pairs("page.html", HTML, per_heading=9) == [
        ("Tea & more Green tea", "Green tea is not fermented."),
        ("Tea & more Green tea", "Water of eighty degrees"),
        ("Tea & more Green tea", "for two minutes only"),
    ]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The keeping of bees\n\nBees live in hives\nof wood.", "The keeping of bees"),
        ("Bees live in hives\nof wood.", "bee notes"),
    ],
)
def test_plain_text_has_a_short_first_line_or_the_name_as_title(
    pairs: Callable, text: str, query: str
) -> None:
    assert pairs("bee-notes.txt", text) == [(query, "Bees live in hives of wood.")]


def test_a_passage_gives_one_pair(pairs: Callable, tmp_path: Path) -> None:
    (tmp_path / "copy.markdown").write_text(MARKDOWN, encoding="utf-8")
    assert len(pairs("a.md", MARKDOWN)) == 3


def test_no_documents(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n")
    with pytest.raises(FileNotFoundError, match=r"\.md.*found none"):
        [*document_pairs(tmp_path)]


def test_invalid_utf8_and_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"Title\n\nFour words and \xff.")
    (tmp_path / "b.md").write_bytes(b"")
    assert [*document_pairs(tmp_path, min_words=2)] == [("Title", "Four words and \ufffd.")]


def test_the_command(use: Callable, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(MARKDOWN, encoding="utf-8")
    result = use("pairs", str(tmp_path / "docs"), "--to", "pairs.tsv", "--min-words", "4")
    assert result.exit_code == 0, result.stderr
    lines = Path("pairs.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "anchor\tpositive"
    assert len(lines) == 4
    assert "3 pairs of 3 headings" in result.stderr
    assert "--min-words" in use("pairs", "docs", "--to", "none.tsv", "--min-words", "99").stderr
