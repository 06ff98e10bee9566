"""The classifier over an exported encoder."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.toy_encoders import Toy
from tests.training.topics import ABOUT, LABELS

FEW: dict[str, Any] = {"steps": 2, "batch_size": 8, "evaluations": 1}
# The code of the documentation, for a process that has trained nothing.
LOADED = """
import json
import keras, tensorflow as tf
from use_st5.layers import SavedModelLayer
head = keras.models.load_model("tuned.run/classifier.keras")
model = keras.Sequential([keras.Input((), dtype="string"), SavedModelLayer("tuned"), head])
texts = json.load(open("texts.json"))
print(json.dumps(model.predict(tf.constant(texts), verbose=0).argmax(axis=1).tolist()))
"""


def write(path: Path, rows: Sequence[tuple[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


@pytest.fixture
def questions(toy_use_dan: Toy, tmp_path: Path) -> Callable[..., Any]:
    """`questions(**options) -> Trained` trains "tuned" on labelled texts, validated by others.

    The label is the word that a text begins and ends with; the toy's vectors show it.
    """
    from use_st5.training.train import train

    shown = write(tmp_path / "shown.csv", ABOUT[::2])
    asked = write(tmp_path / "asked.csv", ABOUT[1::2])
    start = str(toy_use_dan.folders["float32"])
    return lambda **options: train(
        start, shown, tmp_path / "tuned", validation=asked, **FEW, **options
    )


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_file_of_labels_gives_a_classifier_that_keras_loads(
    questions: Callable[..., Any], tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    said: list[str] = []
    (classifier,) = questions(log=said.append).classifiers
    texts, labels = zip(*ABOUT[1::2], strict=True)
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    chosen = json.loads(fresh_python("-c", LOADED).splitlines()[-1])
    names = [LABELS[place] for place in chosen]
    accuracy = sum(map(str.__eq__, names, labels)) / len(labels)
    assert accuracy > 0.8, "a quarter is chance"
    assert classifier.accuracy == {"asked": pytest.approx(accuracy)}
    (line,) = (line for line in said if line.startswith("classifier:"))
    assert f"accuracy {100 * accuracy:.2f} on asked; " in line
    assert classifier.predict(texts) == names
    np.testing.assert_allclose(classifier.probabilities(texts).sum(axis=1), 1, atol=1e-6)


def test_a_classifier_is_found_where_it_was_moved(
    questions: Callable[..., Any], tmp_path: Path
) -> None:
    from use_st5.training import Classifier

    (trained,) = questions().classifiers
    texts = [text for text, _ in ABOUT]
    expected = trained.predict(texts)
    (tmp_path / "elsewhere").mkdir()
    for name in ("tuned", "tuned.run"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    moved = Classifier.load(tmp_path / "elsewhere/tuned.run/classifier.keras")
    assert (moved.labels, moved.accuracy) == (LABELS, trained.accuracy)
    assert moved.predict(texts) == expected
    assert moved.predict([]) == []
    assert moved.predict(texts[0]) == expected[0], "one text has one label"
    assert moved.probabilities(texts[0]).shape == (len(LABELS),)

    kept = tmp_path / "kept"
    (tmp_path / "elsewhere/tuned.run").rename(kept)
    with pytest.raises(
        ValueError, match=r"in a folder TO\.run .* Give the encoder's folder: encoder=FOLDER"
    ):
        Classifier.load(kept / "classifier.keras")
    apart = Classifier.load(kept / "classifier.keras", encoder=tmp_path / "elsewhere/tuned")
    assert apart.predict(texts) == expected
    other = Classifier.load(kept / "classifier.keras", encoder="use_dan_en")
    with pytest.raises(
        ValueError, match=r"of 512 dimensions and 4 labels, received weights of the"
    ):
        other.predict(texts)
    for given in (kept, kept / "other.keras"):
        with pytest.raises(FileNotFoundError, match=r"expected a \.keras file.* Name the"):
            Classifier.load(given)


@pytest.mark.end_to_end
def test_each_of_two_files_of_labels_is_measured_by_its_own(
    toy_use_dan: Toy, tmp_path: Path
) -> None:
    from use_st5.training.train import train

    others = [(text, f"with {text.split()[1]}") for text, _ in ABOUT]
    about, beside = (
        [write(tmp_path / f"{name}_{part}.csv", rows[at::2]) for at, part in enumerate("ab")]
        for name, rows in (("about", ABOUT), ("beside", others))
    )
    trained = train(
        str(toy_use_dan.folders["float32"]),
        [about[0], beside[0]],
        tmp_path / "tuned",
        validation=[beside[1], about[1]],
        **FEW,
    )
    assert {"beside_b_accuracy", "about_b_accuracy"} < {*trained.after}
    measured = {each.path.name: [*each.accuracy] for each in trained.classifiers}
    assert measured == {"classifier_1.keras": ["about_b"], "classifier_2.keras": ["beside_b"]}
