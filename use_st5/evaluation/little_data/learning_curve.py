"""Accuracy against the number of training examples.

Universal Sentence Encoder (Cer et al. 2018), section 5 and table 3: the training set of a transfer
task is cut to 1,000, 2,000, … examples, models are trained repeatedly, accuracies averaged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from use_st5.embedder import Encode, as_embedder
from use_st5.evaluation.classifiers import Classifier, LabelledFeatures, SentEvalClassifier, split
from use_st5.evaluation.glue.labelled_texts import LabelledTexts
from use_st5.evaluation.little_data.curve_point import CurvePoint
from use_st5.evaluation.task import Progress


def learning_curve(
    encode: Encode,
    *,
    train: LabelledTexts,
    dev: LabelledTexts,
    test: LabelledTexts,
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
        train: Sentences (one column) to draw from.
        dev: Those that choose the regularisation, whole at all sizes.
        test: Those that accuracies are of.
        sizes: Numbers of training examples.
        draws: How many subsets of each size.
        classifier: SentEval's logistic regression by default; its seed is the first draw's.
        progress: Shows the draws.

    Returns:
        A point for each size, in their order.

    Raises:
        ValueError: A size is below 1 or above the number of training sentences; no draws; the
            encoder gives something unusable.
    """
    if bad := [size for size in sizes if not 1 <= size <= len(train)]:
        raise ValueError(f"sizes: expected 1 to {len(train)} training examples, received {bad}.")
    if draws < 1:
        raise ValueError(f"draws: expected at least 1, received {draws}.")
    classifier = classifier or SentEvalClassifier()
    embed = as_embedder(encode)
    all_train, dev_set, test_set = (
        LabelledFeatures(embed(texts.columns[0]), texts.labels) for texts in (train, dev, test)
    )
    accuracies: dict[int, list[float]] = {size: [] for size in sizes}
    steps = [(size, draw) for size in sizes for draw in range(draws)]
    for size, draw in (progress or Progress()).track(steps, "draws", len(steps)):
        seed = classifier.seed + draw
        rows = np.random.default_rng((seed, size)).permutation(len(all_train))[:size]
        found = split(
            dataclasses.replace(classifier, seed=seed),
            train=LabelledFeatures(all_train.read(rows), all_train.labels[rows]),
            dev=dev_set,
            test=test_set,
        )
        accuracies[size].append(found.test_accuracy)
    return [CurvePoint(size, tuple(accuracies[size])) for size in sizes]
