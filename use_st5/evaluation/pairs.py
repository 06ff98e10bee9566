"""GLUE's tasks on frozen embeddings (SentGLUE), and pairs by their cosine without training.

Sentence-T5 (Ni et al. 2022), section 8, extends SentEval to GLUE: "additional layers", which the
paper does not describe, predict from the embeddings. Here they are SentEval's, on (u, v, |u − v|,
u·v) for pairs. Since GLUE's dev split is the test set, a part of the train split is held out.

Trans-Encoder (Liu et al. 2022), section 3, "binary classification", trains nothing.

Columns and the order of the classes are those of GLUE's files and of TensorFlow Datasets' `glue`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from use_st5._imports import require
from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.encode.similarity import cosine
from use_st5.evaluation import classification
from use_st5.evaluation.classifiers import (
    LabelledFeatures,
    PairFeatures,
    SentEvalClassifier,
    predict_relatedness,
)
from use_st5.evaluation.labelled_texts import (
    Files,
    LabelledDataset,
    LabelledTexts,
    Read,
    joined,
    read_table,
)
from use_st5.evaluation.sts import STSB_DEV, STSB_TRAIN, correlation
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

_HELD_OUT = 0.05
_ORIGIN = "https://gluebenchmark.com/tasks, or TensorFlow Datasets (glue)"


def glue_dataset(
    name: str, *reads: Read, train: tuple[str, ...] = (), dev: tuple[str, ...] = ()
) -> LabelledDataset:
    """The train and dev splits of a task; its test split has no labels.

    `train` and `dev` are paths: the file that GLUE publishes, by default NAME/train.tsv and
    NAME/dev.tsv, and other files with the same rows. `reads` read these paths, in the same order.
    """

    def part(split: str, places: tuple[str, ...]) -> Files:
        def read(path: Path) -> LabelledTexts:
            by_place = zip(places, reads, strict=True)
            return next(read for place, read in by_place if path.match(place))(path)

        return ((DataSource(f"GLUE {name} {split}", places, _ORIGIN), read),)

    train, dev = train or (f"{name}/train.tsv",), dev or (f"{name}/dev.tsv",)
    return LabelledDataset(name, part("train", train), part("dev", dev))


def _table(label: str | int, *texts: str | int, classes: str = "", most_broken: int = 0) -> Read:
    names = tuple(classes.split())
    return partial(read_table, texts=texts, label=label, classes=names, most_broken=most_broken)


# The columns are source, judgement, the author's own mark and sentence. Neither GLUE's files nor
# the first published ones have a header.
_COLA = _table(1, 3, classes="unacceptable acceptable")
_STSB = _table(4, 5, 6)
_QNLI = _table("label", "question", "sentence", classes="entailment not_entailment")
_MNLI = _table("gold_label", "sentence1", "sentence2", classes="entailment neutral contradiction")
# Some of its questions hold line feeds, so GLUE's train file has about a dozen broken lines, which
# TensorFlow Datasets leaves out too.
_QQP = _table(
    *("is_duplicate", "question1", "question2"), classes="not_duplicate duplicate", most_broken=50
)


COLA = glue_dataset(
    "CoLA",
    _COLA,
    # The published dev split has two files.
    lambda path: (
        joined([_COLA(path / f"{part}_domain_dev.tsv") for part in ("in", "out_of")])
        if path.is_dir()
        else _COLA(path)
    ),
    train=("CoLA/train.tsv", "cola_public/raw/in_domain_train.tsv"),
    dev=("CoLA/dev.tsv", "cola_public/raw"),
)
SST2 = glue_dataset(
    "SST-2",
    _table("label", "sentence", classes="negative positive"),
    _table(1, 0, classes="negative positive"),
    train=("SST-2/train.tsv", "SST/binary/sentiment-train"),  # the second is SentEval's
    dev=("SST-2/dev.tsv", "SST/binary/sentiment-dev"),
)
_MRPC = _table("Quality", "#1 String", "#2 String", classes="not_equivalent equivalent")
MRPC = glue_dataset("MRPC", _MRPC)
STSB = glue_dataset(
    "STS-B",
    _table("score", "sentence1", "sentence2"),
    _STSB,
    _STSB,
    train=("STS-B/train.tsv", *STSB_TRAIN.places),
    dev=("STS-B/dev.tsv", *STSB_DEV.places),
)
QQP = glue_dataset("QQP", _QQP)
MNLI_MATCHED, MNLI_MISMATCHED = (
    glue_dataset(name, _MNLI, train=("MNLI/train.tsv",), dev=(f"MNLI/dev_{part}.tsv",))
    for name, part in (("MNLI-m", "matched"), ("MNLI-mm", "mismatched"))
)
QNLI = glue_dataset("QNLI", _QNLI)
RTE = glue_dataset(
    "RTE", _table("label", "sentence1", "sentence2", classes="entailment not_entailment")
)


def _sklearn_metrics() -> Any:
    return require("sklearn.metrics", "evaluation")


# Name → function of the true and the predicted labels that returns the score.
_METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": lambda labels, predictions: np.mean(labels == predictions),
    "f1": lambda *labels: _sklearn_metrics().f1_score(*labels, zero_division=0.0),
    "matthews": lambda *labels: _sklearn_metrics().matthews_corrcoef(*labels),
    "pearson": partial(correlation, stats.pearsonr),
    "spearman": partial(correlation, stats.spearmanr),
}


def sentglue_task(
    name: str, dataset: LabelledDataset, metrics: tuple[str, ...], columns: str
) -> EvaluationTask:
    """A GLUE task on frozen embeddings.

    The first of the metrics is the main one. If "pearson" is among them, labels are scores;
    otherwise they are classes. The features are "u", or "u, v, |u − v|, u·v" for pairs.
    """
    graded = "pearson" in metrics
    predictor = (
        "softmax regression on soft labels 0 … 5 (Tai et al. 2015, as SentEval's STS Benchmark "
        "but with a class for 0)"
        if graded
        else "SentEval's logistic regression"
    )
    settings = {"classifier": "soft labels 0 … 5"} if graded else SentEvalClassifier().settings()

    def score(context: TaskContext, splits: dict[str, LabelledTexts]) -> TaskResult:
        # 95 % of the training rows are learnt; a random 5 % choose the L2 factor and when to stop.
        train, dev = splits["train"], splits["dev"]
        order = np.random.default_rng(context.seed).permutation(len(train))
        count = max(1, round(_HELD_OUT * len(train)))
        parts = {"train": train.rows(order[count:]), "dev": train.rows(order[:count]), "test": dev}
        sets = {}
        for part, texts in parts.items():
            vectors = texts.embedded(context.embed)
            features = vectors[0] if len(vectors) == 1 else PairFeatures(*vectors)
            sets[part] = LabelledFeatures(features, texts.labels)
        if graded:
            predictions = predict_relatedness(**sets, seed=context.seed)
        else:
            predictions = SentEvalClassifier(seed=context.seed).split(**sets).predictions
        scores = {name: float(_METRICS[name](dev.labels, predictions)) for name in metrics}
        counts = {"train": len(train), "dev": len(dev), "broken_lines": train.broken_lines}
        return TaskResult(metrics[0], scores, counts)

    return EvaluationTask(
        name,
        "sentglue",
        dataset.name,
        f"{metrics[0]} on GLUE's dev split; {predictor} on ({columns}) of frozen "
        "embeddings, trained on a random 95 % of the train split, the other 5 % "
        f"{'decide' if graded else 'choose the L2 factor and decide'} when to stop "
        "(Sentence-T5, section 8; its classifier is not described there)",
        score=score,
        reader=dataset.read,
        sources=dataset.sources,
        options={"features": columns, **settings},
    )


def pair_task(
    name: str,
    files: Files,
    *,
    title: str,
    positive: tuple[str, int],
    split: str,
    skipped: int = 0,
) -> EvaluationTask:
    """Compares the cosine of a pair with its binary label (Trans-Encoder, section 3, table 15).

    `positive` is the class of the pairs that should be the most similar ones. The first `skipped`
    pairs of the file are left out; `split` describes the rest.
    """
    ((source, read_pairs),) = files
    name_of_class, number_of_class = positive

    def read(data: DataFolder) -> LabelledTexts:
        pairs = read_pairs(data.find(source))
        pairs = pairs.rows(np.arange(skipped, len(pairs)))
        hits = (pairs.labels == number_of_class).astype(np.int64)
        return dataclasses.replace(pairs, labels=hits)

    def score(context: TaskContext, pairs: LabelledTexts) -> TaskResult:
        # The probability that a positive pair is more similar than another; a tie is a half.
        positive = int(pairs.labels.sum())
        if not 0 < positive < len(pairs):
            raise ValueError(f"Expected positive and negative pairs, received {positive} positive.")
        similarities = cosine(*pairs.embedded(context.embed))
        auc = float(_sklearn_metrics().roc_auc_score(pairs.labels, similarities))
        counts = {"pairs": len(pairs), "positive": positive, "broken_lines": pairs.broken_lines}
        return TaskResult("auc", {"auc": auc}, counts)

    return EvaluationTask(
        name,
        "pairs",
        title,
        "area under the ROC curve of the cosine of the two embeddings, positive class "
        f"“{name_of_class}”, {split} (Trans-Encoder, section 3)",
        score=score,
        reader=read,
        sources=(source,),
        options={"positive": name_of_class, "split": split, "skipped": skipped},
    )


((_MRPC_TEST, _),) = classification.MRPC.test
_ONE, _TWO = "u", "u, v, |u − v|, u·v"
_ACCURACY, _ACCURACY_F1 = ("accuracy",), ("accuracy", "f1")

TASKS = (
    sentglue_task("sentglue_cola", COLA, ("matthews", "accuracy"), _ONE),
    sentglue_task("sentglue_sst2", SST2, _ACCURACY, _ONE),
    sentglue_task("sentglue_mrpc", MRPC, _ACCURACY_F1, _TWO),
    sentglue_task("sentglue_stsb", STSB, ("pearson", "spearman"), _TWO),
    sentglue_task("sentglue_qqp", QQP, _ACCURACY_F1, _TWO),
    sentglue_task("sentglue_mnli_m", MNLI_MATCHED, _ACCURACY, _TWO),
    sentglue_task("sentglue_mnli_mm", MNLI_MISMATCHED, _ACCURACY, _TWO),
    sentglue_task("sentglue_qnli", QNLI, _ACCURACY, _TWO),
    sentglue_task("sentglue_rte", RTE, _ACCURACY, _TWO),
    pair_task(
        "pairs_qqp",
        QQP.dev,
        title="QQP",
        positive=("duplicate", 1),
        split="GLUE's whole dev split (the paper's 10,000 test pairs are not listed)",
    ),
    pair_task(
        "pairs_qnli",
        QNLI.dev,
        title="QNLI",
        positive=("entailment", 0),
        split="GLUE's dev split without its first 1,000 pairs, which are the paper's dev set",
        skipped=1000,
    ),
    pair_task(
        "pairs_mrpc",
        ((_MRPC_TEST, _MRPC),),
        title="MRPC",
        positive=("equivalent", 1),
        split="the corpus's own test split",
    ),
)
