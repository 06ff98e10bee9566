"""The choice of the tests that a change may break."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import affected_tests, import_graph


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of three sources, each of which imports the one before it, and their tests."""
    files = {
        "use_st5/a.py": "",
        "use_st5/b.py": "def late():\n    import use_st5.a\n",
        "use_st5/c.py": "from use_st5 import b\n",
        "tests/test_a.py": "import use_st5.a\n",
        "tests/test_c.py": "import use_st5.c\nPAGE = 'guide.md'\n",
        "tests/cli/conftest.py": "import use_st5.b\n",
        "tests/cli/test_d.py": "",
        "docs/guide.md": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for module in (affected_tests, import_graph):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    import_graph.imported_files.cache_clear()
    import_graph.named_files.cache_clear()
    return tmp_path


TESTS = ["tests/test_c.py::two", "tests/test_a.py::one", "tests/cli/test_d.py::three"]


@pytest.mark.parametrize(
    ("changed", "chosen"),
    [
        ("use_st5/a.py", ["a.py::one", "d.py::three", "c.py::two"]),  # one, two, three imports away
        ("use_st5/b.py", ["d.py::three", "c.py::two"]),  # d by its folder's conftest.py
        ("use_st5/c.py", ["c.py::two"]),
        ("docs/guide.md", ["c.py::two"]),  # c names it
        ("docs/other.md", []),
    ],
)
@pytest.mark.usefixtures("checkout")
def test_tests_that_reach_a_changed_file_are_chosen_the_nearest_first(
    changed: str, chosen: list[str]
) -> None:
    found = affected_tests.affected(TESTS, {changed})
    assert [test.split("test_")[1] for test in found] == chosen
