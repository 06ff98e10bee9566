"""Classifying layers that begin as classifiers of what the encoder gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.toy_encoders import Toy
from tests.training.topics import ABOUT, LABELS

pytestmark = pytest.mark.usefixtures("without_xla")


@pytest.fixture
def topics(toy_use_dan: Toy, tmp_path: Path) -> Callable[..., Any]:
    """`topics(make) -> FittedLoss` of texts about words, with the toy that is to learn."""
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.sources import open_source
    from use_st5.training.survey import survey

    path = tmp_path / "topics.csv"
    path.write_text("\n".join(["text,label", *map(",".join, ABOUT)]))
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    found = survey(open_source(path), encoder.vectorizer)

    def made(make: Callable[[], Any]) -> Any:
        from use_st5.training.fitted_loss import FittedLoss

        return FittedLoss(make, found, [], encoder, seed=0)

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
    fitted = topics(label_loss(hidden_dims=hidden_dims))
    _, drawn = fitted()(toy_use_dan.model, batch(toy_use_dan))
    fitted.fit()
    _, begun = fitted()(toy_use_dan.model, batch(toy_use_dan))
    assert float(drawn["accuracy"]) < 0.6
    assert float(begun["accuracy"]) > 0.9


def test_each_loss_has_layers_of_its_own_with_the_same_values(topics: Callable[..., Any]) -> None:
    fitted, again = topics(label_loss()), topics(label_loss())
    for each in (fitted, again):
        each.fit()
    first, second = fitted(), fitted()
    assert first.output_layer is not second.output_layer
    for other in (second, again()):
        for mine, theirs in zip(first.get_weights(), other.get_weights(), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_every_length_of_a_matryoshka_has_its_classifier(
    topics: Callable[..., Any], toy_use_dan: Toy
) -> None:
    from use_st5.losses.matryoshka_loss import MatryoshkaLoss

    fitted = topics(lambda: MatryoshkaLoss(label_loss()(), dimensions=(8, 16)))
    fitted.fit()
    _, begun = fitted()(toy_use_dan.model, batch(toy_use_dan))
    assert float(begun["accuracy_8"]) > 0.7
    assert float(begun["accuracy_16"]) > 0.9


def test_inference_is_classified_by_both_texts(toy_use_dan: Toy, tmp_path: Path) -> None:
    """Whether two texts are about the same word."""
    from use_st5.losses.classification_loss import ClassificationLoss
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.fitted_loss import FittedLoss
    from use_st5.training.sources import open_source
    from use_st5.training.survey import survey

    names = ["different", "same"]
    rows = [
        (one, other, names[about == another])
        for (one, about), (other, another) in itertools.product(ABOUT[::4], ABOUT[1::4])
    ]
    path = tmp_path / "nli.csv"
    path.write_text("\n".join(["premise,hypothesis,label", *map(",".join, rows)]))
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    found = survey(open_source(path), encoder.vectorizer)
    make = partial(ClassificationLoss, num_classes=2, hidden_dims=(16,))
    fitted = FittedLoss(make, found, [], encoder, seed=0)
    fitted.fit()
    premises, hypotheses, labels = zip(*rows, strict=True)
    _, begun = fitted()(
        toy_use_dan.model,
        {
            "premise": toy_use_dan.ids([*premises]),
            "hypothesis": toy_use_dan.ids([*hypotheses]),
            "label": np.array([*map(names.index, labels)]),
        },
    )
    assert float(begun["accuracy"]) > 0.9
