"""The lines that install use_st5: in messages, documents and notebooks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

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
