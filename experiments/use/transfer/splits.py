"""The tasks of the USE paper's tables 2 and 3, and their splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from use_st5.evaluation import TRANSFER_DATASETS, LabelledDataset, LabelledTexts

TABLE_2 = {
    name.lower().replace("-", ""): TRANSFER_DATASETS[name]
    for name in ("MR", "CR", "SUBJ", "MPQA", "TREC", "SST-2")
}
SIZES = (1000, 2000, 4000, 8000, 16000, 32000)
TASKS: dict[str, tuple[LabelledDataset, int | None]] = {
    **{name: (dataset, None) for name, dataset in TABLE_2.items()},
    **{f"sst2_{size}": (TABLE_2["sst2"], size) for size in SIZES},
}
_TENTHS = 10


@dataclass(frozen=True)
class TransferSplit:
    """The texts of one training.

    Attributes:
        number: Equal for two splits of a task if these are the same.
        train: The texts to which the weights are fitted.
        dev: The texts on which hyper-parameters, and the epoch to stop after, are chosen.
        test: The texts of the reported accuracy.
    """

    number: int
    train: LabelledTexts
    dev: LabelledTexts
    test: LabelledTexts


def split(
    data: dict[str, LabelledTexts], repeat: int, *, seed: int, examples: int | None = None
) -> TransferSplit:
    """The split of one repeat.

    If there is no dev part, a tenth of the training texts becomes the dev part, the same in all
    repeats. If there is no test part, the remaining training texts are cut into ten folds; repeat i
    tests on fold i (modulo 10) and trains on the others. Ten repeats are then a cross-validation
    without texts of the development part. The tenth and the folds are stratified by class.

    Args:
        data: The parts, with one text a row.
        repeat: The number of the repeat, from 0.
        seed: Seed of the tenth, the folds and the drawn examples.
        examples: The number of training texts to draw, anew in each repeat; None: all.
    """
    train, number = data["train"], 0
    if "dev" not in data:
        tenth = _folds(train.labels, np.random.default_rng(seed)) == 0
        train, dev = train.rows(~tenth), train.rows(tenth)
    else:
        dev = data["dev"]
    if "test" not in data:
        number = repeat % _TENTHS
        fold = _folds(train.labels, np.random.default_rng((seed, 1))) == number
        train, test = train.rows(~fold), train.rows(fold)
    else:
        test = data["test"]
    if examples is not None:
        if examples > len(train):
            raise ValueError(f"Expected at least {examples} training texts, found {len(train)}.")
        number = repeat
        order = np.random.default_rng((seed, 2, repeat)).permutation(len(train))
        train = train.rows(order[:examples])
    return TransferSplit(number, train, dev, test)


def _folds(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random fold 0 … 9 for each text, balanced within each class."""
    folds = np.empty(len(labels), np.int64)
    folds[np.lexsort((rng.random(len(labels)), labels))] = np.arange(len(labels)) % _TENTHS
    return folds
