from __future__ import annotations

from pathlib import Path

import pytest
from scipy import stats

from tests.evaluation.toys import BagOfWords
from use_st5.evaluation.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.multilingual_sts.tasks import TASKS
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache

# Cosines 1, 1/√2, 1/2 and 0, but for the thousandths of the encoder.
INPUTS = ["hola\thola", "hola\thola hello", "a b\tb c", "uno\tone"]
GOLD = ["4.8", "5.0", "2.0", "0.0"]


def context(folder: Path) -> TaskContext:
    return TaskContext(VectorCache(BagOfWords().encode), DataFolder(folder))


def write(folder: Path, gold: list[str]) -> None:
    for kind, where, lines in (("input", "eval.v1.1", INPUTS), ("gs", "gs", gold)):
        path = folder / "sts" / f"STS2017.{where}" / f"STS.{kind}.track4a.es-en.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_correlations_over_all_pairs(tmp_path: Path) -> None:
    write(tmp_path, GOLD)
    (task,) = (task for task in TASKS if task.name == "xsts_es-en")
    result = task.run(context(tmp_path))
    # Ranks 4 3 2 1 against 3 4 2 1: 1 - 6 (1 + 1) / (4 · 15).
    assert result.main == "spearman_all"
    assert result.scores["spearman_all"] == pytest.approx(0.8)
    cosines = [1, 2**-0.5, 0.5, 0]
    expected = stats.pearsonr(cosines, [float(score) for score in GOLD]).statistic
    assert result.scores["pearson_all"] == pytest.approx(expected, abs=1e-2)
    assert result.counts == {"pairs": 4}
    assert result.details == {"languages": ["es", "en"]}


def test_missing_gold(tmp_path: Path) -> None:
    write(tmp_path, GOLD)
    (tmp_path / "sts" / "STS2017.gs" / "STS.gs.track4a.es-en.txt").unlink()
    (task,) = (task for task in TASKS if task.name == "xsts_es-en")
    with pytest.raises(MissingDataError, match=r"STS\.gs\.track4a\.es-en\.txt.* found none"):
        task.run(context(tmp_path))
