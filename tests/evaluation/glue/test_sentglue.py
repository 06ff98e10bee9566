from __future__ import annotations

import numpy as np
import pytest
from sklearn import linear_model, metrics
from sklearn.preprocessing import StandardScaler

from use_st5.evaluation.classifiers import SentEvalClassifier, SklearnClassifier
from use_st5.evaluation.glue.labelled_texts import LabelledTexts
from use_st5.evaluation.glue.sentglue import (
    glue_scores,
    hold_out,
    predict_classes,
    predict_scores,
)

FAST = SentEvalClassifier(epoch_size=8, max_epoch=40)


def numbers(sentences: list[str]) -> np.ndarray:
    """Sentences are written numbers: their embeddings."""
    return np.array([[float(word) for word in sentence.split()] for sentence in sentences])


def written(vectors: np.ndarray) -> list[str]:
    return [" ".join(str(value) for value in row) for row in vectors]


def noise(sentences: list[str]) -> np.ndarray:
    generator = np.random.default_rng(len(sentences))
    return generator.normal(size=(len(sentences), 8))


def single(seed: int, count: int) -> LabelledTexts:
    """Classes 0, 1 and 2 around three corners."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(3, size=count)
    return LabelledTexts((written(4 * np.eye(3)[labels] + generator.random((count, 3))),), labels)


def pairs(seed: int, count: int) -> LabelledTexts:
    """Class 1 where both embeddings are the same: only |u − v| and u·v can tell."""
    generator = np.random.default_rng(seed)
    u = generator.choice([-1.0, 1.0], (count, 3))
    labels = generator.integers(2, size=count)
    v = np.where(labels[:, np.newaxis], u, -u)
    return LabelledTexts((written(u), written(v)), labels)


@pytest.mark.parametrize("make", [single, pairs])
def test_what_embeddings_tell_is_learnt(make: object) -> None:
    train, dev = make(0, 400), make(1, 100)
    for classifier in (FAST, SklearnClassifier()):
        found = predict_classes(numbers, train=train, dev=dev, classifier=classifier)
        assert (found == dev.labels).all()


def test_what_they_do_not_tell_is_not() -> None:
    train, dev = pairs(0, 400), pairs(1, 1000)
    # Each sentence another one, so that none is known from the training.
    for texts in (train, dev):
        for side, column in enumerate(texts.columns):
            column[:] = [f"{len(texts)} {side} {row}" for row in range(len(texts))]
    found = predict_classes(noise, train=train, dev=dev, classifier=FAST)
    assert abs(np.mean(found == dev.labels) - 0.5) < 0.1


def test_dev_labels_play_no_part() -> None:
    train, dev = single(0, 100), single(1, 50)
    other = LabelledTexts(dev.columns, (dev.labels + 1) % 3)
    one, two = (
        predict_classes(numbers, train=train, dev=each, classifier=FAST) for each in (dev, other)
    )
    assert np.array_equal(one, two)


def test_each_sentence_is_embedded_once() -> None:
    asked = []

    def encode(sentences: list[str]) -> np.ndarray:
        asked.extend(sentences)
        return numbers(sentences)

    predict_classes(encode, train=pairs(0, 60), dev=pairs(1, 20), classifier=FAST)
    assert len(asked) == len(set(asked)) == 8


def test_hold_out_is_five_percent_and_seeded() -> None:
    texts = LabelledTexts(([str(row) for row in range(200)],), np.arange(200))
    train, held_out = hold_out(texts, seed=1)
    assert (len(train), len(held_out)) == (190, 10)
    assert sorted([*train.labels, *held_out.labels]) == [*range(200)]
    assert [int(text) for text in held_out.columns[0]] == held_out.labels.tolist()
    assert np.array_equal(held_out.labels, hold_out(texts, seed=1)[1].labels)
    assert not np.array_equal(held_out.labels, hold_out(texts, seed=2)[1].labels)
    few = texts.rows(np.arange(2))
    assert [len(part) for part in hold_out(few, seed=1)] == [1, 1]
    with pytest.raises(ValueError, match="at least two training rows, received 1"):
        hold_out(texts.rows(np.arange(1)), seed=1)


def graded(seed: int, count: int) -> LabelledTexts:
    """Scores that fall with the distance of the embeddings."""
    generator = np.random.default_rng(seed)
    scores = generator.uniform(0, 5, count)
    u = generator.normal(size=(count, 2))
    v = u + (5 - scores)[:, np.newaxis] * generator.choice([-1.0, 1.0], (count, 2))
    return LabelledTexts((written(u), written(v)), scores)


def test_scores_are_learnt_from_distances() -> None:
    dev = graded(1, 200)
    found = predict_scores(numbers, train=graded(0, 400), dev=dev)
    assert glue_scores(dev.labels, found, ["pearson"])["pearson"] > 0.95
    assert ((found >= 0) & (found <= 5)).all()


# True positives 3, false negatives 1, false positives 2, true negatives 4.
GOLD = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
FOUND = np.array([1, 1, 1, 0, 1, 1, 0, 0, 0, 0])


def test_scores_by_hand() -> None:
    found = glue_scores(GOLD, FOUND, ["accuracy", "f1", "matthews"])
    assert found == {
        "accuracy": pytest.approx(0.7),
        "f1": pytest.approx(2 * 3 / (2 * 3 + 2 + 1)),
        "matthews": pytest.approx((3 * 4 - 2 * 1) / (5 * 4 * 6 * 5) ** 0.5),
    }
    # The same class for all: no correlation, no true positive.
    assert glue_scores(GOLD, np.zeros(10, int), ["matthews", "f1"]) == {"matthews": 0, "f1": 0}
    assert glue_scores(GOLD, 1 - GOLD, ["matthews"])["matthews"] == -1.0


def test_correlations_by_hand() -> None:
    gold, found = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0, 9.0])
    scores = glue_scores(gold, found, ["pearson", "spearman"])
    assert scores["spearman"] == pytest.approx(1.0)
    assert scores["pearson"] == pytest.approx(np.corrcoef(gold, found)[0, 1])
    assert np.isnan(glue_scores(gold, np.ones(4), ["pearson"])["pearson"])


def test_classifier_comes_near_scikit_learn_s_own() -> None:
    """Noisy classes: an own training with scikit-learn, from the features up, says the same."""
    generator = np.random.default_rng(5)

    def noisy(count: int) -> tuple[LabelledTexts, np.ndarray]:
        u, v = generator.normal(size=(2, count, 4)).round(3)
        labels = ((u * v).sum(axis=1) + generator.normal(size=count) > 0).astype(int)
        return LabelledTexts((written(u), written(v)), labels), np.hstack([u, v, abs(u - v), u * v])

    (train, train_x), (dev, dev_x) = noisy(2000), noisy(1000)
    found = predict_classes(numbers, train=train, dev=dev, classifier=SentEvalClassifier())
    scaler = StandardScaler().fit(train_x)
    peer = linear_model.LogisticRegression().fit(scaler.transform(train_x), train.labels)
    expected = metrics.accuracy_score(dev.labels, peer.predict(scaler.transform(dev_x)))
    assert np.mean(found == dev.labels) == pytest.approx(expected, abs=0.02)
    assert expected > 0.75
