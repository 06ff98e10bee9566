from __future__ import annotations

from pathlib import Path

import pytest

from tests.resources.records import record
from use_st5.resources.quantity import IDS_TIME, MEMORY

pytest.importorskip("matplotlib")

from use_st5.resources.resource_plots import draw, write_plots


def test_lines_are_the_medians_and_the_limit_is_marked() -> None:
    axes = draw(record(), "cpu", IDS_TIME).axes[0]
    curves = {line.get_label(): line for line in axes.lines}
    assert list(curves["steep"].get_xdata()) == [10, 100, 200]
    assert list(curves["steep"].get_ydata()) == pytest.approx([0.01, 1, 4])
    assert any(list(line.get_xdata()) == [150, 150] for line in axes.lines)
    assert [text.get_text() for text in axes.texts] == ["steep: texts are cut from here on"]
    assert axes.get_ylim()[0] == 0


def test_memory_that_is_unknown_is_not_drawn(tmp_path: Path) -> None:
    assert draw(record(working=None), "cpu", MEMORY) is None
    names = [path.name for path in write_plots(record(working=None), tmp_path)]
    assert names == ["text_time_cpu.png", "ids_time_cpu.png"]


def test_files_are_pictures(tmp_path: Path) -> None:
    paths = write_plots(record(), tmp_path)
    assert len(paths) == 3
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
