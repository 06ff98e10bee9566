"""GLUE's tasks on frozen embeddings (SentGLUE), and pairs by their cosine without training.

Sentence-T5 (Ni et al. 2022), section 8, extends SentEval to GLUE: each sentence is embedded on its
own, "additional layers" predict from the embeddings, scores are those of GLUE's dev splits. The
paper does not describe the layers; here they are SentEval's, on (u, v, |u − v|, u·v) for pairs.
Since the dev split is the test set, a part of the train split is held out to choose the
regularisation and to stop early.

Trans-Encoder (Liu et al. 2022), section 3, "binary classification", trains nothing: the area under
the ROC curve of the cosine of the two embeddings says whether positive pairs come first.

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
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation import classification
from use_st5.evaluation.classifiers import Classifier, LabelledFeatures, PairFeatures
from use_st5.evaluation.labelled_texts import (
    Files,
    LabelledDataset,
    LabelledTexts,
    TableLayout,
    joined,
)
from use_st5.evaluation.relatedness import predict_relatedness
from use_st5.evaluation.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.sts import STSB_DEV, STSB_TRAIN, correlation
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

_HELD_OUT = 0.05

_ORIGIN = (
    "https://gluebenchmark.com/tasks, or `use-st5 data`, which writes this layout from TensorFlow "
    "Datasets (glue)"
)


def glue_dataset(
    name: str,
    *layouts: TableLayout,
    train: tuple[str, ...] = (),
    dev: tuple[str, ...] = (),
    parts: tuple[str, ...] = (),
) -> LabelledDataset:
    """The train and dev splits of a task; its test split has no labels.

    `train` and `dev` are paths: the file that GLUE publishes, by default NAME/train.tsv and
    NAME/dev.tsv, and other files with the same rows. `layouts` are the layouts of these paths, in
    the same order. A path that is a folder stands for the files `parts` in it.
    """

    def part(kind: str, places: tuple[str, ...]) -> Files:
        def read(path: Path) -> LabelledTexts:
            by_place = zip(places, layouts, strict=True)
            layout = next(layout for place, layout in by_place if path.match(place))
            files = [path / each for each in parts] if path.is_dir() else [path]
            return joined([layout.read(file) for file in files])

        return ((DataSource(f"GLUE {name} {kind}", places, _ORIGIN), read),)

    train, dev = train or (f"{name}/train.tsv",), dev or (f"{name}/dev.tsv",)
    return LabelledDataset(name, part("train", train), part("dev", dev))


_ENTAILMENT = ("entailment", "not_entailment")
_NLI = ("entailment", "neutral", "contradiction")
_DUPLICATE = ("not_duplicate", "duplicate")
_SENTIMENT = ("negative", "positive")
# The columns are source, judgement, the author's own mark and sentence. Neither GLUE's files nor
# the first published ones have a header.
_COLA = TableLayout((3,), 1, ("unacceptable", "acceptable"))
_STSB = TableLayout((5, 6), 4)
_QNLI = TableLayout(("question", "sentence"), "label", _ENTAILMENT)
_MNLI = TableLayout(("sentence1", "sentence2"), "gold_label", _NLI)
# Some of its questions hold line feeds, so GLUE's train file has about a dozen broken lines, which
# TensorFlow Datasets leaves out too.
_QQP = TableLayout(("question1", "question2"), "is_duplicate", _DUPLICATE, most_broken=50)
COLA = glue_dataset(
    "CoLA",
    _COLA,
    _COLA,
    train=("CoLA/train.tsv", "cola_public/raw/in_domain_train.tsv"),
    dev=("CoLA/dev.tsv", "cola_public/raw"),
    # GLUE's dev split consists of these two files, in this order.
    parts=("in_domain_dev.tsv", "out_of_domain_dev.tsv"),
)
SST2 = glue_dataset(
    "SST-2",
    TableLayout(("sentence",), "label", _SENTIMENT),
    TableLayout((0,), 1, _SENTIMENT),
    train=("SST-2/train.tsv", "SST/binary/sentiment-train"),  # the second is SentEval's
    dev=("SST-2/dev.tsv", "SST/binary/sentiment-dev"),
)
MRPC = glue_dataset("MRPC", classification.MRPC_LAYOUT)
STSB = glue_dataset(
    "STS-B",
    TableLayout(("sentence1", "sentence2"), "score"),
    _STSB,
    _STSB,
    train=("STS-B/train.tsv", *STSB_TRAIN.places),
    dev=("STS-B/dev.tsv", *STSB_DEV.places),
)
QQP = glue_dataset("QQP", _QQP)
MNLI_MATCHED, MNLI_MISMATCHED = (
    glue_dataset(name, _MNLI, train=("MNLI/train.tsv",), dev=(f"MNLI/dev_{kind}.tsv",))
    for name, kind in (("MNLI-m", "matched"), ("MNLI-mm", "mismatched"))
)
QNLI = glue_dataset("QNLI", _QNLI)
RTE = glue_dataset("RTE", TableLayout(("sentence1", "sentence2"), "label", _ENTAILMENT))


def _predict(
    embed: VectorCache,
    train: LabelledTexts,
    dev: LabelledTexts,
    classifier: Classifier | None,
    *,
    seed: int,
) -> np.ndarray:
    """Learns from frozen embeddings, and predicts the class or the score of each row of `dev`.

    Training uses 95 % of the training rows; a random 5 % choose the regularisation, and when to
    stop. Without a classifier, the labels are scores, learnt as soft labels (see `relatedness`).
    """
    texts = (*_hold_out(train, seed=seed), dev)
    features = [_features(embed, each) for each in texts]
    if classifier is None:
        train_features, held_out, dev_features = (each[:] for each in features)
        training_sets = (train_features, texts[0].labels), (held_out, texts[1].labels)
        return predict_relatedness(*training_sets, dev_features, seed=seed)
    sets = [LabelledFeatures(x, each.labels) for x, each in zip(features, texts, strict=True)]
    return classifier.split(train=sets[0], dev=sets[1], test=sets[2]).predictions


def _hold_out(texts: LabelledTexts, *, seed: int) -> tuple[LabelledTexts, LabelledTexts]:
    """A random 95 % of the rows, and the other 5 % (at least one row)."""
    if len(texts) < 2:
        raise ValueError(f"Expected at least two training rows, received {len(texts)}.")
    order = np.random.default_rng(seed).permutation(len(texts))
    count = max(1, round(_HELD_OUT * len(texts)))
    return texts.rows(order[count:]), texts.rows(order[:count])


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


def _features(embed: VectorCache, texts: LabelledTexts) -> np.ndarray | PairFeatures:
    vectors = texts.embedded(embed)
    return vectors[0] if len(vectors) == 1 else PairFeatures(*vectors)


def similarity_auc(similarities: np.ndarray, pairs: LabelledTexts) -> float:
    """The area under the ROC curve, in 0 … 1, of any model's similarities `[pairs]`.

    It is the probability that a pair of class 1 is more similar than a pair of another class; a tie
    counts as a half.
    """
    hits = pairs.labels == 1
    if hits.all() or not hits.any():
        raise ValueError(
            "Expected positive and negative pairs for an AUC, received "
            f"{int(hits.sum())} and {int((~hits).sum())}."
        )
    return float(_sklearn_metrics().roc_auc_score(hits, similarities))


def sentglue_task(
    name: str, dataset: LabelledDataset, metrics: tuple[str, ...], features: str
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
        train, dev = splits["train"], splits["dev"]
        classifier = None if graded else SentEvalClassifier(seed=context.seed)
        predictions = _predict(context.embed, train, dev, classifier, seed=context.seed)
        scores = {name: float(_METRICS[name](dev.labels, predictions)) for name in metrics}
        counts = {"train": len(train), "dev": len(dev), "broken_lines": train.broken_lines}
        return TaskResult(metrics[0], scores, counts)

    return EvaluationTask(
        name,
        "sentglue",
        dataset.name,
        f"{metrics[0]} on GLUE's dev split; {predictor} on ({features}) of frozen "
        "embeddings, trained on a random 95 % of the train split, the other 5 % "
        f"{'decide' if graded else 'choose the L2 factor and decide'} when to stop "
        "(Sentence-T5, section 8; its classifier is not described there)",
        score=score,
        reader=dataset.read,
        sources=dataset.sources,
        options={"features": features, **settings},
    )


def pair_task(
    name: str,
    source: DataSource,
    layout: TableLayout,
    *,
    title: str,
    positive: str,
    split: str,
    skipped: int = 0,
) -> EvaluationTask:
    """Compares the cosine of a pair with its binary label (Trans-Encoder, section 3, table 15).

    The reader gives class 1 to the pairs of the class `positive`, which should be the most similar
    ones, and 0 to the others. It leaves out the first `skipped` pairs; `split` describes the rest.
    """

    def read(data: DataFolder) -> LabelledTexts:
        path = data.find(source)
        pairs = layout.read(path)
        if len(pairs) <= skipped:
            raise ValueError(f"{path}: expected more than {skipped} pairs, received {len(pairs)}.")
        pairs = pairs.rows(np.arange(skipped, len(pairs)))
        hits = (pairs.labels == layout.classes.index(positive)).astype(np.int64)
        return dataclasses.replace(pairs, labels=hits)

    return EvaluationTask(
        name,
        "pairs",
        title,
        "area under the ROC curve of the cosine of the two embeddings, positive class "
        f"“{positive}”, {split} (Trans-Encoder, section 3)",
        score=_score_pairs,
        reader=read,
        sources=(source,),
        options={"positive": positive, "split": split, "skipped": skipped},
    )


def _score_pairs(context: TaskContext, pairs: LabelledTexts) -> TaskResult:
    return TaskResult(
        "auc",
        {"auc": similarity_auc(cosine(*pairs.embedded(context.embed)), pairs)},
        {
            "pairs": len(pairs),
            "positive": int(pairs.labels.sum()),
            "broken_lines": pairs.broken_lines,
        },
    )


((_MRPC_TEST, _),) = classification.MRPC.test
((_QQP_DEV, _),), ((_QNLI_DEV, _),) = QQP.dev, QNLI.dev
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
        _QQP_DEV,
        _QQP,
        title="QQP",
        positive="duplicate",
        split="GLUE's whole dev split (the paper's 10,000 test pairs are not listed)",
    ),
    pair_task(
        "pairs_qnli",
        _QNLI_DEV,
        _QNLI,
        title="QNLI",
        positive="entailment",
        split="GLUE's dev split without its first 1,000 pairs, which are the paper's dev set",
        skipped=1000,
    ),
    pair_task(
        "pairs_mrpc",
        _MRPC_TEST,
        classification.MRPC_LAYOUT,
        title="MRPC",
        positive="equivalent",
        split="the corpus's own test split",
    ),
)
