"""Fixtures of the tests of training on one's own data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from use_st5.training.sources import Source, open_source


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Source]:
    """Writes a tsv: `table("sts", "sentence1 sentence2 score", rows) -> Source`."""

    def written(name: str, columns: str, rows: list[tuple[object, ...]]) -> Source:
        lines = ["\t".join(columns.split()), *("\t".join(map(str, row)) for row in rows)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
        return open_source(tmp_path / f"{name}.tsv")

    return written
