"""Scores encoders by linear classifiers and STS-B, on training and development splits only.

    python -m experiments.bundled_models.training_splits --data DATA use_dan_en RUN/model
    python -m experiments.bundled_models.training_splits --data DATA --mpnet FOLDER --minilm FOLDER

The scores serve to choose between trainings without reading a test set. DATA holds SentEval's files
and STS-B. The table gives the accuracy of a ridge classifier on standardized vectors and Spearman's
correlation on the development split of STS-B. On TREC, MRPC (|u − v| and u·v side by side) and
3,000 sentences of MR the classifier is cross-validated on the training part, with five folds. On
SST-2 it is trained on 6,000 phrases and scored on the development part.

`--mpnet` and `--minilm` add rows for the bundled models' teachers (extra `peers`): each alone, both
side by side, and all-mpnet-base-v2 together with the layer that gives the hints.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import use_st5
from experiments.bundled_models.teacher import (
    HINT_DIM,
    MPNET_DIM,
    TEACHER_DIM,
    both_teachers,
)
from experiments.run import Scores
from experiments.stsb_dev import stsb_development
from use_st5.data import DataFolder
from use_st5.encode import VectorCache
from use_st5.evaluation import TRANSFER_DATASETS, LabelledTexts

PHRASES = 6_000
REVIEWS = 3_000
Encode = Callable[[list[str]], np.ndarray]


def main() -> None:
    """Reads the arguments and prints a row for each encoder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="names of bundled models or folders")
    parser.add_argument("--data", type=Path, required=True, help="folder of the data")
    parser.add_argument("--mpnet", type=Path, help="folder of all-mpnet-base-v2")
    parser.add_argument("--minilm", type=Path, help="folder of all-MiniLM-L6-v2")
    arguments = parser.parse_args()
    encoders: dict[str, Encode] = {name: use_st5.load(name).encode for name in arguments.models}
    if arguments.mpnet and arguments.minilm:
        encoders |= teachers(VectorCache(both_teachers(arguments.mpnet, arguments.minilm)))
    print("TREC   SST-2  MRPC   MR     STS-B")
    stsb = stsb_development(arguments.data)
    for name, encode in encoders.items():
        scores = *split_scores(arguments.data, encode).values(), stsb(encode)["stsb_dev_spearman"]
        print(*(f"{100 * score:.2f}" for score in scores), name, sep="  ", flush=True)


def split_scores(data: Path, encode: Encode) -> Scores:
    """Accuracy by task, on training and development parts.

    Args:
        data: Folder of SentEval's files.
        encode: Texts → vectors, `[texts, dim]`.
    """
    folder = DataFolder(data)
    trec, mrpc, reviews, train = (
        TRANSFER_DATASETS[name].read_part(folder, "train")
        for name in ("TREC", "MRPC", "MR", "SST-2")
    )
    dev = TRANSFER_DATASETS["SST-2"].read_part(folder, "dev")
    reviews = reviews.rows(np.random.default_rng(0).permutation(len(reviews))[:REVIEWS])
    phrase_rows = np.random.default_rng(0).choice(len(train), PHRASES, replace=False)
    phrases = train.rows(phrase_rows)
    sentiment = classifier().fit(features(encode, phrases), phrases.labels)

    def folds(rows: LabelledTexts) -> float:
        accuracy = cross_val_score(classifier(), features(encode, rows), rows.labels, cv=5)
        return float(accuracy.mean())

    return {
        "trec": folds(trec),
        "sst2": float(sentiment.score(features(encode, dev), dev.labels)),
        "mrpc": folds(mrpc),
        "mr": folds(reviews),
    }


def features(encode: Encode, chosen: LabelledTexts) -> np.ndarray:
    """The vectors of sentences, or |u − v| and u·v of pairs, `[rows, dim]`."""
    vectors = [encode(column) for column in chosen.columns]
    if len(vectors) == 1:
        return vectors[0]
    u, v = vectors
    return np.hstack([np.abs(u - v), u * v])


def classifier() -> Pipeline:
    """A ridge classifier; leave-one-out on the training rows chooses its regularization."""
    return make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=(100, 300, 1_000, 3_000)))


def teachers(encode: VectorCache) -> dict[str, Encode]:
    """Name → the `encode` function of each row of the teachers."""

    def part(*columns: slice) -> Encode:
        return lambda texts: encode(texts)[:, np.r_[columns]]

    mpnet, minilm = slice(MPNET_DIM), slice(MPNET_DIM, TEACHER_DIM)
    hints = slice(TEACHER_DIM, TEACHER_DIM + HINT_DIM)
    return {
        "all-mpnet-base-v2": part(mpnet),
        "all-MiniLM-L6-v2": part(minilm),
        "both": part(mpnet, minilm),
        "all-mpnet-base-v2 and the hints": part(mpnet, hints),
    }


if __name__ == "__main__":
    main()
