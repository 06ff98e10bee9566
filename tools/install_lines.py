"""Writes the lines of documents and notebooks that install use_st5.

Run `python -m tools.install_lines` when `PUBLISHED` in `use_st5/_imports.py` changes. Until then
the lines work in a checkout. `tests/test_install_lines.py` checks that both agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from use_st5._imports import PUBLISHED

ROOT = Path(__file__).resolve().parents[1]
# `pip install`, its options, and use_st5 or the checkout with or without extras.
_LINE = re.compile(r'(?<=pip install )((?:-\S+ )*"?)(?:use_st5|\.)(?=[\["`\s]|$)')

_FROM_INDEX = """import sys

if "google.colab" in sys.modules:
    %pip install --quiet "use_st5[{extras}]\""""
_FROM_FILES = """import importlib.util
import sys
from pathlib import Path

# "" is the checkout or a wheel that you upload, because use_st5 has no public address yet.
# If yours has a git address, write it here: "git+https://github.com/NAME/use_st5".
SOURCE = ""

if importlib.util.find_spec("use_st5") is None:
    folder = Path().resolve()
    found = sorted(folder.glob("use_st5-*.whl"))
    found += [each for each in (folder, *folder.parents) if (each / "use_st5").is_dir()]
    if not SOURCE and not found and "google.colab" in sys.modules:
        from google.colab import files

        print("Upload the wheel that `make wheel` wrote into dist/:")
        found = [folder / name for name in files.upload()]
    if not SOURCE and not found:
        raise SystemExit("Upload the wheel of `make wheel` (in dist/), and run this cell again.")
    place = SOURCE or found[0].as_uri()
    %pip install --quiet "use_st5[{extras}] @ {{place}}\""""


def rewritten(text: str, *, published: bool) -> str:
    """A document with the install lines that work today."""
    target = "use_st5" if published else "."
    return _LINE.sub(lambda match: match[1] + target, text)


def install_cell(extras: str, *, published: bool) -> str:
    """The first cell of code of a notebook."""
    return (_FROM_INDEX if published else _FROM_FILES).format(extras=extras)


def files() -> Iterator[tuple[Path, str]]:
    """Each document and notebook, and the content that it should have."""
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        yield path, rewritten(path.read_text(encoding="utf-8"), published=PUBLISHED)
    for path in sorted((ROOT / "colabs").glob("*.ipynb")):
        yield path, _notebook(path)


def _notebook(path: Path) -> str:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cell = next(each for each in notebook["cells"] if each["cell_type"] == "code")
    extras = re.search(r'\[([\w,-]+)\](?: @ \{place\})?"$', "".join(cell["source"]))
    if extras is None:
        raise ValueError(f"{path}: expected the first cell of code to install use_st5 with extras.")
    source = install_cell(extras[1], published=PUBLISHED)
    cell["source"] = source.splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for path, text in files():
        path.write_text(text, encoding="utf-8")
