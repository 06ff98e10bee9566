"""The development split of the STS Benchmark: what recipes tune and choose by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from use_st5.evaluation.sts import STSSet, evaluate_sts, read_stsb

_BATCH = 512


def read_stsb_dev(data: Path) -> STSSet:
    """The split, found anywhere below a folder.

    Raises:
        FileNotFoundError: It is not there.
    """
    found = sorted(data.glob("**/sts-dev.csv"))
    if not found:
        raise FileNotFoundError(
            f"Expected the STS Benchmark's sts-dev.csv below {data}: the recipe chooses and "
            "reports by it. Found none."
        )
    return read_stsb(found[0])


def stsb_dev_scores(
    encode: Callable[[list[str]], np.ndarray], development: STSSet
) -> dict[str, float]:
    """Correlations by name, in `[-1, 1]`."""
    (score,) = evaluate_sts(encode, development)
    return {
        "stsb_dev_pearson": score.pearson["all"],
        "stsb_dev_spearman": score.spearman["all"],
    }


def padded_encoder(model: keras.Model, vectorizer: Any) -> Callable[[list[str]], np.ndarray]:
    """`list[str] → [n, dimension]` by the model as it stands, in training or after."""
    encode_ids = tf.function(
        lambda ids: model(ids, training=False),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
    )

    def encode(sentences: list[str]) -> np.ndarray:
        starts = range(0, len(sentences), _BATCH)
        batches = (sentences[i : i + _BATCH] for i in starts)
        return np.concatenate([encode_ids(vectorizer.padded(batch)).numpy() for batch in batches])

    return encode
