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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from use_st5._imports import require
from use_st5._vectors import cosine
from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation import classification
from use_st5.evaluation._text_files import numbered_lines, parse_score, split_fields
from use_st5.evaluation.classifiers import Classifier, Features, LabelledFeatures, split
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


@dataclass(frozen=True)
class LabelledTexts:
    """The rows of one split.

    Attributes:
        columns: The first sentences and, where the task is about pairs, the second ones.
        labels: `[rows]`: class numbers (int64), or scores (float64).
        broken_lines: How many lines of the file were left out because fields were missing.

    Raises:
        ValueError: No rows, or columns of different lengths.
    """

    columns: tuple[list[str], ...]
    labels: np.ndarray
    broken_lines: int = 0

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.columns}
        if lengths != {len(self.labels)} or not len(self.labels):
            raise ValueError(
                "Expected as many labels as sentences in each column, and at least one; received "
                f"{len(self.labels)} labels and columns of {sorted(lengths)} sentences."
            )

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def rows(self, chosen: np.ndarray) -> LabelledTexts:
        """The rows with these numbers, in this order."""
        columns = tuple([column[row] for row in chosen] for column in self.columns)
        return LabelledTexts(columns, self.labels[chosen], self.broken_lines)

    def embedded(self, embed: VectorCache) -> list[np.ndarray]:
        """The embeddings `[rows, dim]` of each column.

        A sentence without text, as some of QQP's are, is embedded as ".", as in SentEval's
        examples: not every encoder has a vector for nothing.
        """
        return [embed([sentence or "." for sentence in column]) for column in self.columns]


@dataclass(frozen=True)
class TableLayout:
    """The columns of a tab-separated table without quoting, as all of GLUE's are.

    Attributes:
        texts: The columns of the sentences: names in the header, or numbers, from 0, where the
            table has no header.
        label: The column of the label, in the same way.
        classes: The names of the classes in the order of their numbers; labels are written as
            either. Empty where the label is a score.
        most_broken: A table with at most so many lines of more or fewer fields than its header is
            read without them; with more it is not in its format.
    """

    texts: tuple[str, ...] | tuple[int, ...]
    label: str | int
    classes: tuple[str, ...] = ()
    most_broken: int = 0

    def read(self, *paths: str | Path) -> LabelledTexts:
        """Reads files, one after the other.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: A column is missing in a header, a line has too few or too many fields, a
                label is unknown; there are no rows.
        """
        columns: tuple[list[str], ...] = tuple([] for _ in self.texts)
        labels: list[float] = []
        broken = 0
        for path in map(Path, paths):
            before = len(labels)
            for number, fields in self._rows(path):
                if fields is None:
                    broken += 1
                    continue
                labels.append(self._label(path, number, fields[-1]))
                for column, text in zip(columns, fields[:-1], strict=True):
                    column.append(text.strip())
            if len(labels) == before:
                raise ValueError(f"{path}: expected rows with sentences and labels, found none.")
        kind = np.int64 if self.classes else np.float64
        return LabelledTexts(columns, np.array(labels, kind), broken)

    def _rows(self, path: Path) -> Iterator[tuple[int, list[str] | None]]:
        """Line numbers and their sentences and label; None for a line that is left out."""
        lines = numbered_lines(path)
        if self._has_header:
            header = next(lines, (1, ""))[1].split("\t")
            places, least, most = self._places(path, header), len(header), len(header)
        else:
            places, least, most = self._numbers, max(self._numbers) + 1, None
        broken = 0
        for number, line in lines:
            try:
                fields = split_fields(path, number, line, at_least=least, at_most=most)
            except ValueError as error:
                broken += 1
                if broken > self.most_broken:
                    limit = f" At most {self.most_broken} such lines are left out."
                    raise ValueError(f"{error}{limit * bool(self.most_broken)}") from error
                yield number, None
            else:
                yield number, [fields[place] for place in places]

    @property
    def _has_header(self) -> bool:
        return isinstance(self.label, str)

    @property
    def _numbers(self) -> list[int]:
        return [int(column) for column in (*self.texts, self.label)]

    def _places(self, path: Path, names: list[str]) -> list[int]:
        wanted = [str(column) for column in (*self.texts, self.label)]
        if missing := [column for column in wanted if column not in names]:
            raise ValueError(
                f"{path}:1: expected the columns {', '.join(wanted)}; {', '.join(missing)} missing "
                f"in the header {names}."
            )
        return [names.index(column) for column in wanted]

    def _label(self, path: Path, number: int, text: str) -> float:
        if not self.classes:
            return parse_score(path, number, text)
        if text in self.classes:
            return self.classes.index(text)
        if text in map(str, range(len(self.classes))):
            return int(text)
        known = ", ".join(f"{name} or {index}" for index, name in enumerate(self.classes))
        hint = " GLUE's test files have no labels: take its dev file." if text == "-1" else ""
        raise ValueError(f"{path}:{number}: expected a label ({known}), received {text!r}.{hint}")


@dataclass(frozen=True)
class GlueDataset:
    """The train and dev splits of a task; its test split has no labels.

    Attributes:
        name: GLUE's name of it, for example "SST-2".
        train: The file as GLUE publishes it, and a layout → further files that hold the same rows.
        dev: The same of the dev split. A place that is a folder stands for `parts` in it.
        layouts: Of each place.
        origin: Where to get it.
        parts: The files of a dev split that is a folder.
    """

    name: str
    train: tuple[str, ...]
    dev: tuple[str, ...]
    layouts: tuple[TableLayout, ...]
    origin: str = _ORIGIN
    parts: tuple[str, ...] = ()

    @property
    def train_source(self) -> DataSource:
        """The train split."""
        return DataSource(f"GLUE {self.name} train", self.train, self.origin)

    @property
    def dev_source(self) -> DataSource:
        """The dev split."""
        return DataSource(f"GLUE {self.name} dev", self.dev, self.origin)

    def read_train(self, data: DataFolder) -> LabelledTexts:
        """The train split of a data folder.

        Raises:
            MissingDataError: It is not there.
            ValueError: A file is not in its layout.
        """
        return self._read(data, self.train_source)

    def read_dev(self, data: DataFolder) -> LabelledTexts:
        """The dev split; see `read_train`."""
        return self._read(data, self.dev_source)

    def _read(self, data: DataFolder, source: DataSource) -> LabelledTexts:
        path = data.find(source)
        layouts = zip(source.places, self.layouts, strict=True)
        layout = next(layout for place, layout in layouts if path.match(place))
        if path.is_dir():
            return layout.read(*(path / part for part in self.parts))
        return layout.read(path)


_ENTAILMENT = ("entailment", "not_entailment")
_NLI = ("entailment", "neutral", "contradiction")
_DUPLICATE = ("not_duplicate", "duplicate")
_EQUIVALENT = ("not_equivalent", "equivalent")
_SENTIMENT = ("negative", "positive")
# Source, judgement, the author's own mark, sentence; no header, in GLUE and as published first.
_COLA = TableLayout((3,), 1, ("unacceptable", "acceptable"))
_STSB = TableLayout((5, 6), 4)
_MNLI = TableLayout(("sentence1", "sentence2"), "gold_label", _NLI)
# Some of its questions hold line feeds, so GLUE's train file has about a dozen broken lines, which
# TensorFlow Datasets leaves out too.
_QQP = TableLayout(("question1", "question2"), "is_duplicate", _DUPLICATE, most_broken=50)
COLA = GlueDataset(
    "CoLA",
    ("CoLA/train.tsv", "cola_public/raw/in_domain_train.tsv"),
    ("CoLA/dev.tsv", "cola_public/raw"),
    (_COLA, _COLA),
    # GLUE's dev split is both of them in this order.
    parts=("in_domain_dev.tsv", "out_of_domain_dev.tsv"),
)
SST2 = GlueDataset(
    "SST-2",
    ("SST-2/train.tsv", "SST/binary/sentiment-train"),  # the second is SentEval's
    ("SST-2/dev.tsv", "SST/binary/sentiment-dev"),
    (TableLayout(("sentence",), "label", _SENTIMENT), TableLayout((0,), 1, _SENTIMENT)),
)
MRPC = GlueDataset(
    "MRPC",
    ("MRPC/train.tsv",),
    ("MRPC/dev.tsv",),
    (TableLayout(("#1 String", "#2 String"), "Quality", _EQUIVALENT),),
)
STSB = GlueDataset(
    "STS-B",
    ("STS-B/train.tsv", *STSB_TRAIN.places),
    ("STS-B/dev.tsv", *STSB_DEV.places),
    (TableLayout(("sentence1", "sentence2"), "score"), _STSB, _STSB),
)
QQP = GlueDataset("QQP", ("QQP/train.tsv",), ("QQP/dev.tsv",), (_QQP,))
MNLI_MATCHED = GlueDataset("MNLI-m", ("MNLI/train.tsv",), ("MNLI/dev_matched.tsv",), (_MNLI,))
MNLI_MISMATCHED = GlueDataset(
    "MNLI-mm", ("MNLI/train.tsv",), ("MNLI/dev_mismatched.tsv",), (_MNLI,)
)
QNLI = GlueDataset(
    "QNLI",
    ("QNLI/train.tsv",),
    ("QNLI/dev.tsv",),
    (TableLayout(("question", "sentence"), "label", _ENTAILMENT),),
)
RTE = GlueDataset(
    "RTE",
    ("RTE/train.tsv",),
    ("RTE/dev.tsv",),
    (TableLayout(("sentence1", "sentence2"), "label", _ENTAILMENT),),
)


def predict_classes(
    encode: Encode,
    *,
    train: LabelledTexts,
    dev: LabelledTexts,
    classifier: Classifier,
    seed: int = 1111,
    progress: Progress | None = None,
) -> np.ndarray:
    """Trains a classifier on frozen embeddings and predicts the classes of the dev split.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`.
        train: 95 % of it are trained on; a random 5 % choose the regularisation, and when to stop.
        dev: What is predicted.
        classifier: Which, and its settings.
        seed: Of the 5 %.
        progress: Shows how far the training is.

    Returns:
        A class number for each row of `dev`.

    Raises:
        ValueError: Fewer than two training rows, or the encoder gives something unusable.
    """
    embed = as_cache(encode)
    sets = [
        LabelledFeatures(_features(embed, texts), texts.labels)
        for texts in (*hold_out(train, seed=seed), dev)
    ]
    found = split(classifier, train=sets[0], dev=sets[1], test=sets[2], progress=progress)
    return found.predictions


def predict_scores(
    encode: Encode, *, train: LabelledTexts, dev: LabelledTexts, seed: int = 1111
) -> np.ndarray:
    """Learns the scores of pairs, 0 to 5, from frozen embeddings and predicts the dev split's.

    By soft labels (see `relatedness`), with 5 % of `train` held out as in `predict_classes`.

    Raises:
        ValueError: A score is outside 0 … 5, fewer than two training rows, or the encoder gives
            something unusable.
    """
    embed = as_cache(encode)
    learnt, held_out = hold_out(train, seed=seed)
    pairs = [_features(embed, texts)[:] for texts in (learnt, held_out, dev)]
    return predict_relatedness(
        (pairs[0], learnt.labels), (pairs[1], held_out.labels), pairs[2], seed=seed
    )


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


def glue_scores(
    labels: np.ndarray, predictions: np.ndarray, names: Sequence[str]
) -> dict[str, float]:
    """Scores by their names.

    Args:
        labels: True classes or scores `[rows]`.
        predictions: Predicted ones `[rows]`.
        names: Among "accuracy", "f1" (of class 1), "matthews", "pearson", "spearman".
    """
    return {name: _score(name, labels, predictions) for name in names}


def _score(name: str, labels: np.ndarray, predictions: np.ndarray) -> float:
    if name == "accuracy":
        return float(np.mean(labels == predictions))
    if name in ("pearson", "spearman"):
        correlate = stats.pearsonr if name == "pearson" else stats.spearmanr
        return correlation(correlate, labels, predictions)
    metrics = require("sklearn.metrics", "evaluation")
    if name == "f1":
        return float(metrics.f1_score(labels, predictions, zero_division=0.0))
    return float(metrics.matthews_corrcoef(labels, predictions))


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
    ndim = 2

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
    return float(require("sklearn.metrics", "evaluation").roc_auc_score(hits, similarities()))


def sentglue_task(
    name: str, dataset: GlueDataset, metrics: tuple[str, ...], features: str
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

    def read(data: DataFolder) -> tuple[LabelledTexts, LabelledTexts]:
        return dataset.read_train(data), dataset.read_dev(data)

    def score(context: TaskContext, splits: tuple[LabelledTexts, LabelledTexts]) -> TaskResult:
        train, dev = splits
        if graded:
            found = predict_scores(context.embed, train=train, dev=dev, seed=context.seed)
        else:
            found = predict_classes(
                context.embed,
                train=train,
                dev=dev,
                classifier=SentEvalClassifier(seed=context.seed),
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
        reader=read,
        sources=(dataset.train_source, dataset.dev_source),
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
        QQP.dev_source,
        QQP.layouts[0],
        title="QQP",
        positive="duplicate",
        split="GLUE's whole dev split (the paper's 10,000 test pairs are not listed)",
    ),
    pair_task(
        "pairs_qnli",
        QNLI.dev_source,
        QNLI.layouts[0],
        title="QNLI",
        positive="entailment",
        split="GLUE's dev split without its first 1,000 pairs, which are the paper's dev set",
        skipped=1000,
    ),
    pair_task(
        "pairs_mrpc",
        _MRPC_TEST,
        MRPC.layouts[0],
        title="MRPC",
        positive="equivalent",
        split="the corpus's own test split",
    ),
)
