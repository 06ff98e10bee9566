"""Few labels: pairs of texts by their labels, and heads of scikit-learn.

As in SetFit (Tunstall et al. 2022, arXiv 2209.11055, section 3) an encoder learns from pairs of
texts by their labels; then a logistic regression is fitted to its vectors. SetFit compares the two
texts of a pair. Here each text is compared with all texts of the batch that share no label with it,
as in supervised contrastive learning (Khosla et al. 2020, arXiv 2004.11362), in fewer steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from use_st5._imports import require
from use_st5.losses.gist_loss import GISTEmbedLoss
from use_st5.training.arguments import FileArguments
from use_st5.training.rows import TrainingFile, labels_in, training_table, with_prompt
from use_st5.training.tasks import LABELS, TaskSpec
from use_st5.training.validation import Encode, Metric, Row, Scores, ValidationSet

# Texts that a text is paired with, at most, for each of its labels.
_PARTNERS = 7
# The vectors of labels are the loss's guide: a text that shares any label is no negative.
_LOSS = partial(GISTEmbedLoss, temperature=0.1, margin=0.99, margin_strategy="relative")
# scikit-learn's C for vectors of length 1; with its usual 1 no label of several is probable enough
# (docs/own_data_results.md).
_WEIGHT_OF_ROWS = 100.0
# A logit whose probability is 0 or 1 in float32.
_SURE = 1e4


def use_few_labels(files: Sequence[TrainingFile], arguments: FileArguments) -> None:
    """Gives files of texts and labels the task of few labels, if the arguments ask for it."""
    for file in files:
        if not arguments.few_shot:
            if file.is_multi_label:
                text = "expected one label a text, received lists"
                raise ValueError(f"{file.name}: {text}. Train with few_shot (--few-shot).")
        elif file.retrieval is None:
            if not file.task.stands_in_for(LABELS):
                text = f"expected files of text and label, {file.name} has {file.task.name}"
                raise ValueError(f"few_shot: {text}.")
            file.task = few_labels(file, arguments.class_weight)


def few_labels(file: TrainingFile, class_weight: str | None) -> TaskSpec:
    """The task of a file of texts and labels, learned from pairs and measured with a head."""
    (text,), label = file.task.texts, file.task.label or ""
    several = file.is_multi_label

    def scores(encode: Encode, rows: Sequence[Row], examples: Sequence[Row]) -> Scores:
        names = sorted(file.classes)
        known, asked = (members([row[label] for row in part], names) for part in (examples, rows))
        kernel, bias = head_weights(
            np.asarray(encode([row[text] for row in examples])),
            known,
            several=several,
            class_weight=class_weight,
        )
        logits = np.asarray(encode([row[text] for row in rows])) @ kernel + bias
        best = logits == logits.max(axis=1, keepdims=True)
        predicted = logits > 0 if several else best
        f1 = 2 * (asked & predicted).sum() / max(1, asked.sum() + predicted.sum())
        accuracy = {"accuracy": float((asked == predicted).all(axis=1).mean())}
        return {"f1": float(f1), **accuracy} if several else accuracy

    metric = Metric("accuracy", "accuracy of a logistic regression on the vectors", scores)
    if several:
        metric = Metric("f1", "F1 over all labels of logistic regressions on the vectors", scores)
    return dataclasses.replace(
        file.task,
        description="few texts with labels: pairs of texts that share a label",
        loss=partial(_LOSS, guide_dim=len(file.classes) + 1),
        loss_arguments=lambda file, encoder: {},
        metric=metric,
        rates_of="few_labels",
    )


def members(labels: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Which labels the rows have, bool `[rows, labels]`."""
    places = {name: place for place, name in enumerate(names)}
    table = np.zeros((len(labels), len(names)), bool)
    for row, label in enumerate(labels):
        for name in _names(label):
            table[row, places[name]] = True
    return table


def _names(label: str) -> list[str]:
    several = labels_in(label)
    return [label] if several is None else several


def head_weights(
    vectors: np.ndarray, known: np.ndarray, *, several: bool, class_weight: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """The kernel `[dimension, labels]` and the bias `[labels]` of scikit-learn's regression.

    With `several` labels a row, each label has a regression of its own. A label that all rows have,
    or none, has the probability 1 or 0.
    """
    linear_model = require("sklearn.linear_model", "evaluation")
    kernel = np.zeros((vectors.shape[1], known.shape[1]), np.float32)
    bias = np.where(known.any(axis=0), _SURE, -_SURE).astype(np.float32)
    used = np.flatnonzero(known.any(axis=0) & ~known.all(axis=0))
    if not len(used):
        return kernel, bias
    columns = [(used[[place]], known[:, used[place]]) for place in range(len(used))]
    if not several:
        columns = [(used[1:] if len(used) == 2 else used, known.argmax(axis=1))]
        bias[used] = 0
    factor = _WEIGHT_OF_ROWS / max(1e-12, float(np.square(vectors).sum(axis=1).mean()))
    options = {"C": factor, "class_weight": class_weight, "max_iter": 1000}
    for places, target in columns:
        head = linear_model.LogisticRegression(**options).fit(vectors, target)
        kernel[:, places], bias[places] = head.coef_.T, head.intercept_
    return kernel, bias


def fitted_head(
    kernel: np.ndarray, bias: np.ndarray, labels: Sequence[str], *, several: bool
) -> Any:
    """The fitted object of scikit-learn that these weights are from (`head_weights`)."""
    linear_model = require("sklearn.linear_model", "evaluation")

    def regression(coefficients: np.ndarray, intercept: np.ndarray, classes: Any) -> Any:
        head = linear_model.LogisticRegression()
        head.coef_, head.intercept_ = coefficients, intercept
        head.classes_, head.n_features_in_ = np.asarray(classes), len(kernel)
        return head

    if not several and len(labels) == 2:
        return regression(np.diff(kernel).T, np.diff(bias), labels)
    if not several:
        return regression(kernel.T, bias, labels)
    preprocessing = require("sklearn.preprocessing", "evaluation")
    head = require("sklearn.multiclass", "evaluation").OneVsRestClassifier(
        linear_model.LogisticRegression()
    )
    columns = zip(kernel.T, bias, strict=True)
    head.estimators_ = [regression(w[None], b[None], [0, 1]) for w, b in columns]
    head.label_binarizer_ = preprocessing.LabelBinarizer().fit(np.eye(len(labels), dtype=int))
    return head


def pair_table(
    file: TrainingFile, sets: Sequence[ValidationSet], arguments: FileArguments
) -> pa.Table:
    """Pairs of the training texts, with their labels as the guide's vectors of `GISTEmbedLoss`."""
    table, task = training_table(file, sets), file.task
    (key,) = task.texts
    labels = table[task.label].to_pylist()
    first, second = label_pairs(
        [_names(label) for label in labels],
        table[key].combine_chunks().dictionary_encode().indices.to_numpy(),
        most=arguments.steps * arguments.batch_size if arguments.steps else None,
        seed=arguments.seed,
    )
    known = members(labels, sorted(file.classes))
    # Rows without a label are no negatives of each other.
    vectors = np.concatenate([known, ~known.any(axis=1, keepdims=True)], axis=1, dtype=np.float32)
    guide = pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])
    texts = with_prompt(table[key], file.prompts.get(key))
    columns: dict[str, Any] = {}
    for name, places in (("anchor", first), ("positive", second)):
        columns |= {name: texts.take(places), f"guide_{name}": guide.take(pa.array(places))}
    return pa.table(columns)


def label_pairs(
    labels: Sequence[Sequence[str]], texts: np.ndarray, *, most: int | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The places of the texts of pairs that share a label, int64 `[pairs]` twice.

    No pair occurs twice in the same order, and each row has as many pairs as any other row with the
    same label. A row that no other text shares a label with is paired with itself: as in SimCSE its
    two vectors differ by dropout, and it is a negative of others.

    Args:
        labels: The labels of each row.
        texts: A number for each row's text, int `[rows]`; equal texts are no pair.
        most: The largest number of pairs.
        seed: The seed that chooses the pairs.
    """
    random, rows = np.random.default_rng(seed), len(labels)
    by_label: dict[str, list[int]] = {}
    for row, names in enumerate(labels):
        for name in names:
            by_label.setdefault(name, []).append(row)
    groups = [random.permutation(by_label[name]) for name in sorted(by_label)]
    parts = [np.empty((0, 2), np.int64)]
    for distance in range(1, _PARTNERS + 1):
        rings = [[group, np.roll(group, distance)] for group in groups if distance < len(group)]
        if rings:
            parts.append(random.permutation(np.concatenate(rings, axis=1).T))
    pairs = np.concatenate(parts)
    pairs = pairs[texts[pairs[:, 0]] != texts[pairs[:, 1]]]
    pairs = pairs[np.sort(np.unique(pairs @ [rows, 1], return_index=True)[1])]
    alone = np.setdiff1d(np.arange(rows), pairs)
    pairs = np.concatenate([np.stack([alone, alone], axis=1), pairs])[:most]
    return pairs[:, 0], pairs[:, 1]
