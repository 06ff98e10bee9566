"""Few labels: pairs of texts by their labels, and heads of scikit-learn.

SetFit (Tunstall et al. 2022, arXiv 2209.11055, section 3): an encoder learns from pairs of texts
whether they share a label; then a logistic regression is fitted to its vectors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from use_st5._imports import require
from use_st5.losses.scored_pair_loss import ScoredPairLoss
from use_st5.training.arguments import FileArguments
from use_st5.training.rows import TrainingFile, labels_in, training_table, with_prompt
from use_st5.training.tasks import LABELS, TaskSpec
from use_st5.training.validation import Encode, Metric, Row, Scores, ValidationSet

# Texts with a common label that a text is paired with, at most, if each is paired from both sides.
_PARTNERS = 20
# Places in a random order between the texts of pairs without a common label: with many rows these
# are not all pairs, but more than are used.
_FARTHEST = 1000
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
        description="few texts with labels: pairs of texts that share a label, or not",
        loss=ScoredPairLoss,
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
    """Pairs of the training texts as `ScoredPairLoss` reads them: the score is 1 or 0."""
    table, task = training_table(file, sets), file.task
    (key,) = task.texts
    most = arguments.steps * arguments.batch_size if arguments.steps else None
    first, second, scores = label_pairs(
        [_names(label) for label in table[task.label].to_pylist()],
        table[key].combine_chunks().dictionary_encode().indices.to_numpy(),
        most=most,
        seed=arguments.seed,
    )
    texts = with_prompt(table[key], file.prompts.get(key))
    columns = {"first": texts.take(first), "second": texts.take(second), "score": scores}
    return pa.table(columns)


def label_pairs(
    labels: Sequence[Sequence[str]], texts: np.ndarray, *, most: int | None, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The places of the texts of pairs, int64 `[pairs]` twice, and their scores, float64 `[pairs]`.

    The score is 1 if two rows share a label, else 0. No pair occurs twice, there are about as many
    of either score, and each row has about as many pairs as any other row with the same label. Two
    rows without labels, or with the same text, are no pair. The memory is that of the rows and of
    the pairs that are used, not of all pairs.

    Args:
        labels: The labels of each row.
        texts: A number for each row's text, int `[rows]`.
        most: The largest number of pairs.
        seed: The seed that chooses the pairs.
    """
    random, rows = np.random.default_rng(seed), len(labels)
    by_label: dict[str, list[int]] = {}
    for row, names in enumerate(labels):
        for name in names:
            by_label.setdefault(name, []).append(row)
    groups = [random.permutation(by_label[name]) for name in sorted(by_label)]
    sharing = members_of(groups, rows)
    most = rows * 2 * _PARTNERS if most is None else most
    alike: Any = np.concatenate(
        [
            np.empty((0, 2), np.int64),
            *(
                np.stack([group, np.roll(group, distance)], axis=1)
                for distance in range(1, _PARTNERS + 1)
                for group in groups
                if 2 * distance <= len(group)
            ),
        ]
    )
    alike = _distinct(alike[texts[alike[:, 0]] != texts[alike[:, 1]]], rows)[: most // 2]
    order, others = random.permutation(rows), [np.empty((0, 2), np.int64)]
    wanted = max(len(alike), min(rows, most - len(alike)))
    for distance in range(1, min(rows // 2, _FARTHEST) + 1):
        pairs = np.stack([order, np.roll(order, distance)], axis=1)
        first, second = sharing[pairs[:, 0]], sharing[pairs[:, 1]]
        is_other = ~(first & second).any(axis=1) & (first | second).any(axis=1)
        others.append(pairs[is_other & (texts[pairs[:, 0]] != texts[pairs[:, 1]])])
        if sum(map(len, others)) >= wanted:
            break
    other = _distinct(np.concatenate(others), rows)[:wanted]
    alike = alike[: max(len(other), rows)]
    chosen = np.concatenate([alike, other])
    return chosen[:, 0], chosen[:, 1], np.repeat([1.0, 0.0], [len(alike), len(other)])


def members_of(groups: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Which groups the rows are in, a bit each: uint8 `[rows, bytes]`."""
    bits = np.zeros((rows, -(-len(groups) // 8)), np.uint8)
    for place, group in enumerate(groups):
        bits[group, place // 8] |= np.uint8(1 << place % 8)
    return bits


def _distinct(pairs: np.ndarray, rows: int) -> np.ndarray:
    """The pairs without those that occurred before, in either order."""
    keys = pairs.min(axis=1) * rows + pairs.max(axis=1)
    return pairs[np.sort(np.unique(keys, return_index=True)[1])]
