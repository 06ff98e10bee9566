"""Attacks on the tables of users, and on the names in a remote store."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest

from tests.fuzz.remote_names import remote_names
from tests.fuzz.strings import FEW
from tests.fuzz.tables import ATTACKS, FORMATS, Attack, attacks, check_table, whole_csv, write_table
from use_st5.training.rows import read_file


def attacked_tables(root: Path, *, seed: int | None = None) -> int:
    """Attacks one table after the other and reads it.

    Args:
        root: A folder that exists.
        seed: The seed of the attacks; None: always the same few.

    Returns:
        The number of tables that were attacked.
    """
    checked = 0

    @hypothesis.settings(FEW, derandomize=seed is None)
    @hypothesis.given(attack=attacks)
    def check(attack: Attack) -> None:
        nonlocal checked
        checked += 1
        path = root / f"table.{attack.suffix}"
        write_table(path, attack)
        check_table(path)

    (check if seed is None else hypothesis.seed(seed)(check))()
    return checked


def test_no_row_of_an_attacked_table_is_lost_unsaid(tmp_path: Path) -> None:
    assert attacked_tables(tmp_path) > 1


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("kind", ATTACKS)
def test_every_attack_on_every_format(kind: str, suffix: str, tmp_path: Path) -> None:
    for row, other, quoted in ((5, 90, False), (5, 90, True), (100, 112, False)):
        path = tmp_path / f"table.{suffix}"
        write_table(path, Attack(kind, suffix, row, other, quoted))
        check_table(path)


def test_texts_over_several_lines_are_read(tmp_path: Path) -> None:
    whole_csv(tmp_path / "whole.csv", 50)
    source = read_file(tmp_path / "whole.csv")
    assert len([*source]) == 50
    assert not source.report.malformed_rows


def test_no_name_of_a_remote_store_leads_out_of_the_folder(tmp_path: Path) -> None:
    assert remote_names(tmp_path / "disk") > 1
