from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest

from use_st5.evaluation.classifiers import SentEvalClassifier, SklearnClassifier
from use_st5.evaluation.little_data import protocol
from use_st5.evaluation.little_data.protocol import CurvePoint, learning_curve
from use_st5.evaluation.senteval.readers import TransferSample, TransferSet
from use_st5.evaluation.task import Progress


def test_mean_and_sample_deviation() -> None:
    accuracies = (0.5, 0.75, 0.7)
    point = CurvePoint(1000, accuracies)
    assert point.mean == pytest.approx(np.mean(accuracies))
    assert point.deviation == pytest.approx(np.std(accuracies, ddof=1))


def test_one_draw_has_no_deviation() -> None:
    assert CurvePoint(1, (0.5,)).mean == 0.5
    assert math.isnan(CurvePoint(1, (0.5,)).deviation)


CLASSIFIER = SklearnClassifier(seed=3)


def encode(sentences: list[str]) -> np.ndarray:
    return np.array([[float(word) for word in sentence.split()] for sentence in sentences])


def toy(seed: int, count: int) -> list[TransferSample]:
    """Classes that 20 numbers tell, up to noise: more examples help."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(count, 20)).round(3)
    labels = (vectors.sum(axis=1) + generator.normal(size=count) > 0).astype(int)
    texts = [" ".join(map(str, row)) for row in vectors]
    return [TransferSample((text,), label) for text, label in zip(texts, labels, strict=True)]


DATA = TransferSet("toy", toy(0, 2000), toy(1, 200), toy(2, 1000))


def test_more_examples_help() -> None:
    sizes = [20, 200, 2000]
    few, some, all_ = learning_curve(encode, DATA, sizes=sizes, draws=3, classifier=CLASSIFIER)
    assert [point.examples for point in (few, some, all_)] == sizes
    assert [len(point.accuracies) for point in (few, some, all_)] == [3, 3, 3]
    assert 0.55 < few.mean < some.mean < all_.mean
    assert few.deviation > all_.deviation


def test_draws_differ_and_can_be_repeated() -> None:
    def run(seed: int) -> tuple[float, ...]:
        classifier = SentEvalClassifier(seed=seed, max_epoch=8)
        points = learning_curve(encode, DATA, sizes=[100], draws=3, classifier=classifier)
        return points[0].accuracies

    first = run(3)
    assert len(set(first)) == 3
    assert run(3) == first
    assert run(9) != first


def test_draws_are_subsets_without_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Found:
        test_accuracy = 0.5

    def record(classifier: object, *, train: object, dev: object, test: object) -> Found:
        seen.append((classifier.seed, train, len(dev), len(test)))
        return Found()

    monkeypatch.setattr(protocol, "split", record)
    learning_curve(encode, DATA, sizes=[50, 2000], draws=2, classifier=CLASSIFIER)
    assert [seed for seed, *_ in seen] == [3, 4, 3, 4]
    assert [len(train) for _, train, *_ in seen] == [50, 50, 2000, 2000]
    assert {sizes for *_, a, b in seen for sizes in [(a, b)]} == {(200, 1000)}
    vectors = encode([sample.sentences[0] for sample in DATA.train]).astype(np.float32)
    labels = [sample.label for sample in DATA.train]
    rows = {tuple(row): label for row, label in zip(vectors, labels, strict=True)}
    for _, train, *_ in seen:
        drawn = [tuple(row) for row in train.features]
        assert len(set(drawn)) == len(drawn)
        assert [rows[row] for row in drawn] == train.labels.tolist()
    assert {tuple(row) for row in seen[0][1].features} != {
        tuple(row) for row in seen[1][1].features
    }


def test_progress_counts_the_draws() -> None:
    totals = []

    class Counting(Progress):
        def track(self, steps: Iterable, description: str, total: int | None = None) -> Iterable:
            totals.append((description, total))
            return steps

    learning_curve(
        encode, DATA, sizes=[20, 30], draws=2, classifier=CLASSIFIER, progress=Counting()
    )
    assert totals == [("draws", 4)]


@pytest.mark.parametrize("sizes", [[0], [10, 2001]])
def test_sizes_must_fit_the_data(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match=rf"sizes: expected 1 to 2000 .* \[{sizes[-1]}\]"):
        learning_curve(encode, DATA, sizes=sizes)


def test_no_draws() -> None:
    with pytest.raises(ValueError, match="draws: expected at least 1, received 0"):
        learning_curve(encode, DATA, sizes=[10], draws=0)


def test_three_parts_of_single_sentences() -> None:
    with pytest.raises(ValueError, match=r"toy: expected a dev and a test part, received train"):
        learning_curve(encode, TransferSet("toy", DATA.train), sizes=[10])
    pairs = [TransferSample(("1", "2"), 0)]
    with pytest.raises(ValueError, match="single sentences, received pairs"):
        learning_curve(encode, TransferSet("toy", pairs, pairs, pairs), sizes=[1])
