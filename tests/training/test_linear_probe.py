"""Classification heads that are fitted to the vectors of the encoder as they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.toy_encoders import Toy
from tests.training.topics import ABOUT, LABELS
from use_st5.training.linear_probe import fit_layers

WIDTH, CLASSES = 8, 3


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
        from use_st5.training.linear_probe import probe_weights

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


def test_the_same_seed_gives_the_same_heads(topics: Callable[..., Any]) -> None:
    first, second = (topics(label_loss()).get_weights() for _ in range(2))
    for mine, theirs in zip(first, second, strict=True):
        np.testing.assert_array_equal(mine, theirs)


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
    from use_st5.training.linear_probe import probe_weights
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


@pytest.mark.parametrize("count", [30, 600])
def test_what_can_be_told_apart_is(count: int) -> None:
    layer = drawn()
    vectors, labels = rows(count, noise=0.05)
    fit_layers([layer], vectors, labels)
    assert (np.asarray(layer(vectors)).argmax(axis=1) == labels).all()


def test_what_cannot_be_told_is_left_open() -> None:
    """Fitted to noise, the layers do not become sure of any class."""
    vectors, labels = rows(600, noise=0.0)
    vectors = np.random.default_rng(1).normal(size=vectors.shape).astype(np.float32)
    layer = drawn()
    begun = entropy(layer, vectors, labels)
    fit_layers([layer], vectors, labels)
    assert begun > 1.1 * np.log(CLASSES)
    assert entropy(layer, vectors, labels) == pytest.approx(np.log(CLASSES), rel=0.05)


def test_probabilities_are_fitted_as_logits_are() -> None:
    vectors, labels = rows(40, noise=0.3)
    logits, probabilities = drawn(), drawn("softmax")
    fit_layers([logits], vectors, labels)
    fit_layers([probabilities], vectors, labels, from_logits=False)
    np.testing.assert_allclose(
        keras.ops.softmax(logits(vectors)), probabilities(vectors), atol=1e-4
    )


def test_the_texts_have_their_prompt(
    toy_use_dan: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.linear_probe import probe_weights
    from use_st5.training.rows import add_statistics, read_file

    path = tmp_path / "topics.csv"
    path.write_text("\n".join(["text,label", *map(",".join, ABOUT)]))
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    found = add_statistics(read_file(path, prompts={"text": "topic: "}), encoder.tokenizer)
    asked: list[str] = []
    encode = encoder.encode
    monkeypatch.setattr(encoder, "encode", lambda texts: asked.extend(texts) or encode(texts))
    probe_weights(label_loss(), found, [], encoder, seed=0)
    assert asked == [f"topic: {text}" for text, _ in ABOUT]
