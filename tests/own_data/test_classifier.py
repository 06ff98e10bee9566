"""The classifier over an exported encoder."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.own_data.topics import ABOUT, LABELS
from tests.toy_encoders import Toy

pytestmark = pytest.mark.usefixtures("without_xla")

# What the documents say, in a process that has trained nothing.
LOADED = """
import json
import keras, tensorflow as tf
from use_st5.models.transfer import TransferModel
model = keras.models.load_model("tuned.run/classifier.keras", safe_mode=False)
texts = json.load(open("texts.json"))
print(json.dumps(model.predict(tf.constant(texts), verbose=0).argmax(axis=1).tolist()))
"""


@pytest.mark.process
def test_a_file_of_labels_gives_a_classifier_that_keras_loads(
    toy_use_dan: Toy, tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    """Which word a text begins and ends with can be told from the toy's vectors."""
    from use_st5.own_data.training import train

    with (tmp_path / "topics.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *ABOUT])
    start = str(toy_use_dan.folders["float32"])
    train(
        *(start, tmp_path / "topics.csv", tmp_path / "tuned"),
        **{"steps": 2, "batch_size": 8, "evaluations": 1},
    )
    names = json.loads((tmp_path / "tuned.run/classifier.json").read_text())["labels"]
    assert names == LABELS
    (tmp_path / "texts.json").write_text(json.dumps([text for text, _ in ABOUT]))
    chosen = json.loads(fresh_python("-c", LOADED).splitlines()[-1])
    right = [names[place] == label for place, (_, label) in zip(chosen, ABOUT, strict=True)]
    assert sum(right) / len(right) > 0.9
