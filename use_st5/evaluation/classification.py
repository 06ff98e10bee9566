"""SentEval's transfer tasks: a small classifier on frozen sentence embeddings.

Source: Conneau and Kiela, SentEval (LREC 2018, arXiv 1803.05449), and facebookresearch/SentEval.
The files are those that its get_transfer_data.bash writes; white space separates tokens.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from use_st5._imports import require
from use_st5.data.data_folder import DataSource
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation._text_files import numbered_lines, read_lines, split_fields
from use_st5.evaluation.classifiers import (
    Classifier,
    LabelledFeatures,
    SklearnClassifier,
)
from use_st5.evaluation.labelled_texts import (
    LabelledDataset,
    LabelledTexts,
    Read,
    TableLayout,
    labelled_texts,
)
from use_st5.evaluation.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.sts import SICK_TEST, SICK_TRAIN, SICK_TRIAL
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

_SCORES = ("0", "1", "2", "3", "4")
_TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
MRPC_LAYOUT = TableLayout(("#1 String", "#2 String"), "Quality", ("not_equivalent", "equivalent"))
_SICK_LAYOUT = TableLayout(
    ("sentence_A", "sentence_B"),
    "entailment_judgment",
    ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"),
)


def read_sentences(path: str | Path, *, label: int) -> LabelledTexts:
    """Sentences of one class, one per line (ISO-8859-1): MR, CR, SUBJ, MPQA."""
    lines = read_lines(path, encoding="latin-1")
    return _tokens(labelled_texts(Path(path), [(label, [line]) for line in lines if lines != [""]]))


def read_binary_sentiment(path: str | Path) -> LabelledTexts:
    """SST/binary: a sentence, a tab, 0 or 1."""

    def parse(number: int, line: str) -> list[str]:
        sentence, label = split_fields(Path(path), number, line, at_least=2)[:2]
        return [label, sentence]

    return _classed(path, _SCORES[:2], parse)


def read_fine_sentiment(path: str | Path) -> LabelledTexts:
    """SST/fine: a digit of 0 … 4, a space, a sentence."""
    return _classed(path, _SCORES, lambda _, line: line.partition(" ")[::2])


def read_trec(path: str | Path) -> LabelledTexts:
    """TREC: a coarse class, a colon, a fine class, a space, a question (ISO-8859-1)."""

    def parse(number: int, line: str) -> list[str]:
        label, _, rest = line.partition(":")
        return [label, rest.partition(" ")[2]]

    return _classed(path, _TREC, parse, encoding="latin-1")


def read_mrpc(path: str | Path) -> LabelledTexts:
    """MRPC (Dolan and Brockett 2005): columns Quality, #1 String and #2 String."""
    return _tokens(MRPC_LAYOUT.read(path))


def read_entailment(path: str | Path) -> LabelledTexts:
    """SICK-E: columns sentence_A, sentence_B and entailment_judgment."""
    return _tokens(_SICK_LAYOUT.read(path))


def _classed(
    path: str | Path,
    classes: tuple[str, ...],
    parse: Callable[[int, str], Sequence[str]],
    *,
    encoding: str = "utf-8",
) -> LabelledTexts:
    """Reads one row per line; `parse` maps line number and line to class and sentence."""
    rows = []
    for number, line in numbered_lines(path, encoding=encoding):
        label, sentence = parse(number, line)
        if (label := label.strip()) not in classes:
            raise ValueError(
                f"{path}:{number}: expected a class of {', '.join(classes)}, received "
                f"{label[:40]!r}."
            )
        if not sentence.strip():
            raise ValueError(f"{path}:{number}: expected a sentence, received none.")
        rows.append((classes.index(label), [sentence]))
    return _tokens(labelled_texts(Path(path), rows))


def _tokens(texts: LabelledTexts) -> LabelledTexts:
    """The texts with single spaces between the tokens of each sentence."""
    columns = tuple([" ".join(text.split()) for text in column] for column in texts.columns)
    return dataclasses.replace(texts, columns=columns)


_SCRIPT = "data/downstream/get_transfer_data.bash of https://github.com/facebookresearch/SentEval"


def _file(place: str, read: Read, origin: str) -> tuple[DataSource, Read]:
    return DataSource(place, (place,), f"{origin}, or {_SCRIPT}", "research use"), read


def _two_classes(name: str, first: str, second: str, origin: str) -> LabelledDataset:
    """Class 1 in the first file, class 0 in the second (senteval/binary.py)."""
    files = ((first, 1), (second, 0))
    return LabelledDataset(
        name,
        tuple(
            _file(f"{name}/{file}", functools.partial(read_sentences, label=label), origin)
            for file, label in files
        ),
    )


def _sentiment(name: str, folder: str, read: Read, origin: str) -> LabelledDataset:
    train, dev, test = (
        (_file(f"SST/{folder}/sentiment-{part}", read, origin),)
        for part in ("train", "dev", "test")
    )
    return LabelledDataset(name, train, dev, test)


_MOVIES = "https://www.cs.cornell.edu/people/pabo/movie-review-data"
_QUESTIONS = "https://cogcomp.seas.upenn.edu/Data/QA/QC"
_PARAPHRASES = "https://www.microsoft.com/en-us/download/details.aspx?id=52398"
MR = _two_classes("MR", "rt-polarity.pos", "rt-polarity.neg", _MOVIES)
CR = _two_classes(
    "CR",
    "custrev.pos",
    "custrev.neg",
    "https://www.cs.uic.edu/~liub/FBS/sentiment-analysis.html",
)
SUBJ = _two_classes("SUBJ", "subj.objective", "subj.subjective", _MOVIES)
MPQA = _two_classes("MPQA", "mpqa.pos", "mpqa.neg", "https://mpqa.cs.pitt.edu")
SST2 = _sentiment(
    "SST-2", "binary", read_binary_sentiment, "https://github.com/PrincetonML/SIF/tree/master/data"
)
SST5 = _sentiment(
    "SST-5",
    "fine",
    read_fine_sentiment,
    "https://github.com/AcademiaSinicaNLPLab/sentiment_dataset/tree/master/data",
)
TREC = LabelledDataset(
    "TREC",
    train=(_file("TREC/train_5500.label", read_trec, _QUESTIONS),),
    test=(_file("TREC/TREC_10.label", read_trec, _QUESTIONS),),
)
MRPC = LabelledDataset(
    "MRPC",
    train=(_file("MRPC/msr_paraphrase_train.txt", read_mrpc, _PARAPHRASES),),
    test=(_file("MRPC/msr_paraphrase_test.txt", read_mrpc, _PARAPHRASES),),
)
SICK_E = LabelledDataset(
    "SICK-E", *(((source, read_entailment),) for source in (SICK_TRAIN, SICK_TRIAL, SICK_TEST))
)
# Name, such as "SST-2" → data set.
TRANSFER_DATASETS = {
    dataset.name: dataset for dataset in (MR, CR, SUBJ, MPQA, SST2, SST5, TREC, MRPC, SICK_E)
}


def _score(
    embed: VectorCache, data: dict[str, LabelledTexts], classifier: Classifier
) -> TaskResult:
    """Trains a classifier on embeddings and tests it.

    "train" alone is validated by `inner_kfold`, "train" and "test" by `kfold`, "train", "dev" and
    "test" by `split`. For pairs with two classes, the scores include "f1", that of class 1.
    """
    parts = {part: _features(embed, texts) for part, texts in data.items()}
    if "test" not in data:
        result = classifier.inner_kfold(parts["train"])
    elif "dev" not in data:
        result = classifier.kfold(**parts)
    else:
        result = classifier.split(**parts)
    labels = parts.get("test", parts["train"]).labels
    scores = {"accuracy": result.test_accuracy}
    if labels.max() < 2 and len(data["train"].columns) == 2:
        metrics = require("sklearn.metrics", "evaluation")
        scores["f1"] = float(metrics.f1_score(labels, result.predictions, zero_division=0.0))
    return TaskResult(
        "accuracy",
        scores,
        {part: len(texts) for part, texts in data.items()},
        {
            "classifier": classifier.name,
            "dev_accuracy": result.dev_accuracy,
            "regularization": [*result.regularization],
        },
    )


def _features(embed: VectorCache, texts: LabelledTexts) -> LabelledFeatures:
    """The features of the rows, sorted by number of tokens and label as in the original.

    The folds depend on this order. Pairs have the features (|a − b|, a·b) (senteval/mrpc.py,
    sick.py).
    """
    counts = [np.array([len(text.split()) for text in column]) for column in texts.columns]
    texts = texts.rows(np.lexsort((texts.labels, *counts[::-1])))
    return LabelledFeatures(classifier_features(texts.embedded(embed)), texts.labels)


def classifier_features(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """The features for SentEval's classifiers: the vector, or for pairs |u − v| and u·v joined.

    Args:
        vectors: One or two arrays `[samples, dim]`.

    Returns:
        `[samples, dim]`, or for pairs `[samples, 2·dim]`.
    """
    if len(vectors) == 1:
        return vectors[0]
    first, second = vectors
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def transfer_task(
    dataset: LabelledDataset, classifier: Classifier, *, suffix: str = ""
) -> EvaluationTask:
    """Accuracy of a classifier on frozen embeddings; the classifier gets the seed of the run.

    For a classifier other than SentEval's, `suffix` is added to the names of task and group.
    """
    folds = classifier.folds
    if dataset.dev:
        validation = "the dev set chooses the regularisation"
    elif dataset.test:
        validation = f"{folds} folds of the training set choose the regularisation"
    else:
        validation = (
            f"mean of {folds} folds, and {folds} folds inside each training part choose the "
            "regularisation"
        )

    def score(context: TaskContext, data: dict[str, LabelledTexts]) -> TaskResult:
        seeded = dataclasses.replace(classifier, seed=context.seed)
        return _score(context.embed, data, seeded)

    return EvaluationTask(
        f"{dataset.name.lower().replace('-', '')}{suffix}",
        f"senteval{suffix}",
        f"{dataset.name} ({suffix[1:]})" if suffix else dataset.name,
        f"Accuracy of {classifier.title} on frozen embeddings; {validation}",
        score=score,
        reader=dataset.read,
        sources=dataset.sources,
        options=classifier.settings(),
    )


# First the classifier that the toolkit's README names as comparable with the literature, then
# scikit-learn's, which trains until it converges, without mini-batches, early stopping or held-out
# rows.
TASKS = tuple(
    transfer_task(dataset, classifier, suffix=suffix)
    for classifier, suffix in ((SentEvalClassifier(), ""), (SklearnClassifier(), "_sklearn"))
    for dataset in TRANSFER_DATASETS.values()
)
