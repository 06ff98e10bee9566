"""The classifier over an exported encoder."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path

import pytest

from tests.toy_encoders import WORDS, Toy

pytestmark = pytest.mark.usefixtures("without_xla")

FIRST = WORDS[:4]


def test_a_file_of_labels_gives_a_classifier_that_keras_loads(
    toy_use_dan: Toy, tmp_path: Path
) -> None:
    """Which word a text begins and ends with can be told from the toy's vectors."""
    import keras
    import tensorflow as tf

    from use_st5.own_data.training import train

    rows = [
        (" ".join([word, *others, word, word]), f"about {word}")
        for word in FIRST
        for others in itertools.permutations(WORDS[4:9], 2)
    ]
    with (tmp_path / "topics.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    start = str(toy_use_dan.folders["float32"])
    train(
        *(start, tmp_path / "topics.csv", tmp_path / "tuned"),
        **{"steps": 2, "batch_size": 8, "evaluations": 1},
    )
    model = keras.models.load_model(tmp_path / "tuned.run/classifier.keras", safe_mode=False)
    names = json.loads((tmp_path / "tuned.run/classifier.json").read_text())["labels"]
    assert names == sorted(f"about {word}" for word in FIRST)
    chosen = model.predict(tf.constant([text for text, _ in rows]), verbose=0).argmax(axis=1)
    right = [names[place] == label for place, (_, label) in zip(chosen, rows, strict=True)]
    assert sum(right) / len(right) > 0.9
