from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn import linear_model, metrics
from sklearn.preprocessing import StandardScaler

from use_st5.evaluation.classifiers import SentEvalClassifier, SklearnClassifier
from use_st5.evaluation.glue.protocol import (
    PairFeatures,
    glue_scores,
    hold_out,
    pair_auc,
    predict_classes,
    predict_scores,
    without_first,
)
from use_st5.evaluation.glue.readers import LabelledTexts

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


def test_features_by_hand() -> None:
    features = PairFeatures(np.array([[1.0, -2.0], [0.5, 0.0]]), np.array([[3.0, 1.0], [0.5, 4.0]]))
    assert features.shape == (2, 8)
    assert features[np.array([1, 0])].tolist() == [
        [0.5, 0.0, 0.5, 4.0, 0.0, 4.0, 0.25, 0.0],
        [1.0, -2.0, 3.0, 1.0, 2.0, 3.0, 3.0, -2.0],
    ]
    assert features[:].dtype == np.float32


def test_only_the_rows_asked_for_are_made() -> None:
    # Of all rows they would take 400 GB: u and v are views of one row.
    vectors = np.broadcast_to(np.float32(0.5), (25_000_000, 1024))
    features = PairFeatures(vectors, vectors)
    assert len(features) == 25_000_000
    assert features[np.array([24_999_999])].sum() == 1024 * (0.5 + 0.5 + 0.0 + 0.25)


def test_swapping_a_pair_swaps_the_embeddings_alone() -> None:
    generator = np.random.default_rng(0)
    u, v = generator.normal(size=(2, 5, 3))
    one, other = PairFeatures(u, v)[:], PairFeatures(v, u)[:]
    assert np.array_equal(one[:, :3], other[:, 3:6])
    assert np.array_equal(one[:, 6:], other[:, 6:])


def test_shapes_must_be_equal() -> None:
    with pytest.raises(ValueError, match=r"received \(2, 3\) and \(2, 4\)"):
        PairFeatures(np.zeros((2, 3)), np.zeros((2, 4)))


GENERATOR = np.random.default_rng(0)


def angles(sentences: list[str]) -> np.ndarray:
    """Sentences are written angles in degrees."""
    radians = np.radians([float(sentence) for sentence in sentences])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


def turned(degrees: list[float], labels: list[int]) -> LabelledTexts:
    """Pairs that so many degrees lie between."""
    return LabelledTexts((["0"] * len(labels), [str(each) for each in degrees]), np.array(labels))


def test_by_hand() -> None:
    # Positive pairs: 10 and 50 degrees apart, the others 30, 50 and 80. Of six comparisons the
    # positive pair is nearer in 3 (10) + 1 (50 to 80), and as near in one (50 to 50).
    pairs = turned([10, 30, 50, 50, 80], [1, 0, 1, 0, 0])
    assert pair_auc(angles, pairs) == pytest.approx(4.5 / 6)
    # Class 0 as the positive one turns the order round.
    assert pair_auc(angles, pairs, positive=0) == pytest.approx(1.5 / 6)


def test_is_the_statistic_of_mann_and_whitney() -> None:
    degrees, labels = GENERATOR.uniform(0, 180, 300), GENERATOR.integers(2, size=300)
    similarities = np.cos(np.radians(degrees))
    hits, others = similarities[labels == 1], similarities[labels == 0]
    expected = stats.mannwhitneyu(hits, others).statistic / (len(hits) * len(others))
    assert pair_auc(angles, turned([*degrees], [*labels])) == pytest.approx(expected)


def test_invariances() -> None:
    degrees, labels = GENERATOR.uniform(0, 90, 200), GENERATOR.integers(3, size=200)
    expected = pair_auc(angles, turned([*degrees], [*labels]), positive=2)
    order = GENERATOR.permutation(200)
    assert pair_auc(
        angles, turned([*degrees[order]], [*labels[order]]), positive=2
    ) == pytest.approx(expected)
    # A monotone map of the similarity: twice the angle.
    assert pair_auc(angles, turned([*(2 * degrees)], [*labels]), positive=2) == pytest.approx(
        expected
    )
    # The length of the embeddings.
    assert pair_auc(
        lambda texts: angles(texts) * (1 + GENERATOR.random((len(texts), 1))),
        turned([*degrees], [*labels]),
        positive=2,
    ) == pytest.approx(expected)


def test_perfect_and_random_encoders() -> None:
    labels = GENERATOR.integers(2, size=2000)
    pairs = turned([*np.where(labels, 20.0, 60.0)], [*labels])
    assert pair_auc(angles, pairs) == 1.0
    texts = LabelledTexts(([f"a{n}" for n in range(2000)], [f"b{n}" for n in range(2000)]), labels)
    chance = pair_auc(lambda texts: GENERATOR.normal(size=(len(texts), 16)), texts)
    assert abs(chance - 0.5) < 0.05


def test_errors() -> None:
    with pytest.raises(ValueError, match="class 1 and of another one; received 2 and 0"):
        pair_auc(angles, turned([1, 2], [1, 1]))
    with pytest.raises(ValueError, match="class 1 and of another one; received 0 and 2"):
        pair_auc(angles, turned([1, 2], [0, 0]))
    with pytest.raises(ValueError, match="two columns of sentences, received 1"):
        pair_auc(angles, LabelledTexts((["1"],), np.array([1])))


def test_without_first() -> None:
    rest = without_first(turned([1, 2, 3], [0, 1, 0]), 2)
    assert rest.columns == (["0"], ["3"])
    with pytest.raises(ValueError, match="more than 3 pairs, received 3"):
        without_first(turned([1, 2, 3], [0, 1, 0]), 3)
