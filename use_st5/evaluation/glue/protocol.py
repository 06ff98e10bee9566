"""SentGLUE, a classifier on frozen embeddings for each of GLUE's tasks, and pairs without training.

Sentence-T5 (Ni et al. 2022), section 8, extends SentEval to GLUE: each sentence is embedded on its
own, "additional layers" predict from the embeddings, scores are those of GLUE's dev splits. The
paper does not describe the layers; here they are SentEval's (`use_st5.evaluation.classifiers`), on
(u, v, |u − v|, u·v) for pairs. As the dev split is what is tested on, a part of the train split is
held out to choose the regularisation and to stop early.

Trans-Encoder (Liu et al. 2022), section 3, "binary classification", trains nothing: the area under
the ROC curve of the cosine of the two embeddings says whether positive pairs come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from use_st5._imports import require
from use_st5._vectors import cosine
from use_st5.evaluation.classifiers import Classifier, Features, LabelledFeatures, split
from use_st5.evaluation.classifiers.relatedness import predict_relatedness
from use_st5.evaluation.glue.readers import LabelledTexts
from use_st5.evaluation.task import Progress
from use_st5.vector_store import Encode, VectorCache, as_cache

_HELD_OUT = 0.05


def predict_classes(
    encode: Encode,
    *,
    train: LabelledTexts,
    dev: LabelledTexts,
    classifier: Classifier,
    seed: int = 1111,
    progress: Progress | None = None,
) -> np.ndarray:
    """Trains a classifier on frozen embeddings and predicts the classes of the dev split.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`.
        train: 95 % of it are trained on; a random 5 % choose the regularisation, and when to stop.
        dev: What is predicted.
        classifier: Which, and its settings.
        seed: Of the 5 %.
        progress: Shows how far the training is.

    Returns:
        A class number for each row of `dev`.

    Raises:
        ValueError: Fewer than two training rows, or the encoder gives something unusable.
    """
    embed = as_cache(encode)
    sets = [
        LabelledFeatures(_features(embed, texts), texts.labels)
        for texts in (*hold_out(train, seed=seed), dev)
    ]
    found = split(classifier, train=sets[0], dev=sets[1], test=sets[2], progress=progress)
    return found.predictions


def predict_scores(
    encode: Encode, *, train: LabelledTexts, dev: LabelledTexts, seed: int = 1111
) -> np.ndarray:
    """Learns the scores of pairs, 0 to 5, from frozen embeddings and predicts the dev split's.

    By soft labels (see `relatedness`), with 5 % of `train` held out as in `predict_classes`.

    Raises:
        ValueError: A score is outside 0 … 5, fewer than two training rows, or the encoder gives
            something unusable.
    """
    embed = as_cache(encode)
    learnt, held_out = hold_out(train, seed=seed)
    pairs = [_features(embed, texts)[:] for texts in (learnt, held_out, dev)]
    return predict_relatedness(
        (pairs[0], learnt.labels), (pairs[1], held_out.labels), pairs[2], seed=seed
    )


def hold_out(texts: LabelledTexts, *, seed: int) -> tuple[LabelledTexts, LabelledTexts]:
    """A random 95 % of the rows and the other 5 %, of which there is at least one row.

    Raises:
        ValueError: Fewer than two rows.
    """
    if len(texts) < 2:
        raise ValueError(f"Expected at least two training rows, received {len(texts)}.")
    order = np.random.default_rng(seed).permutation(len(texts))
    count = max(1, round(_HELD_OUT * len(texts)))
    return texts.rows(order[count:]), texts.rows(order[:count])


def glue_scores(
    labels: np.ndarray, predictions: np.ndarray, names: Sequence[str]
) -> dict[str, float]:
    """Scores by their names.

    Args:
        labels: Gold classes or scores `[rows]`.
        predictions: Predicted ones `[rows]`.
        names: Among "accuracy", "f1" (of class 1), "matthews", "pearson", "spearman".
    """
    return {name: _score(name, labels, predictions) for name in names}


def _score(name: str, labels: np.ndarray, predictions: np.ndarray) -> float:
    if name == "accuracy":
        return float(np.mean(labels == predictions))
    if name in ("pearson", "spearman"):
        if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
            return float("nan")  # undefined; SciPy would warn
        correlate = stats.pearsonr if name == "pearson" else stats.spearmanr
        return float(correlate(labels, predictions).statistic)
    metrics = require("sklearn.metrics", "evaluation")
    if name == "f1":
        return float(metrics.f1_score(labels, predictions, zero_division=0.0))
    return float(metrics.matthews_corrcoef(labels, predictions))


def _features(embed: VectorCache, texts: LabelledTexts) -> Features:
    vectors = texts.embedded(embed)
    return vectors[0] if len(vectors) == 1 else PairFeatures(*vectors)


class PairFeatures:
    """(u, v, |u − v|, u·v) of matching rows (· element by element), as of a float32 array.

    InferSent's features (Conneau et al. 2017, section 3.1), which SentEval and its extension to
    GLUE take for pairs. MNLI's 393 thousand pairs would fill gigabytes: rows are made when they are
    asked for, and only `u` and `v` are kept.

    Args:
        u: Embeddings `[pairs, dim]` of the first sentences.
        v: Those of the second ones.

    Attributes:
        shape: `(pairs, 4·dim)`.

    Raises:
        ValueError: The shapes differ.
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, u: np.ndarray, v: np.ndarray) -> None:
        if u.shape != v.shape or u.ndim != 2:
            raise ValueError(
                f"Expected two arrays of one shape [pairs, dim], received {u.shape} and {v.shape}."
            )
        self._u = np.asarray(u, self.dtype)
        self._v = np.asarray(v, self.dtype)
        self.shape = (len(u), 4 * u.shape[1])

    def __len__(self) -> int:
        """Number of pairs."""
        return self.shape[0]

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        """The features `[rows, 4·dim]` of the pairs that a slice or an array of numbers selects."""
        u, v = self._u[rows], self._v[rows]
        return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


def pair_auc(encode: Encode, pairs: LabelledTexts, *, positive: int = 1) -> float:
    """The probability that a positive pair is more similar than another, ties counted half.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`.
        pairs: Two columns of sentences with class numbers.
        positive: The class whose pairs should be the most similar ones.

    Returns:
        The area under the ROC curve, in 0 … 1.

    Raises:
        ValueError: There are no pairs, the positive or all other classes are missing, or the
            encoder gives something unusable.
    """
    embed = as_cache(encode)
    return similarity_auc(lambda: cosine(*pairs.embedded(embed)), pairs, positive=positive)


def similarity_auc(
    similarities: Callable[[], np.ndarray], pairs: LabelledTexts, *, positive: int = 1
) -> float:
    """As `pair_auc`, of similarities that any model gives.

    Args:
        similarities: Gives them, `[pairs]`; not called where the pairs are none.
        pairs: Two columns of sentences with class numbers.
        positive: The class whose pairs should be the most similar ones.

    Returns:
        The area under the ROC curve, in 0 … 1.

    Raises:
        ValueError: There are no pairs, or the positive or all other classes are missing.
    """
    if len(pairs.columns) != 2:
        raise ValueError(f"Expected two columns of sentences, received {len(pairs.columns)}.")
    hits = pairs.labels == positive
    if hits.all() or not hits.any():
        raise ValueError(
            f"An AUC needs pairs of class {positive} and of another one; received "
            f"{int(hits.sum())} and {int((~hits).sum())}."
        )
    return float(require("sklearn.metrics", "evaluation").roc_auc_score(hits, similarities()))


def without_first(pairs: LabelledTexts, count: int) -> LabelledTexts:
    """The pairs after the first `count`.

    Raises:
        ValueError: None is left.
    """
    if len(pairs) <= count:
        raise ValueError(f"Expected more than {count} pairs, received {len(pairs)}.")
    return pairs.rows(np.arange(count, len(pairs)))
