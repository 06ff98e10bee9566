"""Fixtures of the tests of training on one's own data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from use_st5.training.rows import TrainingFile, read_file


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., TrainingFile]:
    """Writes a tsv: `table("sts", "sentence1 sentence2 score", rows) -> TrainingFile`."""

    def written(name: str, columns: str, rows: list[tuple[object, ...]]) -> TrainingFile:
        lines = ["\t".join(columns.split()), *("\t".join(map(str, row)) for row in rows)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
        return read_file(tmp_path / f"{name}.tsv")

    return written
