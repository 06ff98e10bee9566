from __future__ import annotations

from pathlib import Path

import pytest

from tests.footprint.records import THROUGHPUT
from use_st5.footprint.throughput_figures import (
    throughput_markdown,
    throughput_rows,
    write_throughput_plots,
)


def test_a_row_for_each_model_and_length() -> None:
    headings, cells = throughput_rows(THROUGHPUT)
    assert headings == ["model", "parameters", "tokens", "batch of 1", "batch of 32"]
    assert cells == [
        ["small", "35.3 M", "128", "52.2", "1,234"],
        ["base", "110.0 M", "16", "80.0", ""],
        ["base", "110.0 M", "128", "9.88", "no room"],
    ]


def test_the_markdown_says_what_it_ran_on() -> None:
    text = throughput_markdown(THROUGHPUT)
    assert "a processor with tensorflow 2.21.0, float32; threads: 1 of 2 cores." in text
    assert "| base | 110.0 M | 128 | 9.88 | no room |" in text


def test_a_picture_for_each_length(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    paths = write_throughput_plots(THROUGHPUT, tmp_path)
    assert [path.name for path in paths] == ["throughput_16.png", "throughput_128.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
