"""Damaged files of every reader."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.fuzz.damage import Damage, Workbench, damages
from tests.fuzz.readers import READERS
from tests.fuzz.strings import FEW


def damaged_files(name: str, root: Path, *, seed: int | None = None) -> int:
    """Damages the files of a reader, one at a time, and reads them.

    Args:
        name: A key of `READERS`.
        root: A folder to make.
        seed: The seed of the damages; None: always the same few.

    Returns:
        The number of files that were damaged.
    """
    reader = READERS[name]
    bench = Workbench(root, reader.make)
    assert bench.check(reader.read, bench.files[0], []), "a whole file is read"
    some = max(int(FEW.max_examples * reader.share), 4)
    few = hypothesis.settings(FEW, max_examples=some, derandomize=seed is None)

    @few
    @hypothesis.given(file=st.sampled_from(bench.files), changes=damages(of_text=reader.of_text))
    def check(file: str, changes: list[Damage]) -> None:
        bench.check(reader.read, file, changes)

    (check if seed is None else hypothesis.seed(seed)(check))()
    return bench.checked


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_named(name: str, tmp_path: Path) -> None:
    if needed := READERS[name].needs:
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    assert damaged_files(name, tmp_path / "bench") > 1
