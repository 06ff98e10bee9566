from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from experiments.use.little_data import (
    learning_curve,
    little_data_task,
)
from tests.evaluation.toys import letter_context
from use_st5.evaluation.classifiers import SentEvalClassifier
from use_st5.evaluation.labelled_texts import LabelledTexts

CLASSIFIER = SentEvalClassifier(seed=3)


def encode(sentences: list[str]) -> np.ndarray:
    return np.array([[float(word) for word in sentence.split()] for sentence in sentences])


def toy(seed: int, count: int) -> LabelledTexts:
    """Classes that follow from 20 numbers and noise, so that more examples help."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(count, 20)).round(3)
    labels = (vectors.sum(axis=1) + generator.normal(size=count) > 0).astype(int)
    return LabelledTexts(([" ".join(map(str, row)) for row in vectors],), labels)


DATA = {"train": toy(0, 2000), "dev": toy(1, 200), "test": toy(2, 1000)}


def test_more_examples_help() -> None:
    sizes = [20, 200, 2000]
    few, some, all_ = learning_curve(encode, DATA, sizes=sizes, draws=3, classifier=CLASSIFIER)
    assert [point["examples"] for point in (few, some, all_)] == sizes
    assert [point["draws"] for point in (few, some, all_)] == [3, 3, 3]
    assert 0.55 < few["accuracy"] < some["accuracy"] < all_["accuracy"]
    assert few["std"] > all_["std"]


TASK = little_data_task((50, 100), draws=2)


def write(folder: Path, part: str, count: int) -> None:
    (folder / "SST" / "binary").mkdir(parents=True, exist_ok=True)
    lines = [f"{'xy'[n % 2]} {n % 9} \t{n % 2}" for n in range(count)]
    path = folder / "SST" / "binary" / f"sentiment-{part}"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_result(tmp_path: Path) -> None:
    for part, count in (("train", 200), ("dev", 50), ("test", 40)):
        write(tmp_path, part, count)
    result = TASK.run(letter_context(tmp_path))
    assert result.main == "accuracy_50"
    assert [*result.scores] == ["accuracy_50", "accuracy_100", "accuracy_all"]
    assert result.scores["accuracy_all"] == 1.0
    assert result.counts == {"train": 200, "dev": 50, "test": 40}
    curve = result.details["curve"]
    assert [point["examples"] for point in curve] == [50, 100, 200]
    assert [point["accuracy"] for point in curve] == [*result.scores.values()]
    assert {point["draws"] for point in curve} == {2}
    assert all(math.isfinite(point["std"]) for point in curve)
    json.dumps(result.details)


def test_the_sizes_of_the_paper() -> None:
    task = little_data_task()
    assert task.options["sizes"] == [1000, 2000, 4000, 8000, 16000, 32000]
    assert (task.name, task.group) == ("little_data_sst", "little_data")
    assert json.loads(json.dumps(task.options)) == task.options
