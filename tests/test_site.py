"""The documentation site: built without a warning, complete, and shown by a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.site import api_page, pages, public_packages

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. With `--strict` every broken link is an error."""
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def html(site: Path, page: str) -> str:
    """Returns the HTML of a page; `page` is its name in `mkdocs.yml`."""
    name = page.removesuffix(".md").replace("README", "index")
    return (site / f"{name}.html").read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r" ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(page for page in pages().values() if "api/" not in page)


def test_a_page_of_the_reference_names_each_public_name() -> None:
    names = public_packages()["use_st5.losses"]
    assert "ContrastiveLoss" in names
    page = api_page("use_st5.losses", names)
    assert [f"::: use_st5.losses.{name}" in page for name in names] == [True] * len(names)


@pytest.mark.process
def test_the_reference_has_signatures_and_docstrings(site: Path) -> None:
    page = html(site, "api/use_st5.md")
    assert "SentenceEncoder" in page
    assert "Loads a sentence encoder" in page


@pytest.mark.process
def test_links_of_the_repository_lead_to_pages_of_the_site(site: Path) -> None:
    assert 'href="api/losses.html"' in html(site, "training.md")
    home = html(site, "index.md")
    assert 'href="training.html"' in home
    assert "ARCHITECTURE.md" not in home  # a file that is not on the site: plain text
    assert 'src="images/heatmap.png"' in home


@pytest.mark.process
def test_the_site_has_the_page_for_browsers(site: Path) -> None:
    assert 'href="demo/index.html"' in html(site, "browser.md")
    parts = json.loads((site / "demo" / "model.js").read_text().partition("=")[2].strip(" ;\n"))
    assert {path.name for path in (site / "demo").iterdir()} == {
        *(path.name for path in (ROOT / "use_st5/export/page").iterdir()),
        *("model.js", *(f"model-{part}.js" for part in range(parts["parts"]))),
        "use_st5_files.txt",
    }


@pytest.mark.process
def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loads = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?://[^"]*)"')
    for page in site.rglob("*.html"):
        assert not loads.findall(page.read_text(encoding="utf-8")), page.name


@pytest.mark.process
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: chromium)")
def test_search_finds_pages_from_the_disk(site: Path) -> None:
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    address = f"{(site / 'api' / 'losses.html').as_uri()}?q=minimal"
    command = [str(CHROMIUM), *options, "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "matching document" in done.stdout
    assert "evaluation.html" in done.stdout.partition("md-search-result__item")[2]


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: chromium)")
def test_a_browser_opens_the_pages_without_an_error(site: Path) -> None:
    """All pages but those of the reference, which one template makes; one of these stands for them.

    Chromium needs seconds for each.
    """
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    every = sorted(site.rglob("*.html"))
    for page in (each for each in every if each.parent.name != "api" or each.stem == "losses"):
        command = [
            CHROMIUM,
            *options,
            "--allow-file-access-from-files",
            "--dump-dom",
            page.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        assert not said, f"{page.name}: {said}"
        assert "<h1" in done.stdout, page.name
