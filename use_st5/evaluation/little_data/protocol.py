"""Accuracy against the number of training examples.

Universal Sentence Encoder (Cer et al. 2018), section 5 and table 3: the training set of a transfer
task is cut to 1,000, 2,000, … examples, models are trained repeatedly, accuracies averaged.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from use_st5.evaluation.classifiers import Classifier, LabelledFeatures, SentEvalClassifier, split
from use_st5.evaluation.senteval.readers import TransferSample, TransferSet
from use_st5.evaluation.task import Progress
from use_st5.vector_store import Encode, VectorCache, as_cache


@dataclass(frozen=True)
class CurvePoint:
    """What classifiers trained on so many examples reached.

    Attributes:
        examples: Number of training examples of each draw.
        accuracies: Test accuracies in 0 … 1, one per draw.
    """

    examples: int
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Of the accuracies."""
        return statistics.fmean(self.accuracies)

    @property
    def deviation(self) -> float:
        """Their sample standard deviation (divided by draws − 1); NaN of one draw."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else float("nan")


def learning_curve(
    encode: Encode,
    data: TransferSet,
    *,
    sizes: Sequence[int],
    draws: int = 5,
    classifier: Classifier | None = None,
    progress: Progress | None = None,
) -> list[CurvePoint]:
    """Trains classifiers on random subsets of the training sentences.

    The draws of one size, and of different sizes, are independent of each other. Each has its own
    seed for the subset and for the classifier's beginning, so that draws of the whole training set
    differ in the latter.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`.
        data: Single sentences in three parts: "train" is drawn from, "dev", whole at all sizes,
            chooses the regularisation, accuracies are those of "test".
        sizes: Numbers of training examples.
        draws: How many subsets of each size.
        classifier: SentEval's logistic regression by default; its seed is the first draw's.
        progress: Shows the draws.

    Returns:
        A point for each size, in their order.

    Raises:
        ValueError: A part is missing, or has pairs of sentences; a size is below 1 or above the
            number of training sentences; no draws; the encoder gives something unusable.
    """
    if data.dev is None or data.test is None:
        received = ", ".join(data.parts())
        raise ValueError(f"{data.name}: expected a dev and a test part, received {received}.")
    most = len(data.train)
    if bad := [size for size in sizes if not 1 <= size <= most]:
        raise ValueError(f"sizes: expected 1 to {most} training examples, received {bad}.")
    if draws < 1:
        raise ValueError(f"draws: expected at least 1, received {draws}.")
    classifier = classifier or SentEvalClassifier()
    embed = as_cache(encode)
    train, dev, test = (_features(embed, part) for part in (data.train, data.dev, data.test))
    accuracies: dict[int, list[float]] = {size: [] for size in sizes}
    steps = [(size, draw) for size in sizes for draw in range(draws)]
    for size, draw in (progress or Progress()).track(steps, "draws", len(steps)):
        seed = classifier.seed + draw
        rows = np.random.default_rng((seed, size)).permutation(len(train))[:size]
        found = split(
            dataclasses.replace(classifier, seed=seed),
            train=LabelledFeatures(train.read(rows), train.labels[rows]),
            dev=dev,
            test=test,
        )
        accuracies[size].append(found.test_accuracy)
    return [CurvePoint(size, tuple(accuracies[size])) for size in sizes]


def _features(embed: VectorCache, samples: Sequence[TransferSample]) -> LabelledFeatures:
    if any(len(sample.sentences) != 1 for sample in samples):
        raise ValueError("Expected single sentences, received pairs.")
    sentences = [sample.sentences[0] for sample in samples]
    return LabelledFeatures(embed(sentences), np.array([sample.label for sample in samples]))
