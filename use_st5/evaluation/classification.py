"""SentEval's transfer and probing tasks: a small classifier on frozen sentence embeddings.

Conneau and Kiela, SentEval (LREC 2018, arXiv 1803.05449), and Conneau et al., "What you can cram
into a single $&!#* vector" (ACL 2018). The files are those that get_transfer_data.bash of
facebookresearch/SentEval writes, where white space separates tokens, and those of its data/probing.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

import numpy as np

from use_st5._imports import require
from use_st5.data.data_folder import DataSource
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.classifiers import LabelledFeatures, SentEvalClassifier
from use_st5.evaluation.labelled_texts import (
    LabelledDataset,
    LabelledTexts,
    Read,
    labelled_texts,
    numbered_lines,
    read_table,
    split_fields,
)
from use_st5.evaluation.sts import SICK_TEST, SICK_TRAIN, SICK_TRIAL
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult
from use_st5.io.lines import read_text

_TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
_SICK = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
_PARTS = {"tr": "train", "va": "dev", "te": "test"}
_MRPC_CLASSES = ("not_equivalent", "equivalent")


def read_sentences(path: Path, *, label: int) -> LabelledTexts:
    """Sentences of one class, one per line (ISO-8859-1): MR, CR, SUBJ, MPQA."""
    return _tokens(labelled_texts(path, [(label, [x]) for _, x in read_text(path, "latin-1")]))


def read_mrpc(path: Path) -> LabelledTexts:
    """MRPC (Dolan and Brockett 2005): columns Quality, #1 String and #2 String."""
    return _tokens(read_table(path, ("#1 String", "#2 String"), "Quality", _MRPC_CLASSES))


def read_entailment(path: Path) -> LabelledTexts:
    """SICK-E: columns sentence_A, sentence_B and entailment_judgment."""
    return _tokens(read_table(path, ("sentence_A", "sentence_B"), "entailment_judgment", _SICK))


def _classed(
    path: Path, *, classes: tuple[str, ...], line: str, encoding: str = "utf-8"
) -> LabelledTexts:
    """Reads one row per line; `line` is a regular expression with its `label` and `sentence`."""
    rows = []
    for number, text in numbered_lines(path, encoding=encoding):
        match = re.fullmatch(line, text)
        if not match or match["label"] not in classes or not match["sentence"].strip():
            expected = f"expected a sentence and a class of {', '.join(classes)}"
            raise ValueError(f"{path}:{number}: {expected}, received {text[:80]!r}.")
        rows.append((classes.index(match["label"]), [match["sentence"]]))
    return _tokens(labelled_texts(path, rows))


# SST/binary: a sentence, a tab, 0 or 1. SST/fine: a digit of 0 … 4, a space, a sentence. TREC: a
# coarse class, a colon, a fine class, a space, a question (ISO-8859-1).
read_binary_sentiment = functools.partial(
    _classed, classes=("0", "1"), line=r"(?P<sentence>[^\t]*)\t\s*(?P<label>\d)\s*(\t.*)?"
)
read_fine_sentiment = functools.partial(
    _classed, classes=tuple("01234"), line=r"(?P<label>\d) (?P<sentence>.*)"
)
read_trec = functools.partial(
    _classed, classes=_TREC, line=r"(?P<label>\w+):\S* (?P<sentence>.*)", encoding="latin-1"
)


def _tokens(texts: LabelledTexts) -> LabelledTexts:
    """The texts with single spaces between the tokens of each sentence."""
    columns = tuple([" ".join(text.split()) for text in column] for column in texts.columns)
    return dataclasses.replace(texts, columns=columns)


def read_probing(path: Path) -> dict[str, LabelledTexts]:
    """Reads a file of `data/probing/`: part (tr, va or te), class, …, sentence, between tabs.

    Fields between the second and the last one are ignored, as the format allows more of them. The
    classes of the training part are numbered in alphabetical order. The parts of the result are
    "train", "dev" and "test".
    """
    lines = [split_fields(path, *line, 3) for line in numbered_lines(path)]
    classes = sorted({label for part, label, *_ in lines if part == "tr"})
    if {part for part, *_ in lines} != {*_PARTS} or not {row[1] for row in lines} <= {*classes}:
        expected = "expected lines of tr, va and te, and all classes in tr"
        raise ValueError(f"{path}: {expected}, received the classes {classes} in tr.")
    rows: dict[str, list[tuple[float, list[str]]]] = {code: [] for code in _PARTS}
    for part, label, *_, sentence in lines:
        rows[part].append((classes.index(label), [sentence.strip()]))
    return {part: labelled_texts(path, rows[code]) for code, part in _PARTS.items()}


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


def _parts(name: str, read: Read, origin: str, *files: str) -> LabelledDataset:
    """The files of the training, the test and, between them, perhaps the dev rows."""
    train, *dev, test = [(_file(file, read, origin),) for file in files]
    return LabelledDataset(name, train, dev[0] if dev else (), test)


_MOVIES = "https://www.cs.cornell.edu/people/pabo/movie-review-data"
_PRODUCTS = "https://www.cs.uic.edu/~liub/FBS/sentiment-analysis.html"
_SST2 = "https://github.com/PrincetonML/SIF/tree/master/data"
_SST5 = "https://github.com/AcademiaSinicaNLPLab/sentiment_dataset/tree/master/data"
_SST = "SST/{}/sentiment-train", "SST/{}/sentiment-dev", "SST/{}/sentiment-test"
_MRPC = "https://www.microsoft.com/en-us/download/details.aspx?id=52398"
_TWO_PARTS = ("train", "test")
_QUESTIONS = "https://cogcomp.seas.upenn.edu/Data/QA/QC"
MR = _two_classes("MR", "rt-polarity.pos", "rt-polarity.neg", _MOVIES)
CR = _two_classes("CR", "custrev.pos", "custrev.neg", _PRODUCTS)
SUBJ = _two_classes("SUBJ", "subj.objective", "subj.subjective", _MOVIES)
MPQA = _two_classes("MPQA", "mpqa.pos", "mpqa.neg", "https://mpqa.cs.pitt.edu")
SST2 = _parts("SST-2", read_binary_sentiment, _SST2, *(file.format("binary") for file in _SST))
SST5 = _parts("SST-5", read_fine_sentiment, _SST5, *(file.format("fine") for file in _SST))
TREC = _parts("TREC", read_trec, _QUESTIONS, "TREC/train_5500.label", "TREC/TREC_10.label")
MRPC = _parts(
    "MRPC", read_mrpc, _MRPC, *(f"MRPC/msr_paraphrase_{x}.txt" for x in ("train", "test"))
)
SICK_E = LabelledDataset(
    "SICK-E", *(((source, read_entailment),) for source in (SICK_TRAIN, SICK_TRIAL, SICK_TEST))
)
# Name, such as "SST-2" → data set.
TRANSFER_DATASETS = {
    dataset.name: dataset for dataset in (MR, CR, SUBJ, MPQA, SST2, SST5, TREC, MRPC, SICK_E)
}


def _score(
    embed: VectorCache, data: dict[str, LabelledTexts], classifier: SentEvalClassifier
) -> TaskResult:
    """Trains a classifier on embeddings and tests it.

    "train" alone is validated by `inner_kfold`, "train" and "test" by `kfold`, "train", "dev" and
    "test" by `split`. For pairs with two classes, the scores include "f1", that of class 1.
    """
    parts = {}
    for part, texts in data.items():
        # The folds depend on this order, by number of tokens and label, as in the original.
        counts = [np.array([len(text.split()) for text in column]) for column in texts.columns]
        texts = texts.rows(np.lexsort((texts.labels, *counts[::-1])))
        first, *second = texts.embedded(embed)
        for other in second:  # Pairs have (|a − b|, a·b) (senteval/mrpc.py, sick.py).
            first = np.concatenate([np.abs(first - other), first * other], axis=1)
        parts[part] = LabelledFeatures(first, texts.labels)
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
            "classifier": "senteval",
            "dev_accuracy": result.dev_accuracy,
            "regularization": [*result.regularization],
        },
    )


def transfer_task(dataset: LabelledDataset, classifier: SentEvalClassifier) -> EvaluationTask:
    """Accuracy of a classifier on frozen embeddings; the classifier gets the seed of the run."""
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
        dataset.name.lower().replace("-", ""),
        "senteval",
        dataset.name,
        f"Accuracy of {classifier.title} on frozen embeddings; {validation}",
        score=score,
        reader=dataset.read,
        sources=dataset.sources,
        options=classifier.settings(),
    )


def _score_probing(context: TaskContext, data: dict[str, LabelledTexts]) -> TaskResult:
    classifier = SentEvalClassifier(seed=context.seed)
    parts = {
        part: LabelledFeatures(texts.embedded(context.embed)[0], texts.labels)
        for part, texts in data.items()
    }
    result = classifier.split(**parts)
    return TaskResult(
        "accuracy",
        {"accuracy": result.test_accuracy, "dev_accuracy": result.dev_accuracy},
        {"classes": int(data["train"].labels.max()) + 1}
        | {part: len(texts) for part, texts in data.items()},
        {"l2": result.regularization[0], "classifier": classifier.options()},
    )


def probing_task(name: str, title: str, file: str) -> EvaluationTask:
    """A probing task with the paper's title, of a file in SentEval's `data/probing/`."""
    source = DataSource(
        f"SentEval probing {file}",
        (f"probing/{file}", file),
        f"https://github.com/facebookresearch/SentEval, data/probing/{file}",
    )
    return EvaluationTask(
        f"probing_{name}",
        "probing",
        title,
        "test accuracy of SentEval's classifier, logistic regression, on frozen embeddings; the "
        "dev part chooses the L2 factor and when to stop (senteval/probing.py; Conneau et al. "
        "2018)",
        score=_score_probing,
        reader=lambda data: read_probing(data.find(source)),
        sources=(source,),
        # There is no grid of hidden layers; all earlier records say so, too.
        options={"mlp_grid": False, **SentEvalClassifier().settings()},
    )


TASKS = (
    *(transfer_task(dataset, SentEvalClassifier()) for dataset in TRANSFER_DATASETS.values()),
    probing_task("length", "SentLen", "sentence_length.txt"),
    probing_task("word_content", "WC", "word_content.txt"),
    probing_task("depth", "TreeDepth", "tree_depth.txt"),
    probing_task("top_constituents", "TopConst", "top_constituents.txt"),
    probing_task("bigram_shift", "BShift", "bigram_shift.txt"),
    probing_task("tense", "Tense", "past_present.txt"),
    probing_task("subject_number", "SubjNum", "subj_number.txt"),
    probing_task("object_number", "ObjNum", "obj_number.txt"),
    probing_task("odd_man_out", "SOMO", "odd_man_out.txt"),
    probing_task("coordination_inversion", "CoordInv", "coordination_inversion.txt"),
)
