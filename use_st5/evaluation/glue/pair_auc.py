"""Pair classification without training: do similarities put the positive pairs first?

Trans-Encoder (Liu et al. 2022), section 3, "binary classification": the area under the ROC curve
of the cosine of the two embeddings.
"""

from __future__ import annotations

import numpy as np

from use_st5._imports import require
from use_st5._vectors import cosine
from use_st5.evaluation.glue.labelled_texts import LabelledTexts
from use_st5.vector_store import Encode, as_cache


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
    if len(pairs.columns) != 2:
        raise ValueError(f"Expected two columns of sentences, received {len(pairs.columns)}.")
    hits = pairs.labels == positive
    if hits.all() or not hits.any():
        raise ValueError(
            f"An AUC needs pairs of class {positive} and of another one; received "
            f"{int(hits.sum())} and {int((~hits).sum())}."
        )
    similarities = cosine(*pairs.embedded(as_cache(encode)))
    return float(require("sklearn.metrics", "evaluation").roc_auc_score(hits, similarities))


def without_first(pairs: LabelledTexts, count: int) -> LabelledTexts:
    """The pairs after the first `count`.

    Raises:
        ValueError: None is left.
    """
    if len(pairs) <= count:
        raise ValueError(f"Expected more than {count} pairs, received {len(pairs)}.")
    return pairs.rows(np.arange(count, len(pairs)))
