"""The classifier over an exported encoder."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.toy_encoders import Toy
from tests.training.topics import ABOUT, LABELS
from use_st5.training.classifier import fit_layers

WIDTH, CLASSES = 8, 3
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
    with pytest.raises(ValueError, match="Give encoder=FOLDER"):
        Classifier.load(kept / "classifier.keras")
    apart = Classifier.load(kept / "classifier.keras", encoder=tmp_path / "elsewhere/tuned")
    assert apart.predict(texts) == expected
    other = Classifier.load(kept / "classifier.keras", encoder="use_dan_en")
    with pytest.raises(
        ValueError, match=r"of 512 dimensions and 4 labels, received weights of the"
    ):
        other.predict(texts)
    for given in (kept, kept / "other.keras"):
        with pytest.raises(FileNotFoundError, match="expected the classifier.keras"):
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


@pytest.fixture
def topics(toy_use_dan: Toy, tmp_path: Path) -> Callable[..., Any]:
    """`topics(make)` makes a loss with heads fitted to the toy's vectors of texts about words."""
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.rows import add_statistics, read_file

    path = tmp_path / "topics.csv"
    path.write_text("\n".join(["text,label", *map(",".join, ABOUT)]))
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    found = add_statistics(read_file(path), encoder.tokenizer)

    def made(make: Callable[[], Any]) -> Any:
        from use_st5.training.classifier import probe_weights

        loss = make()
        loss.build((None, encoder.dimension))
        loss.set_weights(probe_weights(make, found, [], encoder, seed=0))
        return loss

    return made


def batch(toy: Toy) -> dict[str, Any]:
    texts, labels = zip(*ABOUT, strict=True)
    return {"text": toy.ids([*texts]), "label": np.array([*map(LABELS.index, labels)])}


def label_loss(**options: Any) -> Callable[[], Any]:
    from use_st5.losses.label_loss import LabelLoss

    return partial(LabelLoss, num_classes=len(LABELS), **options)


@pytest.mark.parametrize("hidden_dims", [(), (8,)])
def test_it_names_the_classes_before_the_first_step(
    hidden_dims: tuple[int, ...], topics: Callable[..., Any], toy_use_dan: Toy
) -> None:
    make = label_loss(hidden_dims=hidden_dims)
    _, random = make()(toy_use_dan.model, batch(toy_use_dan))
    _, begun = topics(make)(toy_use_dan.model, batch(toy_use_dan))
    assert float(random["accuracy"]) < 0.6
    assert float(begun["accuracy"]) > 0.9


def test_every_length_of_a_matryoshka_has_its_classifier(
    topics: Callable[..., Any], toy_use_dan: Toy
) -> None:
    from use_st5.losses.matryoshka_loss import MatryoshkaLoss

    fitted = topics(lambda: MatryoshkaLoss(label_loss()(), dimensions=(8, 16)))
    _, begun = fitted(toy_use_dan.model, batch(toy_use_dan))
    assert float(begun["accuracy_8"]) > 0.7
    assert float(begun["accuracy_16"]) > 0.9


def test_inference_is_classified_by_both_texts(toy_use_dan: Toy, tmp_path: Path) -> None:
    """The class says whether two texts are about the same word."""
    from use_st5.losses.classification_loss import ClassificationLoss
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.classifier import probe_weights
    from use_st5.training.rows import add_statistics, read_file

    names = ["different", "same"]
    rows = [
        (one, other, names[about == another])
        for (one, about), (other, another) in itertools.product(ABOUT[::4], ABOUT[1::4])
    ]
    path = tmp_path / "nli.csv"
    path.write_text("\n".join(["premise,hypothesis,label", *map(",".join, rows)]))
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    found = add_statistics(read_file(path), encoder.tokenizer)
    make = partial(ClassificationLoss, num_classes=2, hidden_dims=(16,))
    fitted = make()
    fitted.build((None, encoder.dimension))
    fitted.set_weights(probe_weights(make, found, [], encoder, seed=0))
    premises, hypotheses, labels = zip(*rows, strict=True)
    _, begun = fitted(
        toy_use_dan.model,
        {
            "premise": toy_use_dan.ids([*premises]),
            "hypothesis": toy_use_dan.ids([*hypotheses]),
            "label": np.array([*map(names.index, labels)]),
        },
    )
    assert float(begun["accuracy"]) > 0.9


def drawn(activation: str | None = None) -> keras.layers.Dense:
    """A classification layer, always with the same random weights."""
    layer = keras.layers.Dense(
        CLASSES, activation, kernel_initializer=keras.initializers.GlorotUniform(seed=1)
    )
    layer.build((None, WIDTH))
    return layer


def rows(count: int, *, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Vectors scattered around one direction for each class, and their classes."""
    random = np.random.default_rng(0)
    labels = random.integers(CLASSES, size=count)
    vectors = np.eye(WIDTH)[labels] + noise * random.normal(size=(count, WIDTH))
    return vectors.astype(np.float32), labels


def entropy(layer: keras.layers.Dense, vectors: np.ndarray, labels: np.ndarray) -> float:
    found = keras.losses.sparse_categorical_crossentropy(labels, layer(vectors), from_logits=True)
    return float(np.mean(found))


def test_what_cannot_be_told_is_left_open() -> None:
    """Fitted to noise, the layers do not become sure of any class."""
    vectors, labels = rows(600, noise=0.0)
    vectors = np.random.default_rng(1).normal(size=vectors.shape).astype(np.float32)
    layer = drawn()
    begun = entropy(layer, vectors, labels)
    fit_layers([layer], vectors, labels)
    assert begun > 1.1 * np.log(CLASSES)
    assert entropy(layer, vectors, labels) == pytest.approx(np.log(CLASSES), rel=0.05)
