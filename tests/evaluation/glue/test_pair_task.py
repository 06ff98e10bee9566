from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.data_source import DataSource
from use_st5.evaluation.glue.pair_task import PairTask
from use_st5.evaluation.glue.table_layout import TableLayout
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache

TASK = PairTask(
    "pairs_toy",
    "Toy",
    DataSource("Toy dev", ("Toy/dev.tsv",), "nowhere: a test makes it"),
    TableLayout((0, 1), 2, ("entailment", "not_entailment")),
    positive="entailment",
    split="all but the first pair",
    skipped=1,
)


def test_result(tmp_path: Path) -> None:
    (tmp_path / "Toy").mkdir()
    lines = ["a\tb\tentailment", "a\ta\t0", "a\tb\tnot_entailment", "b\tb\t1", "c\tc\tentailment"]
    (tmp_path / "Toy" / "dev.tsv").write_text("\n".join(lines), encoding="utf-8")
    embed = VectorCache(lambda texts: np.eye(3)[["abc".index(text) for text in texts]])
    result = TASK.run(TaskContext(embed, DataFolder(tmp_path)))
    # Two positive pairs of cosine 1 against one of 0 and one of 1: two wins, two ties.
    assert result.scores == {"auc": pytest.approx(3 / 4)}
    assert result.counts == {"pairs": 4, "positive": 2, "broken_lines": 0}


def test_what_a_record_says() -> None:
    assert "positive class “entailment”, all but the first pair" in TASK.protocol
    assert json.loads(json.dumps(TASK.options())) == TASK.options()
