"""Hooks of MkDocs: pages from outside `docs/`, the API reference, and links between all pages.

`README.md`, the model cards and the pages of the experiments are written for a reader of the
repository. The site shows the same files. A link to a file that is not on the site, such as a
source file, becomes plain text.

The page of `use-st5 export --web` is part of the site, too.
"""

from __future__ import annotations

import ast
import posixpath
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Pages of the repository outside of `docs/`: file → page of the site. `*` stands for a folder.
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "saved_models/*/README.md": "models/*.md",
    "experiments/*/README.md": "experiments/*.md",
    "experiments/README.md": "experiments/index.md",
}
# The page for browsers: its file in the repository, and its place on the site.
DEMO = ("use_st5/export/page/index.html", "demo/index.html")
# `[text](target)` and `src="target"`; an image's text begins with `!`.
_LINK = re.compile(
    r'(?P<text>!?\[(?:[^][]|\[[^][]*\])*\])\((?P<target>[^()\s]+)\)|src="(?P<src>[^"]+)"'
)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_PICTURES = (".png", ".svg", ".jpg")


def pages() -> dict[str, str]:
    """File or package of the repository → page of the site."""
    site_pages = {path.relative_to(ROOT).as_posix(): "" for path in (ROOT / "docs").rglob("*.md")}
    site_pages = {name: name.removeprefix("docs/") for name in site_pages}
    for package in public_packages():
        site_pages[package.replace(".", "/")] = _api(package)
    for pattern, page in OUTSIDE.items():
        for path in sorted(ROOT.glob(pattern)):
            site_pages[path.relative_to(ROOT).as_posix()] = page.replace("*", path.parent.name)
    return site_pages


def public_packages() -> dict[str, list[str]]:
    """Package → its public names, which its `__init__` imports for type checkers."""
    packages = {}
    for path in sorted((ROOT / "use_st5").rglob("__init__.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [
            alias.name
            for node in tree.body
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for line in node.body
            if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("use_st5.")
            for alias in line.names
        ]
        if names:
            packages[".".join(path.parent.relative_to(ROOT).parts)] = sorted(names)
    return packages


def _api(package: str) -> str:
    return f"api/{package.removeprefix('use_st5.').replace('.', '_')}.md"


def api_page(package: str, names: list[str]) -> str:
    """The page of a package: mkdocstrings reads the docstrings of its names."""
    doc = ast.get_docstring(
        ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())
    )
    first = (doc or "").partition("\n")[0]
    return "\n\n".join([f"# `{package}`", first, *(f"::: {package}.{name}" for name in names)])


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the API reference to the navigation, before the changes."""
    config.nav.insert(-1, {"API reference": [_api(package) for package in public_packages()]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages and the pictures that are not in `docs/`, and the notebooks."""
    from mkdocs.structure.files import File

    for name, page in pages().items():
        if not name.endswith(".md"):
            continue
        content = (ROOT / name).read_text(encoding="utf-8")
        if not name.startswith("docs/"):
            files.append(File.generated(config, page, content=content))
        for picture in _pictures(name, content):
            if files.get_file_from_path(picture) is None:
                files.append(File.generated(config, picture, abs_src_path=str(ROOT / picture)))
    for package, names in public_packages().items():
        files.append(File.generated(config, _api(package), content=api_page(package, names)))
    for path in sorted((ROOT / "colabs").glob("*.ipynb")):
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for name, content in demo_files().items():
        files.append(File.generated(config, name, content=content))
    return files


def demo_files() -> dict[str, bytes]:
    """The page that compares and searches sentences: place on the site → content."""
    from use_st5.export import to_web

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "page")
        to_web(ROOT / "saved_models" / "use_dan_en", folder)
        place = posixpath.dirname(DEMO[1])
        return {f"{place}/{path.name}": path.read_bytes() for path in folder.iterdir()}


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Rewrites links that lead to a file of the repository."""
    places = {place: name for name, place in pages().items()}
    source = places.get(page.file.src_uri)
    if source is None:
        return markdown
    return _outside_code(markdown, lambda text: _LINK.sub(_rewritten(source, page, files), text))


def _rewritten(source: str, page: Page, files: Files) -> Callable[[re.Match[str]], str]:
    """A function that returns the replacement of a link of the page that was the file `source`."""
    page_paths = {**pages(), DEMO[0]: DEMO[1]}

    def replace(found: re.Match[str]) -> str:
        target = found["target"] or found["src"]
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path, _, anchor = target.partition("#")
        repo_path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        site_path = page_paths.get(repo_path) or repo_path.removeprefix("docs/")
        if files.get_file_from_path(site_path) is None:
            return (found["text"] or "")[1:-1]
        site_path = posixpath.relpath(site_path, posixpath.dirname(page.file.src_uri) or ".")
        site_path += f"#{anchor}" if anchor else ""
        return f"{found['text']}({site_path})" if found["text"] else f'src="{site_path}"'

    return replace


def _pictures(name: str, content: str) -> list[str]:
    """Pictures outside of `docs/` that a page shows, as paths of the repository."""
    targets = [found["target"] or found["src"] for found in _LINK.finditer(content)]
    paths = [posixpath.normpath(posixpath.join(posixpath.dirname(name), each)) for each in targets]
    return [each for each in paths if each.endswith(_PICTURES) and not each.startswith("docs/")]


def _outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """Changes the parts of the text that are not in a fenced block."""
    parts, end = [], 0
    for block in _FENCE.finditer(markdown):
        parts += [change(markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(markdown[end:])])


# The plugin `offline` loads the search's worker from this host; pages on a disk cannot reach it.
_SHIM = "https://unpkg.com/iframe-worker/shim"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Makes the search's worker a file of the site."""
    from mkdocs.utils import get_relative_url

    return output.replace(_SHIM, get_relative_url("assets/search_worker.js", page.url))


_STYLE_LINK = re.compile(r'<link rel="stylesheet" href="/(assets/[^"]+\.css)">')


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Does the same for the page of missing addresses, whose links are absolute.

    It holds its style itself: a site in a folder of a host has no file at an absolute address. The
    style of docstrings, which is not among the theme's files, is left out.
    """

    def style(found: re.Match[str]) -> str:
        places = [Path(folder, found[1]) for folder in (config.docs_dir, *config.theme.dirs)]
        texts = [place.read_text(encoding="utf-8") for place in places if place.is_file()]
        return f"<style>{texts[0]}</style>" if texts else ""

    return _STYLE_LINK.sub(style, output_content.replace(_SHIM, "/assets/search_worker.js"))


_OPTION = re.compile(r"(?<=[\s>])--?[a-z][\w-]*")


def on_page_content(html: str, **_: Any) -> str:
    """Marks the options of commands and short names in code: they do not break at a hyphen."""

    def marked(code: re.Match[str]) -> str:
        return _OPTION.sub(r'<span class="whole">\g<0></span>', code[0])

    html = re.sub(r"<code>(?=[^<\s]{1,32}</code>)", '<code class="whole">', html)
    return re.sub(r"<code.*?</code>", marked, html, flags=re.DOTALL)
