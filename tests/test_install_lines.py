"""The lines that install use_st5: in messages, documents and notebooks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.install_lines import files, install_cell, rewritten
from use_st5 import _imports


@pytest.mark.parametrize(("path", "text"), [*files()], ids=lambda each: getattr(each, "name", ""))
def test_documents_and_notebooks_install_what_is_there(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text, "python -m tools.install_lines"


def test_lines_are_switched_both_ways() -> None:
    published = 'pip install use_st5 "x"\n`pip install "use_st5[hub]"` `pip install -q use_st5`'
    before = 'pip install . "x"\n`pip install ".[hub]"` `pip install -q .`'
    assert rewritten(published, published=False) == before
    assert rewritten(before, published=True) == published
    others = 'pip install "apache-beam[gcp]" use_st5-extra'
    assert rewritten(others, published=False) == others


def test_a_checkout_is_named_by_its_path(repository: Path) -> None:
    assert _imports.install_line("hub") == f'pip install --editable "{repository}[hub]"'


def test_a_wheel_names_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_imports, "__file__", str(tmp_path / "site/use_st5/_imports.py"))
    stated = ["numpy>=1", "faiss-cpu>=1.9; extra == 'search'", "jax>=0.6; extra == 'jax'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: stated)
    assert _imports.install_line("search") == 'pip install "faiss-cpu>=1.9"'
    monkeypatch.setattr(_imports, "PUBLISHED", True)
    assert _imports.install_line("search") == 'pip install "use_st5[search]"'


def test_a_notebook_finds_a_wheel_or_the_checkout_or_says_what_to_upload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = install_cell("hub", published=False).replace("%pip", "given.append(f'''", 1) + "''')"
    given: list[str] = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="Upload the wheel of `make wheel`"):
        exec(cell, {"given": given})
    (tmp_path / "use_st5").mkdir()
    (tmp_path / "colabs").mkdir()
    monkeypatch.chdir(tmp_path / "colabs")
    exec(cell, {"given": given})
    assert given.pop() == f' install --quiet "use_st5[hub] @ {tmp_path.as_uri()}"'
    (tmp_path / "colabs" / "use_st5-0.2.0-py3-none-any.whl").touch()
    exec(cell, {"given": given})
    wheel = (tmp_path / "colabs/use_st5-0.2.0-py3-none-any.whl").as_uri()
    assert given.pop() == f' install --quiet "use_st5[hub] @ {wheel}"'
    address = "git+https://example.com/use_st5"
    exec(cell.replace('SOURCE = ""', f'SOURCE = "{address}"'), {"given": given})
    assert given == [f' install --quiet "use_st5[hub] @ {address}"']


def test_colab_asks_for_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = install_cell("hub", published=False).replace("%pip", "given.append(f'''", 1) + "''')"
    given: list[str] = []
    asked = SimpleNamespace(upload=lambda: {"use_st5-0.3.whl": b""})
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace(files=asked))
    monkeypatch.chdir(tmp_path)
    exec(cell, {"given": given})
    wheel = (tmp_path / "use_st5-0.3.whl").as_uri()
    assert given == [f' install --quiet "use_st5[hub] @ {wheel}"']


PIP = """#!/bin/sh
if [ "$3" = install ]; then
  echo "Obtaining file:///checkout"
  echo "Collecting tensorflow<2.22,>=2.20 (from use_st5==0.2.0)"
  echo "  Downloading tensorflow-2.21.0-cp311-manylinux.whl (620.0 MB)"
  echo "Collecting keras<4,>=3.10"
  echo "Installing collected packages: namex, keras, tensorflow"
  [ ! -e "$(dirname "$0")/fails" ] || exit 1
fi
"""


@pytest.mark.process
def test_make_shows_a_line_for_each_package(repository: Path, tmp_path: Path) -> None:
    """With a pip that only prints."""
    (tmp_path / "bin").mkdir()
    for name, script in (("python", PIP), ("use-st5", "#!/bin/sh\n")):
        (tmp_path / "bin" / name).write_text(script)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / ".python").touch()
    command = [
        "make",
        "-s",
        "--no-print-directory",
        "-C",
        str(repository),
        f"VENV={tmp_path}",
        "demo",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == [
        "  tensorflow<2.22,>=2.20",
        "  keras<4,>=3.10",
        "  installing 3 packages",
    ]
    (tmp_path / ".demo").unlink()
    (tmp_path / "bin" / "fails").touch()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
    assert not (tmp_path / ".demo").exists()
