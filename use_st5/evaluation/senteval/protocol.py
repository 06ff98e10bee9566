"""SentEval's transfer protocol: features of frozen embeddings, a classifier, its validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from use_st5.evaluation.classifiers.classifier import Classifier, LabelledFeatures
from use_st5.evaluation.classifiers.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.classifiers.validation import inner_kfold, kfold, split
from use_st5.evaluation.senteval.readers import TransferSample, TransferSet
from use_st5.evaluation.task import Progress
from use_st5.vector_store import Encode, VectorCache, as_cache


@dataclass(frozen=True)
class TransferScore:
    """Accuracies in 0 … 1.

    Attributes:
        name: The set's name.
        protocol: The classifier's: "senteval" or "sklearn".
        accuracy: On the test samples.
        f1: Of class 1 on the test samples; None where there are more than two classes.
        dev_accuracy: Of the chosen regularisation.
        regularization: What was chosen, once for each final classifier.
        counts: Part → number of samples.
    """

    name: str
    protocol: str
    accuracy: float
    f1: float | None
    dev_accuracy: float
    regularization: tuple[float, ...]
    counts: dict[str, int]


def evaluate_transfer(
    encode: Encode,
    data: TransferSet,
    *,
    classifier: Classifier | None = None,
    progress: Progress | None = None,
) -> TransferScore:
    """Trains a classifier on embeddings and tests it.

    Samples are sorted by their numbers of tokens and their labels first, as in the original: the
    folds depend on their order. Pairs have the features (|a − b|, a·b) (senteval/mrpc.py, sick.py).

    Args:
        encode: Sentences → embeddings `[sentences, dim]`; each distinct sentence is encoded once.
        data: Train alone is validated by `inner_kfold`, train and test by `kfold`, train, dev and
            test by `split`.
        classifier: `SentEvalClassifier()` by default.
        progress: Shows how far the training is.

    Raises:
        ValueError: A class has fewer samples than there are folds, or `encode` gives another shape
            or numbers that are not finite.
    """
    classifier = classifier or SentEvalClassifier()
    embed = as_cache(encode)
    parts = {part: _features(embed, samples) for part, samples in data.parts().items()}
    if data.test is None:
        found = inner_kfold(classifier, parts["train"], progress=progress)
    elif data.dev is None:
        found = kfold(classifier, **parts, progress=progress)
    else:
        found = split(classifier, **parts, progress=progress)
    gold = parts.get("test", parts["train"]).labels
    return TransferScore(
        name=data.name,
        protocol=found.protocol,
        accuracy=found.test_accuracy,
        f1=_f1(found.predictions, gold) if gold.max() < 2 else None,
        dev_accuracy=found.dev_accuracy,
        regularization=found.regularization,
        counts={part: len(samples) for part, samples in data.parts().items()},
    )


def _features(embed: VectorCache, samples: Sequence[TransferSample]) -> LabelledFeatures:
    ordered = sorted(samples, key=TransferSample.order)
    columns = zip(*(sample.sentences for sample in ordered), strict=True)
    # What the batchers of SentEval's examples give an encoder for no tokens.
    vectors = [embed([sentence or "." for sentence in column]) for column in columns]
    labels = np.array([sample.label for sample in ordered])
    return LabelledFeatures(classifier_features(vectors), labels)


def classifier_features(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """What SentEval's classifiers see: a sentence's vector; of two, |u − v| and u·v side by side.

    Args:
        vectors: One or two arrays `[samples, dim]`.

    Returns:
        `[samples, dim]`, or of pairs `[samples, 2·dim]`.
    """
    if len(vectors) == 1:
        return vectors[0]
    first, second = vectors
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def _f1(predictions: np.ndarray, gold: np.ndarray) -> float:
    """2·hits / (predicted + gold) of class 1; 0 where there are neither."""
    hits = int(((predictions == 1) & (gold == 1)).sum())
    return 2 * hits / max(int((predictions == 1).sum() + (gold == 1).sum()), 1)
