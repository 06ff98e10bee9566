"""The tasks of the USE paper's tables 2 and 3, and their splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from use_st5.evaluation.classification import (
    CR,
    MPQA,
    MR,
    SST2,
    SUBJ,
    TREC,
    TransferDataset,
    TransferSample,
    TransferSet,
)

TABLE_2 = {"mr": MR, "cr": CR, "subj": SUBJ, "mpqa": MPQA, "trec": TREC, "sst2": SST2}
SIZES = (1000, 2000, 4000, 8000, 16000, 32000)
TASKS: dict[str, tuple[TransferDataset, int | None]] = {
    **{name: (dataset, None) for name, dataset in TABLE_2.items()},
    **{f"sst2_{size}": (SST2, size) for size in SIZES},
}
_TENTHS = 10


@dataclass(frozen=True)
class LabelledTexts:
    """Texts with their classes, int64 `[texts]`, from 0."""

    texts: list[str]
    labels: np.ndarray

    def rows(self, chosen: np.ndarray) -> LabelledTexts:
        """Those that an index or a mask chooses."""
        rows = np.arange(len(self.texts))[chosen]
        return LabelledTexts([self.texts[row] for row in rows], self.labels[rows])


@dataclass(frozen=True)
class TransferSplit:
    """What one training uses.

    Attributes:
        number: Equal for two splits of a task if these are the same.
        train: What the weights are fitted to.
        dev: What hyper-parameters, and the epoch to stop after, are chosen by.
        test: What is reported.
    """

    number: int
    train: LabelledTexts
    dev: LabelledTexts
    test: LabelledTexts


def split(
    data: TransferSet, repeat: int, *, seed: int, examples: int | None = None
) -> TransferSplit:
    """The split of one repeat.

    Where there is no dev part, a tenth of the training texts is it, the same in all repeats. Where
    there is no test part either, the nine other tenths are cut into ten folds; repeat i tests on
    fold i (modulo 10) and trains on the others: ten repeats are a cross-validation in which no text
    is tested that is in the development part. Tenths and folds have each class in its share.

    Args:
        data: One text a sample.
        repeat: From 0.
        seed: Of the tenth, the folds and the drawn examples.
        examples: Draw so many training texts, others in each repeat; None: all.

    Raises:
        ValueError: There are fewer training texts than `examples`.
    """
    train, number = _labelled(data.train), 0
    if data.dev is None:
        tenth = _folds(train.labels, np.random.default_rng(seed)) == 0
        train, dev = train.rows(~tenth), train.rows(tenth)
    else:
        dev = _labelled(data.dev)
    if data.test is None:
        number = repeat % _TENTHS
        fold = _folds(train.labels, np.random.default_rng((seed, 1))) == number
        train, test = train.rows(~fold), train.rows(fold)
    else:
        test = _labelled(data.test)
    if examples is not None:
        if examples > len(train.texts):
            raise ValueError(
                f"{data.name}: expected at least {examples} training texts, found "
                f"{len(train.texts)}."
            )
        number = repeat
        order = np.random.default_rng((seed, 2, repeat)).permutation(len(train.texts))
        train = train.rows(order[:examples])
    return TransferSplit(number, train, dev, test)


def _labelled(samples: Sequence[TransferSample]) -> LabelledTexts:
    return LabelledTexts(
        [sample.sentences[0] for sample in samples], np.array([sample.label for sample in samples])
    )


def _folds(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A fold 0 … 9 for each text, at random within each class."""
    folds = np.empty(len(labels), np.int64)
    folds[np.lexsort((rng.random(len(labels)), labels))] = np.arange(len(labels)) % _TENTHS
    return folds
