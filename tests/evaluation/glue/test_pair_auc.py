from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from use_st5.evaluation.glue.labelled_texts import LabelledTexts
from use_st5.evaluation.glue.pair_auc import pair_auc, without_first

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
