from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.toys import BagOfWords
from use_st5.evaluation.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.sts.sts_dice_task import STSDiceTask
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache

# Rows of one split: gold score and second sentence; the first is "a b c d".
SPLITS = {
    "train": [(1, "e"), (0, "f"), (4, "a"), (5, "b")],
    "dev": [(3, "a b"), (3, "c d"), (2, "a b c")],
    "test": [(1, "b c d"), (5, "d c b a"), (4, "A b c d!")],
}


def near_the_alphabet(sentences: list[str]) -> np.ndarray:
    """Similarities to the first sentence fall from "a…" to "f…"."""
    angles = np.array([ord(sentence[0].lower()) - ord("a") for sentence in sentences]) / 4
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def write(folder: Path, splits: dict[str, list[tuple[float, str]]]) -> None:
    folder.mkdir()
    for split, rows in splits.items():
        lines = [f"main\tf\t2012\t1\t{score}\ta b c d\t{second}\n" for score, second in rows]
        (folder / f"sts-{split}.csv").write_text("".join(lines))


def test_by_hand(tmp_path: Path) -> None:
    write(tmp_path / "stsbenchmark", SPLITS)
    context = TaskContext(VectorCache(near_the_alphabet), DataFolder(tmp_path))
    result = STSDiceTask().run(context)
    quintiles = result.details["quintiles"]
    assert [(each["dice_from"], each["dice_to"], each["pairs"]) for each in quintiles] == [
        (value, value, 2) for value in (0, 2 / 5, 2 / 3, 6 / 7, 1)
    ]
    # e above f as in gold, a below b, equal gold scores, a above b, A above d though gold is not.
    expected = {"q1": 1, "q2": -1, "q3": np.nan, "q4": 1, "q5": -1}
    for name, value in expected.items():
        assert result.scores[f"spearman_{name}"] == pytest.approx(value, nan_ok=True)
    assert [each["spearman"] for each in quintiles] == pytest.approx(
        [*expected.values()], nan_ok=True
    )
    assert result.main == "spearman_mean"
    assert np.isnan(result.scores["spearman_mean"])
    assert result.counts == {"pairs": 10}


def test_a_split_is_missing(tmp_path: Path) -> None:
    write(tmp_path / "stsbenchmark", {name: SPLITS[name] for name in ("dev", "test")})
    with pytest.raises(MissingDataError, match="STS-B train: expected"):
        STSDiceTask().run(TaskContext(VectorCache(near_the_alphabet), DataFolder(tmp_path)))


def test_all_splits_of_the_benchmark(data_dir: Path) -> None:
    context = TaskContext(VectorCache(BagOfWords().encode), DataFolder(data_dir))
    result = STSDiceTask().run(context)
    quintiles = result.details["quintiles"]
    assert [each["pairs"] for each in quintiles] == [1725, 1726, 1725, 1726, 1726]
    assert (quintiles[0]["dice_from"], quintiles[-1]["dice_to"]) == (0, 1)
    scores = [result.scores[f"spearman_q{number}"] for number in range(1, 6)]
    assert result.scores["spearman_mean"] == pytest.approx(np.mean(scores))
