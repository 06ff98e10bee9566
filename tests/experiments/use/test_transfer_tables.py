"""The transfer tables, on toy data with trainings of seconds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from experiments.use import transfer_tables
from experiments.use.transfer.tables import tables


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """TREC with two classes, told apart by one word."""
    folder = tmp_path / "data"
    (folder / "TREC").mkdir(parents=True)
    for name, count in (("train_5500.label", 200), ("TREC_10.label", 20)):
        lines = [f"HUM:ind Who runs {row} ?" for row in range(count // 2)]
        lines += [f"ABBR:exp What eats {row} ?" for row in range(count // 2)]
        (folder / "TREC" / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def encoder(tmp_path: Path) -> str:
    """A SavedModel whose vectors depend only on the third character."""
    root = tf.train.Checkpoint()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def call(text: tf.Tensor) -> tf.Tensor:
        third = tf.strings.substr(text + "   ", 2, 1)
        return tf.stack([tf.where(third == "o", 20.0, -20.0), tf.ones(tf.shape(text))], axis=1)

    root.__call__ = call
    tf.saved_model.save(root, str(tmp_path / "thirds"))
    return str(tmp_path / "thirds")


@pytest.mark.end_to_end
def test_a_row_is_tuned_repeated_tested_and_kept(data: Path, encoder: str, tmp_path: Path) -> None:
    pytest.importorskip("keras_tuner")
    (tmp_path / "glove.txt").write_text("who 1 0\nwhat 0 1\n")
    options = {
        **{"encoders": [encoder], "rows": ["thirds+dan_w2v"], "vectors": tmp_path / "glove.txt"},
        **{"repeats": 2, "trials": 1, "epochs": 8},
    }
    scores = transfer_tables.run(data, tmp_path / "out", **options)
    assert set(scores) == {"trec/thirds+dan_w2v"}
    (cell,) = json.loads((tmp_path / "out/results.json").read_text())
    assert cell["texts"] == {"train": 180, "dev": 20, "test": 20}
    assert (
        cell["mean"]
        == pytest.approx(np.mean(cell["accuracies"]))
        == pytest.approx(*scores.values())
    )
    assert cell["std"] == pytest.approx(np.std(cell["accuracies"], ddof=1))
    assert cell["mean"] > 0.9
    assert {"learning_rate", "word_dropout", "train_words"} <= set(cell["hyper_parameters"])


def test_tables() -> None:
    cells = {
        ("sst2", "b"): {"mean": 0.81234, "std": 0.01},
        ("trec", "a"): {"mean": 0.9, "std": None},
        ("sst2_1000", "b"): {"mean": 0.7, "std": 0.02},
    }
    second, third = tables(cells, ["a", "b", "c"]).split("## Table 3")
    assert "| row | mr | cr | subj | mpqa | trec | sst2 |" in second
    assert "| a |  |  |  |  | 90.00 |  |" in second
    assert "| b |  |  |  |  |  | 81.23 ± 1.00 |" in second
    assert "| paper: USE_T | 81.4 | 87.4 | 93.9 | 87.0 | 92.5 | 85.4 |" in second
    assert "| b | 70.00 ± 2.00 |  |  |  |  |  | 81.23 ± 1.00 |" in third
    assert "| a |" not in third
    assert "| c |" not in second + third
