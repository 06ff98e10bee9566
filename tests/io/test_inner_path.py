"""Names that lead below a folder, and names that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.io.inner_path import check_inner_names, is_inner, joined


@pytest.mark.parametrize("name", ["", "a", "a/b.txt", "..a", "a..", "a/...", "10:30.txt", "é", "."])
def test_names_below_a_folder(name: str, tmp_path: Path) -> None:
    assert is_inner(name)
    assert joined(tmp_path, name, where="there") == tmp_path / name
    assert check_inner_names([name], where="there") == [name]


@pytest.mark.parametrize(
    "name",
    ["/a", "//a", "..", "a/..", "a/../../b", "\\a", "a\\b", "..\\b", "C:\\a", "C:/a", "C:a", "a\0"],
)
def test_names_that_lead_elsewhere_on_some_system(name: str, tmp_path: Path) -> None:
    assert not is_inner(name)
    with pytest.raises(
        ValueError, match="there: expected files inside this folder, received the name"
    ):
        joined(tmp_path, name, where="there")


def test_a_link_that_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="found a link to a place outside"):
        joined(tmp_path / "folder", "link/x", where="there")
