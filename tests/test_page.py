"""A page in one file: it is complete, makes no requests, and escapes its texts."""

from __future__ import annotations

import math
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from use_st5 import _page
from use_st5._page import Cell

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
VOID = {"meta", "img", "source", "link", "br", "input", "hr", "line", "path", "rect"}


class Page(HTMLParser):
    """Checks that the tags are balanced; holds their attributes and the text of table cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID or "svg" in self.open:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text += data
        if "tr" in self.open and {"td", "th"} & {*self.open}:
            self.rows[-1][-1] += data


def check_alone(page: Page) -> None:
    """Checks that the page is complete and requests no other file."""
    assert page.open == []
    names = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(names) == len({*names})
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    for tag, attrs in page.tags:
        assert tag not in {"link", "iframe", "object", "img", "image", "use"}
        assert not {"src", "srcset", "xlink:href", "onclick"} & attrs.keys()
        target = attrs.get("href") or "#"
        assert target.startswith("http") or target.removeprefix("#") in {*names, ""}
        assert tag == "a" or "href" not in attrs
        assert tag != "svg" or (attrs["role"] == "img" and attrs["aria-label"])
    assert "url(" not in page.text
    assert "@import" not in page.text
    (policy,) = (a["content"] for _, a in page.tags if "http-equiv" in a)
    assert str(policy).startswith("default-src 'none'; ")


def test_a_page_is_whole_and_its_texts_are_text() -> None:
    evil = "<img src=x onerror=alert(1)>'\""
    rows = [(evil, [Cell(evil, 1.0)])]
    page = _page.document(evil, _page.table(evil, [evil], rows, name=evil))
    page += _page.folded(evil, _page.linked(evil))
    assert "<img" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;&#x27;&quot;") == 9
    check_alone(Page(_page.document("a", _page.figure("<svg role='img' aria-label='b'/>", "c"))))


def test_cells_hold_the_numbers_that_the_script_sorts_by() -> None:
    rows = [
        ("a", [Cell("−1.50", -1.5), Cell("once more")]),
        ("b", [Cell("2.00", 2, best=True), Cell("–")]),
        ("c", [Cell("undefined", math.nan), Cell("–")]),
    ]
    text = _page.table("name", ["score", "remark"], rows, name="Scores")
    assert '<td data-value="-1.5">−1.50</td><td class="text">once more</td>' in text
    assert '<td data-value="2"><strong>2.00</strong></td>' in text
    assert '<td data-value="nan">undefined</td>' in text
    assert 'tabindex="0" aria-label="Scores"' in text


def test_addresses_are_links_and_the_rest_is_text() -> None:
    why = "Get it from https://x.org/a?b=1&c=2, or (http://y.org/z). No javascript:alert(1)."
    text = _page.linked(why)
    assert '<a href="https://x.org/a?b=1&amp;c=2">https://x.org/a?b=1&amp;c=2</a>, or (' in text
    assert '<a href="http://y.org/z">http://y.org/z</a>). No javascript' in text
    assert text.count("<a ") == 2


_CLICKS = """<script>
const names = () => [...document.querySelectorAll("tbody th")].map((e) => e.textContent).join("");
const click = (n) => document.querySelectorAll("thead button")[n].click();
const found = [];
for (const n of [1, 1, 0, 0]) { click(n); found.push(names()); }
const sorted = [...document.querySelectorAll("th")].map((e) => e.ariaSort ?? "none");
document.body.append("FOUND " + found.join() + " " + sorted.join());
</script></body>"""


@pytest.mark.process
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: chromium)")
def test_a_click_sorts_and_what_has_no_value_stays_last(tmp_path: Path) -> None:
    rows = [("b", [Cell("9.00", 9.0)]), ("a", [Cell("–")]), ("c", [Cell("30.00", 30.0)])]
    text = _page.document("Title", _page.table("name", ["score"], rows, name="Scores"))
    shown = shown_with(text, _CLICKS, tmp_path)
    assert "FOUND cba,bca,abc,cba descending,none,none,none,none" in shown


@pytest.mark.process
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: chromium)")
def test_a_phone_shows_five_columns(tmp_path: Path) -> None:
    """A window of 400 pixels has 368 between its margins; Chromium's narrowest one has 500."""
    heads = [f"STS1{year}" for year in range(2, 6)]
    rows = [("use_transformer_en", [Cell("80.10", 80.1)] * 4), ("b", [Cell("79.00", 79.0)] * 4)]
    text = _page.document("Title", _page.table("Model", heads, rows, name="Scores"))
    measured = (
        '<script>document.title = document.querySelector("table").offsetWidth</script></body>'
    )
    shown = shown_with(text, measured, tmp_path)
    assert int(shown.partition("<title>")[2].partition("<")[0]) <= 368


def shown_with(page: str, script: str, folder: Path) -> str:
    """A page in Chromium, after a script at its end."""
    path = folder / "page.html"
    path.write_text(page.replace("</body>", script), encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")
    done = subprocess.run(
        [str(CHROMIUM), *options, "--window-size=500,900", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "CONSOLE" not in done.stderr
    return done.stdout


def test_a_page_shows_no_control_characters() -> None:
    text = _page.document("a\x1b[2J", "<p>b\x07c\x9bd\u202ee\r</p>\n\t<p>f</p>")
    assert "a�[2J" in text
    assert "<p>b�c�d�e�</p>\n\t<p>f</p>" in text
