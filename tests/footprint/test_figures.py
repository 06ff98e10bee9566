from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.footprint.records import record
from use_st5.footprint.figures import COLUMNS, draw, markdown, memory_note, rows, write_plots
from use_st5.footprint.quantity import IDS_TIME, MEMORY

needs_matplotlib = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="the plots need the extra plots"
)


def test_medians_quartiles_ratios_and_cuts() -> None:
    found = rows(record(), "cpu")
    assert [row[:2] for row in found[:3]] == [("10", "flat"), ("10", "steep"), ("100", "flat")]
    # Visits of 0.5, 1 and 2 ms.
    assert found[0][3] == "1.00 (0.75-1.50)"
    words, name, ids, text, text_ratio, by_ids, ids_ratio, working, memory, memory_ratio = found[-1]
    assert (words, name, ids) == ("200", "steep", "200")
    assert text == "4.00 (3.00-6.00) cut"
    assert by_ids == "4.00 (3.00-6.00)"
    assert (text_ratio, ids_ratio) == ("4.00", "4.00")
    assert (working, memory, memory_ratio) == ("40.0", "50.0", "2.38")


def test_unknown_memory_is_said() -> None:
    assert rows(record(working=None), "cpu")[0][-3:] == ("unknown",) * 3
    assert "Memory is unknown where" in memory_note(record(working=None))
    assert "TF_ENABLE_ONEDNN_OPTS=1" in markdown(record(working=None))
    assert memory_note(record()) == ""


def test_markdown_has_every_row_and_the_crossings() -> None:
    text = markdown(record())
    assert all(line.count("|") > 2 for line in text.splitlines() if line.startswith("|"))
    for row in rows(record(), "cpu"):
        assert len(row) == len(COLUMNS)
        assert f"| {' | '.join(row)} |" in text
    assert "| steep | 1,000 | 10.0 | 150 |" in text
    assert "## CPU: a processor" in text
    assert "faster up to 100 words, slower beyond |" in text


@needs_matplotlib
def test_lines_are_the_medians_and_the_limit_is_marked() -> None:
    axes = draw(record(), "cpu", IDS_TIME).axes[0]
    curves = {line.get_label(): line for line in axes.lines}
    assert list(curves["steep"].get_xdata()) == [10, 100, 200]
    assert list(curves["steep"].get_ydata()) == pytest.approx([0.01, 1, 4])
    assert any(list(line.get_xdata()) == [150, 150] for line in axes.lines)
    assert [text.get_text() for text in axes.texts] == ["steep: texts are cut from here on"]
    assert axes.get_ylim()[0] == 0


@needs_matplotlib
def test_memory_that_is_unknown_is_not_drawn(tmp_path: Path) -> None:
    assert draw(record(working=None), "cpu", MEMORY) is None
    names = [path.name for path in write_plots(record(working=None), tmp_path)]
    assert names == ["text_time_cpu.png", "ids_time_cpu.png"]


@needs_matplotlib
def test_files_are_pictures(tmp_path: Path) -> None:
    paths = write_plots(record(), tmp_path)
    assert len(paths) == 3
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
