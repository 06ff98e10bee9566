"""A report over records with every group of tasks, rendered once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.report.records import full_record
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report import write_report

HOSTILE = "<script>alert('x')</script> & $\\frac{a}$ | *b*"


@pytest.fixture(scope="session")
def full_records() -> list[EvaluationRecord]:
    """Records of two models with tasks of every group; one model's name looks like code."""
    return [full_record("use_dan_en", 1), full_record(HOSTILE, 2)]


@pytest.fixture(scope="session")
def full_report(
    full_records: list[EvaluationRecord], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder with the report of these records."""
    folder = tmp_path_factory.mktemp("report")
    write_report(full_records, folder)
    return folder
