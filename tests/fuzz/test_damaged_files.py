"""Damaged files of every reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.damage import Damage, Workbench, damages
from tests.fuzz.readers import READERS
from tests.fuzz.strings import FEW


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_named(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    if reader.needs:
        pytest.importorskip(reader.needs, reason=f"{reader.needs} is not installed")
    bench = Workbench(tmp_path, reader.make)
    assert bench.check(reader.read, bench.files[0], []), "a whole file is read"

    @settings(FEW, max_examples=max(int(FEW.max_examples * reader.share), 4))
    @given(file=st.sampled_from(bench.files), changes=damages(of_text=reader.of_text))
    def check(file: str, changes: list[Damage]) -> None:
        bench.check(reader.read, file, changes)

    check()
