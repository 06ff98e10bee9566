"""Classification across languages: a classifier of English pairs judges those of 14 others (XNLI).

Conneau et al. 2018 (XNLI, arXiv 1809.05053, section 4.2.2) train on MultiNLI and test in each
language. Here XNLI's English dev part is learnt, which is small, and the embeddings are frozen.
"""

from __future__ import annotations

import numpy as np

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation.classifiers import LabelledFeatures, PairFeatures, SentEvalClassifier
from use_st5.evaluation.labelled_texts import (
    LabelledTexts,
    joined,
    labelled_texts,
    read_columns,
    read_table,
)
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

_CLASSES = ("contradiction", "entailment", "neutral")
_LANGUAGES = (
    *("en", "ar", "bg", "de", "el", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh"),
)
# Three pairs share a premise. Of five premises one is tested; of the English ones, one is held out.
_PREMISES, _PAIRS = 5, 3
_XTREME = "XTREME's files of XNLI: https://github.com/google-research/xtreme"


def _source(part: str, language: str) -> DataSource:
    name = f"xnli/{part}-{language}.tsv"
    return DataSource(name, (name,), _XTREME, "CC BY-NC 4.0")


_TRAIN = _source("dev", "en")
_TESTS = {language: _source("test", language) for language in _LANGUAGES}
# XTREME publishes no labels of the test part. KorNLI's file has its rows in the same order.
_LABELS = DataSource(
    "XNLI's test labels",
    ("KorNLI/xnli.test.ko.tsv",),
    "https://github.com/kakaobrain/KorNLUDatasets",
    "CC BY-SA 4.0",
)


def read_xnli(data: DataFolder) -> dict[str, LabelledTexts]:
    """English pairs to learn, as "train", and the tested pairs of each language."""
    rows, _ = read_columns(data.find(_LABELS), ("gold_label",))
    labels = [_CLASSES.index(label) for _, (label,) in rows]
    parts = {"train": read_table(data.find(_TRAIN), (0, 1), 2, _CLASSES)}
    for language, source in _TESTS.items():
        path = data.find(source)
        pairs = [pair for _, pair in read_columns(path, (0, 1))[0]]
        if len(pairs) != len(labels):
            raise ValueError(f"{path}: expected {len(labels)} pairs, received {len(pairs)}.")
        texts = labelled_texts(path, [*zip(labels, pairs, strict=True)])
        parts[language] = texts.rows(_of_fifth_premises(texts))
    return parts


def _of_fifth_premises(texts: LabelledTexts) -> np.ndarray:
    return np.arange(len(texts)) // _PAIRS % _PREMISES == 0


def _score(context: TaskContext, parts: dict[str, LabelledTexts]) -> TaskResult:
    train = parts["train"]
    held_out = _of_fifth_premises(train)
    tests = {language: parts[language] for language in _LANGUAGES}
    texts = {"train": train.rows(~held_out), "dev": train.rows(held_out)}
    features = {
        part: LabelledFeatures(PairFeatures(*pairs.embedded(context.embed)), pairs.labels)
        for part, pairs in {**texts, "test": joined([*tests.values()])}.items()
    }
    result = SentEvalClassifier(seed=context.seed).split(**features)
    right = np.split(result.predictions == features["test"].labels, len(tests))
    languages = {
        language: {"pairs": len(pairs), "accuracy": float(np.mean(hits))}
        for (language, pairs), hits in zip(tests.items(), right, strict=True)
    }
    accuracies = [row["accuracy"] for row in languages.values()]
    scores = {"accuracy_14": float(np.mean(accuracies[1:])), "accuracy_en": accuracies[0]}
    counts = {"train": len(texts["train"]), "dev": len(texts["dev"]), "test": len(tests["en"])}
    return TaskResult("accuracy_14", scores, counts, {"languages": languages})


TASKS = (
    EvaluationTask(
        "xnli",
        "xnli",
        "XNLI",
        "Accuracy of SentEval's logistic regression on (u, v, |u − v|, u·v) of frozen embeddings, "
        "trained on English pairs (four fifths of XNLI's dev part; the rest chooses the L2 "
        "factor) and tested in each language; mean of 14 without English, chance 1/3",
        score=_score,
        reader=read_xnli,
        sources=(_TRAIN, *_TESTS.values(), _LABELS),
        options={"tested": "every fifth premise", **SentEvalClassifier().settings()},
    ),
)
