"""How good an encoder is at what a file teaches: one measure for each kind of task."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from use_st5._vectors import cosine, unit_rows
from use_st5.training.columns import (
    DEFINITIONS,
    INFERENCE,
    LABELS,
    NEIGHBOURS,
    PAIRS,
    RESPONSES,
    SCORED_PAIRS,
    TEXTS,
    TaskKind,
)
from use_st5.training.sources import Row

Encode = Callable[[list[str]], np.ndarray]
Scores = dict[str, float]

# Of a query's kind: what asks, and what is to be found.
_QUERIES = {
    PAIRS.name: ("anchor", "positive"),
    RESPONSES.name: ("input", "response"),
    DEFINITIONS.name: ("word", "definition"),
    NEIGHBOURS.name: ("text", "next"),
}
MEASURES = {
    SCORED_PAIRS.name: ("spearman", "rank correlation of the cosine with the scores"),
    INFERENCE.name: ("accuracy", "accuracy of a ridge classifier on [u; v; |u − v|; u ⊙ v]"),
    LABELS.name: ("accuracy", "accuracy of a ridge classifier on the vectors"),
    **dict.fromkeys(_QUERIES, ("mrr", "mean reciprocal rank of what belongs to a text, by cosine")),
    TEXTS.name: ("mrr", "mean reciprocal rank of a text's second half, given the first"),
}
_LAMBDAS = (1e-1, 1.0, 1e1, 1e2, 1e3)


@dataclasses.dataclass(frozen=True)
class DevelopmentSet:
    """Rows that measure an encoder.

    Attributes:
        name: In the scores' names, where there are several sets.
        kind: Of the rows.
        rows: What is measured on.
        examples: Rows of training that a classifier of labels is fitted to.
        labels_of: The training file that teaches the labels, if it is of any.
    """

    name: str
    kind: TaskKind
    rows: Sequence[Row]
    examples: Sequence[Row] = ()
    labels_of: str | None = None

    def texts(self) -> list[str]:
        """The texts that a measurement encodes, each once."""
        rows = [*self.rows, *self.examples]
        return [*dict.fromkeys(row[key] for row in rows for key in self.kind.texts if key in row)]

    def questions(self) -> int:
        """What is asked: rows, or of those that begin with the same text one."""
        if self.kind.name not in _QUERIES:
            return len(self.rows)
        key, _ = _QUERIES[self.kind.name]
        return len({row[key] for row in self.rows})

    def scores(self, encode: Encode) -> Scores:
        """The measures by name, the main one first."""
        if self.kind is SCORED_PAIRS:
            return _correlations(encode, self.rows)
        if self.kind.label is not None:
            return {"accuracy": _accuracy(encode, self.kind, self.examples, self.rows)}
        if self.kind is TEXTS:
            return _retrieval(encode, [_halves(row["text"]) for row in self.rows])
        query, answer = _QUERIES[self.kind.name]
        pairs = [(row[query], row[answer]) for row in self.rows]
        return _retrieval(encode, pairs, _hard_negatives(self.kind, self.rows))


def measure(sets: Sequence[DevelopmentSet]) -> tuple[Callable[[Encode], Scores], str]:
    """What measures an encoder on all sets, and the name of the score that counts.

    Where there are several sets, it is the mean of their main measures.
    """
    main = [MEASURES[each.kind.name][0] for each in sets]
    if len(sets) == 1:
        return sets[0].scores, main[0]

    def scores(encode: Encode) -> Scores:
        found: Scores = {}
        for each in sets:
            found |= {f"{each.name}_{name}": value for name, value in each.scores(encode).items()}
        counted = [found[f"{s.name}_{name}"] for s, name in zip(sets, main, strict=True)]
        return {"mean": float(np.mean(counted)), **found}

    return scores, "mean"


# Before the names of the scores on rows that chose nothing.
_TEST = "test_"


def test_scores(sets: Sequence[DevelopmentSet], encode: Encode) -> Scores:
    """The measures on the sets that test, each name behind "test_"; none where there are none."""
    if not sets:
        return {}
    return {f"{_TEST}{name}": value for name, value in measure(sets)[0](encode).items()}


def apart(scores: Mapping[str, float]) -> tuple[Scores, Scores]:
    """Scores as they validate and as they test, the latter by the names of the former."""
    test = {name: value for name, value in scores.items() if name.startswith(_TEST)}
    validation = {name: value for name, value in scores.items() if name not in test}
    return validation, {name.removeprefix(_TEST): value for name, value in test.items()}


def _correlations(encode: Encode, rows: Sequence[Row]) -> Scores:
    from scipy.stats import pearsonr, spearmanr

    vectors = _vectors(encode, [row[key] for key in ("sentence1", "sentence2") for row in rows])
    cosines = cosine(vectors[: len(rows)], vectors[len(rows) :])
    gold = np.array([row["score"] for row in rows])
    found = {"spearman": spearmanr(cosines, gold), "pearson": pearsonr(cosines, gold)}
    return {name: float(np.nan_to_num(each.statistic)) for name, each in found.items()}


def _hard_negatives(kind: TaskKind, rows: Sequence[Row]) -> list[str]:
    """The texts in the columns of negatives, which only pairs have."""
    names = [name for name in kind.optional if name in kind.texts]
    return [row[name] for row in rows for name in names if name in row]


def _retrieval(
    encode: Encode, pairs: Sequence[tuple[str, str]], negatives: Sequence[str] = ()
) -> Scores:
    """Ranks the answers of each query among all answers and hard negatives, by the cosine.

    Args:
        encode: Gives the vectors.
        pairs: Queries, each with an answer; a query may have several.
        negatives: Further candidates. A text that is an answer of a query is none of its negatives.

    Returns:
        "mrr", the mean reciprocal rank of a query's best answer, and "accuracy@k", the share of
        queries that have an answer among the first k candidates.
    """
    right: dict[str, set[str]] = {}
    for query, answer in pairs:
        right.setdefault(query, set()).add(answer)
    answers = [*dict.fromkeys([*(answer for _, answer in pairs), *negatives])]
    places = {answer: place for place, answer in enumerate(answers)}
    vectors = unit_rows(_vectors(encode, [*right, *answers]).astype(np.float32))
    cosines = vectors[: len(right)] @ vectors[len(right) :].T
    ranks = []
    for row, found in zip(cosines, right.values(), strict=True):
        own = [places[answer] for answer in found]
        others = np.delete(row, own)
        # Of equal ones half stand before: an encoder that gives one vector to all is no good.
        best = row[own].max()
        ranks.append(1 + (others > best).sum() + (others == best).sum() / 2)
    rank = np.array(ranks)
    return {
        "mrr": float((1 / rank).mean()),
        "accuracy@1": float((rank < 1.5).mean()),
        "accuracy@10": float((rank < 10.5).mean()),
    }


def _halves(text: str) -> tuple[str, str]:
    words = text.split()
    return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])


def _accuracy(
    encode: Encode, kind: TaskKind, examples: Sequence[Row], rows: Sequence[Row]
) -> float:
    """How many labels a linear classifier names that knows the examples, in `[0, 1]`."""
    names = sorted({row["label"] for row in (*examples, *rows)})
    places = {name: place for place, name in enumerate(names)}
    known, asked = (np.array([places[row["label"]] for row in part]) for part in (examples, rows))
    features = _features(encode, kind, [*examples, *rows])
    predicted = ridge_classes(
        features[: len(examples)], known, features[len(examples) :], len(names)
    )
    return float((predicted == asked).mean())


def _features(encode: Encode, kind: TaskKind, rows: Sequence[Row]) -> np.ndarray:
    vectors = _vectors(encode, [row[key] for key in kind.texts for row in rows])
    if kind is not INFERENCE:
        return vectors
    u, v = vectors[: len(rows)], vectors[len(rows) :]
    return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


def ridge_classes(known: np.ndarray, labels: np.ndarray, asked: np.ndarray, n: int) -> np.ndarray:
    """Classes by ridge regression on ±1, the penalty chosen by leaving one example out.

    Args:
        known: float `[examples, width]`.
        labels: int `[examples]`.
        asked: float `[rows, width]`.
        n: The number of classes.

    Returns:
        int `[rows]`.
    """
    mean, deviation = known.mean(axis=0), known.std(axis=0) + 1e-8
    x, z = ((part - mean) / deviation / np.sqrt(known.shape[1]) for part in (known, asked))
    y = np.where(labels[:, None] == np.arange(n), 1.0, -1.0)
    offset = y.mean(axis=0)
    values, q = np.linalg.eigh((x @ x.T).astype(np.float64))
    turned = q.T @ (y - offset)
    best, chosen = -1.0, np.zeros_like(y)
    for penalty in _LAMBDAS:
        inverse = 1.0 / (np.maximum(values, 0) + penalty)
        dual = q @ (inverse[:, None] * turned)
        left_out = y - dual / (q**2 @ inverse)[:, None]
        right = float((left_out.argmax(axis=1) == labels).mean())
        if right > best:
            best, chosen = right, dual
    return (z @ (x.T @ chosen) + offset).argmax(axis=1)


def _vectors(encode: Encode, texts: list[str]) -> np.ndarray:
    """Vectors of texts, each distinct one computed once."""
    distinct = [*dict.fromkeys(texts)]
    places = {text: place for place, text in enumerate(distinct)}
    return np.asarray(encode(distinct))[[places[text] for text in texts]]


def shown(scores: Mapping[str, Any]) -> str:
    """Scores in a line."""
    return ", ".join(f"{name} {100 * value:.2f}" for name, value in scores.items())
