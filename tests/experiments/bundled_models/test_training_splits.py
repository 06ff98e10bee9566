"""Scores on training and development parts: a task that vectors solve, and one they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.bundled_models.training_splits import split_scores

pytest.importorskip("sklearn", reason="the extra `evaluation` is not installed")


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of tasks whose classes have a word each; there are no test parts."""
    words = [("bad", "good")[number % 2] for number in range(6_200)]
    for kind, word in (("pos", "good"), ("neg", "bad")):
        write(tmp_path / f"MR/rt-polarity.{kind}", [f"{word} {number}" for number in range(1_600)])
    sst = tmp_path / "SST/binary"
    write(sst / "sentiment-train", [f"{word}\t{int(word == 'good')}" for word in words])
    write(sst / "sentiment-dev", [f"{word}\t{int(word == 'bad')}" for word in words[:20]])
    classes = {"good": "HUM:ind", "bad": "NUM:date"}
    write(tmp_path / "TREC/train_5500.label", [f"{classes[word]} {word}" for word in words[:60]])
    pairs = [f"{int(word == 'good')}\tgood\t{word}" for word in words[:60]]
    write(tmp_path / "MRPC/msr_paraphrase_train.txt", ["Quality\t#1 String\t#2 String", *pairs])
    return tmp_path


def encode(texts: list[str]) -> np.ndarray:
    return np.array([["good" in text, "bad" in text] for text in texts], np.float32)


def test_only_training_and_development_parts_are_scored(data: Path) -> None:
    assert split_scores(data, encode) == {
        "trec": 1.0,
        "sst2": 0.0,  # The development labels are swapped.
        "mrpc": 1.0,
        "mr": 1.0,
    }
