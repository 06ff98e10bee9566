"""What does a linear classifier read from vectors, by training and development splits alone?

    python benchmarks/training_splits.py --data DATA use_dan_en runs/use_transformer_en/model
    python benchmarks/training_splits.py --data DATA --teacher

To choose between trainings without a look at a test set. DATA holds SentEval's files. Printed is
the accuracy of a ridge classifier on standardized vectors: on TREC and on MRPC (|u − v| and u·v
side by side) by cross-validation of the training part, five folds, on SST-2 trained on 6,000
phrases and scored on the development part.

With `--teacher` the rows are the layers of the bundled models' teacher (extra `peers`): its last,
the fourth, which gives the hints, both side by side, and as many of their principal components as
the sum and the vector of `use_transformer_en` have dimensions.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import use_st5
from experiments.minilm import HINT_LAYER, minilm_teacher
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.classification import MRPC, SST2, TREC, TransferSample, classifier_features

PHRASES = 6_000
Encode = Callable[[list[str]], np.ndarray]


def main() -> None:
    """Reads the arguments and prints a row for each encoder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="names of bundled models or folders")
    parser.add_argument("--data", type=Path, required=True, help="folder of SentEval's files")
    parser.add_argument("--teacher", action="store_true", help="the teacher's layers, too")
    arguments = parser.parse_args()
    data = DataFolder(arguments.data)
    trec, mrpc, train, dev = (
        samples(data, part) for part in (TREC.train, MRPC.train, SST2.train, SST2.dev)
    )
    chosen = np.random.default_rng(0).choice(len(train), PHRASES, replace=False)
    phrases = [train[row] for row in chosen]
    encoders: dict[str, Encode] = {name: use_st5.load(name).encode for name in arguments.models}
    if arguments.teacher:
        encoders |= teacher_rows([sample.sentences[0] for sample in (*trec, *phrases)])
    print("TREC   SST-2  MRPC")
    for name, encode in encoders.items():
        known, unknown = features(encode, phrases), features(encode, dev)
        sentiment = classifier().fit(known, labels(phrases)).score(unknown, labels(dev))
        scores = (
            cross_val_score(classifier(), features(encode, trec), labels(trec), cv=5).mean(),
            sentiment,
            cross_val_score(classifier(), features(encode, mrpc), labels(mrpc), cv=5).mean(),
        )
        print(*(f"{100 * score:.2f}" for score in scores), name, sep="  ", flush=True)


def samples(data: DataFolder, files: tuple) -> list[TransferSample]:
    """The samples of a part of a data set."""
    return [sample for source, read in files for sample in read(data.find(source))]


def labels(chosen: Sequence[TransferSample]) -> np.ndarray:
    """The classes, `[samples]`."""
    return np.array([sample.label for sample in chosen])


def features(encode: Encode, chosen: Sequence[TransferSample]) -> np.ndarray:
    """Vectors, or for pairs |u − v| and u·v, `[samples, dim]`."""
    columns = zip(*(sample.sentences for sample in chosen), strict=True)
    return classifier_features([encode(list(column)) for column in columns])


def classifier() -> Pipeline:
    """Its regularization is chosen on what it is trained on, one sample left out at a time."""
    return make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=(100, 300, 1_000, 3_000)))


def teacher_rows(sentences: list[str]) -> Iterator[tuple[str, Encode]]:
    """Name and encoder of each row; the components are those of the sentences."""
    last, early = minilm_teacher(), minilm_teacher(layers=HINT_LAYER)
    mean = early(sentences).mean(axis=0)

    def both(texts: list[str]) -> np.ndarray:
        return np.hstack([early(texts) - mean, last(texts)])

    yield "last layer", last
    yield f"layer {HINT_LAYER}", early
    yield "both", both
    for components in (320, 512):
        fitted = PCA(components, random_state=0).fit(both(sentences))
        yield (
            f"both, {components} components",
            lambda texts, fitted=fitted: fitted.transform(both(texts)),
        )


if __name__ == "__main__":
    main()
