"""GLUE's tasks on frozen embeddings (SentGLUE), and pairs by their cosine without training.

Sentence-T5 (Ni et al. 2022), section 8, extends SentEval to GLUE: each sentence is embedded on its
own, "additional layers" predict from the embeddings, scores are those of GLUE's dev splits. The
paper does not describe the layers; here they are SentEval's, on (u, v, |u − v|, u·v) for pairs. As
the dev split is what is tested on, a part of the train split is held out to choose the
regularisation and to stop early.

Trans-Encoder (Liu et al. 2022), section 3, "binary classification", trains nothing: the area under
the ROC curve of the cosine of the two embeddings says whether positive pairs come first.

Columns and the order of the classes are those of GLUE's files and of TensorFlow Datasets' `glue`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from use_st5._imports import require
from use_st5._vectors import cosine
from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation import classification
from use_st5.evaluation.classifiers import Classifier, Features, LabelledFeatures, split
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
from use_st5.evaluation.task import EvaluationTask, Progress, TaskContext, TaskResult
from use_st5.vector_store import Encode, VectorCache, as_cache

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
    origin: str = _ORIGIN,
    parts: tuple[str, ...] = (),
) -> LabelledDataset:
    """The train and dev splits of a task; its test split has no labels.

    Args:
        name: GLUE's name of it, for example "SST-2".
        *layouts: Of each place.
        train: The file as GLUE publishes it, by default NAME/train.tsv, and further files that hold
            the same rows.
        dev: The same of the dev split. A place that is a folder stands for `parts` in it.
        origin: Where to get it.
        parts: The files of a dev split that is a folder.
    """

    def part(kind: str, places: tuple[str, ...]) -> Files:
        def read(path: Path) -> LabelledTexts:
            by_place = zip(places, layouts, strict=True)
            layout = next(layout for place, layout in by_place if path.match(place))
            files = [path / each for each in parts] if path.is_dir() else [path]
            return joined([layout.read(file) for file in files])

        return ((DataSource(f"GLUE {name} {kind}", places, origin), read),)

    train, dev = train or (f"{name}/train.tsv",), dev or (f"{name}/dev.tsv",)
    return LabelledDataset(name, part("train", train), part("dev", dev))


_ENTAILMENT = ("entailment", "not_entailment")
_NLI = ("entailment", "neutral", "contradiction")
_DUPLICATE = ("not_duplicate", "duplicate")
_SENTIMENT = ("negative", "positive")
# Source, judgement, the author's own mark, sentence; no header, in GLUE and as published first.
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
    # GLUE's dev split is both of them in this order.
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


def predict(
    encode: Encode,
    *,
    train: LabelledTexts,
    dev: LabelledTexts,
    classifier: Classifier | None = None,
    seed: int = 1111,
    progress: Progress | None = None,
) -> np.ndarray:
    """Learns from frozen embeddings, and predicts the classes or the scores of the dev split.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`.
        train: 95 % of it are trained on; a random 5 % choose the regularisation, and when to stop.
        dev: What is predicted.
        classifier: Of classes: which, and its settings. None: labels are scores from 0 to 5, which
            soft labels learn (see `relatedness`).
        seed: Of the 5 %, and of the training of scores.
        progress: Shows how far the training of classes is.

    Returns:
        A class number or a score for each row of `dev`.

    Raises:
        ValueError: Fewer than two training rows, a score is outside 0 … 5, or the encoder gives
            something unusable.
    """
    embed = as_cache(encode)
    texts = (*hold_out(train, seed=seed), dev)
    features = [_features(embed, each) for each in texts]
    if classifier is None:
        learnt, held_out, asked = (each[:] for each in features)
        known = (learnt, texts[0].labels), (held_out, texts[1].labels)
        return predict_relatedness(*known, asked, seed=seed)
    sets = [LabelledFeatures(x, each.labels) for x, each in zip(features, texts, strict=True)]
    found = split(classifier, train=sets[0], dev=sets[1], test=sets[2], progress=progress)
    return found.predictions


def hold_out(texts: LabelledTexts, *, seed: int) -> tuple[LabelledTexts, LabelledTexts]:
    """A random 95 % of the rows and the other 5 %, of which there is at least one row.

    Raises:
        ValueError: Fewer than two rows.
    """
    if len(texts) < 2:
        raise ValueError(f"Expected at least two training rows, received {len(texts)}.")
    order = np.random.default_rng(seed).permutation(len(texts))
    count = max(1, round(_HELD_OUT * len(texts)))
    return texts.rows(order[count:]), texts.rows(order[:count])


def _sklearn_metrics() -> Any:
    return require("sklearn.metrics", "evaluation")


# Name → the score of true and of predicted labels.
_SCORES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": lambda labels, predictions: np.mean(labels == predictions),
    "f1": lambda *labels: _sklearn_metrics().f1_score(*labels, zero_division=0.0),
    "matthews": lambda *labels: _sklearn_metrics().matthews_corrcoef(*labels),
    "pearson": partial(correlation, stats.pearsonr),
    "spearman": partial(correlation, stats.spearmanr),
}


def glue_scores(
    labels: np.ndarray, predictions: np.ndarray, names: Sequence[str]
) -> dict[str, float]:
    """Scores by their names.

    Args:
        labels: True classes or scores `[rows]`.
        predictions: Predicted ones `[rows]`.
        names: Among "accuracy", "f1" (of class 1), "matthews", "pearson", "spearman".
    """
    return {name: float(_SCORES[name](labels, predictions)) for name in names}


def _features(embed: VectorCache, texts: LabelledTexts) -> Features:
    vectors = texts.embedded(embed)
    return vectors[0] if len(vectors) == 1 else PairFeatures(*vectors)


class PairFeatures:
    """(u, v, |u − v|, u·v) of matching rows (· element by element), as of a float32 array.

    InferSent's features (Conneau et al. 2017, section 3.1), which SentEval and its extension to
    GLUE take for pairs. MNLI's 393 thousand pairs would fill gigabytes: rows are made when they are
    asked for, and only `u` and `v` are kept.

    Args:
        u: Embeddings `[pairs, dim]` of the first sentences.
        v: Those of the second ones.

    Attributes:
        shape: `(pairs, 4·dim)`.

    Raises:
        ValueError: The shapes differ.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, u: np.ndarray, v: np.ndarray) -> None:
        if u.shape != v.shape or u.ndim != 2:
            raise ValueError(
                f"Expected two arrays of one shape [pairs, dim], received {u.shape} and {v.shape}."
            )
        self._u = np.asarray(u, self.dtype)
        self._v = np.asarray(v, self.dtype)
        self.shape = (len(u), 4 * u.shape[1])

    def __len__(self) -> int:
        """Number of pairs."""
        return self.shape[0]

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        """The features `[rows, 4·dim]` of the pairs that a slice or an array of numbers selects."""
        u, v = self._u[rows], self._v[rows]
        return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


def pair_auc(encode: Encode, pairs: LabelledTexts) -> float:
    """The area under the ROC curve, in 0 … 1, of the cosines of pairs; see `similarity_auc`."""
    embed = as_cache(encode)
    return similarity_auc(lambda: cosine(*pairs.embedded(embed)), pairs)


def similarity_auc(similarities: Callable[[], np.ndarray], pairs: LabelledTexts) -> float:
    """The probability that a pair of class 1 is more similar than another, ties counted half.

    Args:
        similarities: Gives those of any model, `[pairs]`; called after the pairs were checked.
        pairs: Two columns of sentences with class numbers.

    Raises:
        ValueError: There are not two columns, or pairs of class 1 or of all others are missing.
    """
    if len(pairs.columns) != 2:
        raise ValueError(f"Expected two columns of sentences, received {len(pairs.columns)}.")
    hits = pairs.labels == 1
    if hits.all() or not hits.any():
        raise ValueError(
            "Expected positive and negative pairs for an AUC, received "
            f"{int(hits.sum())} and {int((~hits).sum())}."
        )
    return float(_sklearn_metrics().roc_auc_score(hits, similarities()))


def sentglue_task(
    name: str, dataset: LabelledDataset, metrics: tuple[str, ...], features: str
) -> EvaluationTask:
    """A GLUE task on frozen embeddings.

    Args:
        name: "sentglue_…".
        dataset: What is read.
        metrics: The scores; the first one is the main one. With "pearson" labels are scores, else
            classes.
        features: "u", or "u, v, |u − v|, u·v" for pairs.
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
        found = predict(
            context.embed,
            **splits,
            classifier=None if graded else SentEvalClassifier(seed=context.seed),
            seed=context.seed,
            progress=context.progress,
        )
        scores = glue_scores(dev.labels, found, metrics)
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
    """Cosine of a pair against its binary label (Trans-Encoder, section 3 and table 15).

    Its reader gives class 1 to the positive pairs and 0 to the others.

    Args:
        name: "pairs_…".
        source: The file.
        layout: Its columns.
        title: For people.
        positive: The class whose pairs should be the most similar ones.
        split: Which pairs they are, for people.
        skipped: So many pairs at the beginning of the file are left out.
    """

    def read(data: DataFolder) -> LabelledTexts:
        pairs = layout.read(data.find(source))
        if len(pairs) <= skipped:
            raise ValueError(f"Expected more than {skipped} pairs, received {len(pairs)}.")
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
        {"auc": pair_auc(context.embed, pairs)},
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
