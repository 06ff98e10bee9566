"""The classifier over an exported encoder."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.own_data.topics import ABOUT, LABELS
from tests.toy_encoders import Toy

pytestmark = pytest.mark.usefixtures("without_xla")

FEW: dict[str, Any] = {"steps": 2, "batch_size": 8, "evaluations": 1}
# What the documents say, in a process that has trained nothing.
LOADED = """
import json
import keras, tensorflow as tf
from use_st5.models.transfer import TransferModel
model = keras.models.load_model("tuned.run/classifier.keras", safe_mode=False)
texts = json.load(open("texts.json"))
print(json.dumps(model.predict(tf.constant(texts), verbose=0).argmax(axis=1).tolist()))
"""


def write(path: Path, rows: Sequence[tuple[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


@pytest.mark.process
def test_a_file_of_labels_gives_a_classifier_that_keras_loads(
    toy_use_dan: Toy, tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    """Which word a text begins and ends with can be told from the toy's vectors."""
    from use_st5.own_data.training import train

    shown, asked = ABOUT[::2], ABOUT[1::2]
    said: list[str] = []
    train(
        str(toy_use_dan.folders["float32"]),
        write(tmp_path / "topics.csv", shown),
        tmp_path / "tuned",
        dev=write(tmp_path / "asked.csv", asked),
        on_news=said.append,
        **FEW,
    )
    record = json.loads((tmp_path / "tuned.run/classifier.json").read_text())
    assert record["labels"] == LABELS
    (tmp_path / "texts.json").write_text(json.dumps([text for text, _ in asked]))
    chosen = json.loads(fresh_python("-c", LOADED).splitlines()[-1])
    right = [LABELS[place] == label for place, (_, label) in zip(chosen, asked, strict=True)]
    accuracy = sum(right) / len(right)
    assert accuracy > 0.8, "a quarter is chance"
    assert record["accuracy"] == {"asked": pytest.approx(accuracy)}
    (line,) = (line for line in said if line.startswith("classifier:"))
    assert f"accuracy {100 * accuracy:.2f} on asked" in line


def test_each_of_two_files_of_labels_is_measured_by_its_own(
    toy_use_dan: Toy, tmp_path: Path
) -> None:
    from use_st5.own_data.training import train

    others = [(text, f"with {text.split()[1]}") for text, _ in ABOUT]
    about, beside = (
        [write(tmp_path / f"{name}_{part}.csv", rows[at::2]) for at, part in enumerate("ab")]
        for name, rows in (("about", ABOUT), ("beside", others))
    )
    trained = train(
        str(toy_use_dan.folders["float32"]),
        [about[0], beside[0]],
        tmp_path / "tuned",
        dev=[beside[1], about[1]],
        **FEW,
    )
    assert {"beside_b_accuracy", "about_b_accuracy"} < {*trained.after}
    for number, name in enumerate(("about", "beside"), start=1):
        record = json.loads((tmp_path / f"tuned.run/classifier_{number}.json").read_text())
        assert [*record["accuracy"]] == [f"{name}_b"]
