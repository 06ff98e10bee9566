"""The comparison with few steps and small sets: its trainings, its resumption, its tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from experiments.sbert_defsent import comparison as sbert_defsent_comparison
from experiments.sbert_defsent.comparison import (
    CLASSIFIERS,
    QUICK,
    run,
    tasks_at_hand,
)
from experiments.sbert_defsent.comparison_results import NAMES
from tests.experiments.sbert_defsent import test_train as test_sbert_defsent
from tests.tiny_bert import write_tiny_bert
from use_st5.evaluation.runner import EvaluationRecord

data = test_sbert_defsent.data


@pytest.fixture
def small(data: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, float]]:
    """Runs the comparison of small methods on STS-B and one probing task."""
    sets = data / "stsbenchmark"
    for split in ("train", "test"):
        (sets / f"sts-{split}.csv").write_text((sets / "sts-dev.csv").read_text())
    words = ("dog", "man", "cat", "child")
    rows = [
        f"{part}\t{label}\t{words[n % 4]} eats {words[n % 3]} {'now' * label}\n"
        for part, count in (("tr", 40), ("va", 20), ("te", 20))
        for n in range(count)
        for label in (0, 1)
    ]
    (data / "probing").mkdir()
    (data / "probing/past_present.txt").write_text(
        "".join(rows).replace("\t0\t", "\tPAST\t").replace("\t1\t", "\tPRES\t")
    )
    monkeypatch.setattr(sbert_defsent_comparison, "METHODS", test_sbert_defsent.SMALL)
    bert = write_tiny_bert(data.parent / "bert", head=True)
    return lambda output, **given: run(data, output, pretrained=bert, **given)


@pytest.mark.end_to_end
def test_all_methods_come_into_one_table(
    small: Callable[..., dict[str, float]], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    scores = small(output, seeds=1)
    assert {name.split("/")[0] for name in scores} == {*NAMES}
    assert {name.split("/")[1] for name in scores} == {
        *("stsb", "sts_dice", "probing_tense"),
    }
    text = (output / "tables.md").read_text()
    assert text.count("| S+D | 1 |") == 3, "STS, by shared words, and probing"
    assert b"<svg" in (output / "sts_dice.svg").read_bytes()
    # The first stage of S+D has the same weights as the run of SBERT.
    states = [
        (output / run / "checkpoints/sbert/checkpoint-000000010/values.safetensors").read_bytes()
        for run in ("sbert_0", "s_d_0")
    ]
    assert states[0] == states[1]
    kept = {path: path.stat().st_mtime_ns for path in output.rglob("*.json")}
    assert small(output, seeds=1) == scores
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*.json")} == kept
    # One more seed; the model without fine-tuning does not depend on it, and has one run.
    scores = small(output, seed=1, seeds=1, methods=("untuned", "defsent"))
    both = [EvaluationRecord.read(output / f"defsent_{n}/evaluation.json") for n in (0, 1)]
    values = [record.tasks["stsb"]["scores"]["spearman_all"] for record in both]
    assert scores["defsent/stsb"] == pytest.approx(np.mean(values))
    assert values[0] != values[1]
    assert "| DefSent | 2 |" in (output / "tables.md").read_text()
    assert "| w/o FT | 1 |" in (output / "tables.md").read_text()


def test_transfer_has_the_quick_settings(data_dir: Path) -> None:
    """SentEval's README: kfold 5, rmsprop, batches of 128, tenacity 3, epoch size 2."""
    by_name = {task.name: task for task in tasks_at_hand(data_dir)}
    assert by_name["mr"].options == QUICK.settings()
    assert (QUICK.folds, QUICK.optimizer, QUICK.batch_size) == (5, "rmsprop", 128)
    assert (QUICK.tenacity, QUICK.epoch_size) == (3, 2)
    assert {"stsb", "sickr", "sts_sources", "sts_dice", "trec"} <= {*by_name}
    full = {task.name: task for task in tasks_at_hand(data_dir, CLASSIFIERS["full"])}["mr"]
    assert full.options == CLASSIFIERS["full"].settings()
    assert "stsb_dev" not in by_name, "choices were made on it"
