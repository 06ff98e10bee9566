"""Probing a sentence encoder, by the protocol of SentEval."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from use_st5.evaluation.classifiers import (
    Classification,
    Classifier,
    LabelledFeatures,
    SentEvalClassifier,
    split,
)
from use_st5.evaluation.probing.readers import PARTS, ProbingSet
from use_st5.evaluation.task import Progress
from use_st5.vector_store import Encode, as_cache


def mlp_grid(classifier: SentEvalClassifier) -> list[SentEvalClassifier]:
    """The classifiers that the dev part chooses among in the paper.

    One hidden layer with sigmoid, 50, 100 or 200 units, dropout 0, 0.1 or 0.2 (Conneau et al.
    2018, section 4; SentEval's README).
    """
    return [
        dataclasses.replace(classifier, hidden_dim=units, dropout=rate)
        for units in (50, 100, 200)
        for rate in (0.0, 0.1, 0.2)
    ]


def probe(
    encode: Encode,
    data: ProbingSet,
    *,
    classifiers: Iterable[Classifier] = (SentEvalClassifier(),),
    progress: Progress | None = None,
) -> tuple[Classifier, Classification]:
    """Trains classifiers on embeddings; that with the best dev accuracy counts.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`.
        data: What is learnt. The dev part chooses the regularisation of each classifier.
        classifiers: Among what the dev part chooses; the first of equals.
        progress: Shows how far each training is.

    Returns:
        The chosen classifier and what it reached.

    Raises:
        ValueError: No classifiers, or the encoder gives something unusable.
    """
    embed = as_cache(encode)
    parts = {
        part: LabelledFeatures(embed(data.sentences[part]), data.labels[part]) for part in PARTS
    }
    found = [(each, split(each, **parts, progress=progress)) for each in classifiers]
    if not found:
        raise ValueError("classifiers: expected at least one, received none.")
    return max(found, key=lambda pair: pair[1].dev_accuracy)
