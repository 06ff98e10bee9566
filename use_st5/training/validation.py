"""The validation metrics of each task."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from use_st5.encode.similarity import cosine, unit_rows

if TYPE_CHECKING:
    from use_st5.training.tasks import TaskSpec

Encode = Callable[[list[str]], np.ndarray]
Row = dict[str, Any]
Scores = dict[str, float]
_LAMBDAS = (1e-1, 1.0, 1e1, 1e2, 1e3)


@dataclasses.dataclass(frozen=True)
class Metric:
    """Measures an encoder on rows of one task.

    Attributes:
        name: The name of the main score, a key of the result of `scores`.
        description: The main score in words.
        scores: `(encode, rows, examples)` → scores by name. The rows are measured; a classifier is
            fitted to the examples, which are training rows.
        query: The key of the query, whose text gets the exported prompt "query".
    """

    name: str
    description: str
    scores: Callable[[Encode, Sequence[Row], Sequence[Row]], Scores]
    query: str | None = None


@dataclasses.dataclass(frozen=True)
class ValidationSet:
    """Rows that measure an encoder.

    Attributes:
        name: The name of the set, a part of the scores' names if there are several sets.
        task: The task of the rows.
        rows: The rows to measure on.
        examples: Training rows that a classifier of labels is fitted to.
        labels_of: The training file that teaches the labels, if the rows have labels.
        prompts: Key of a row → the prompt before its text.
    """

    name: str
    task: TaskSpec
    rows: Sequence[Row]
    examples: Sequence[Row] = ()
    labels_of: str | None = None
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def metric(self) -> Metric:
        """The metric of the task."""
        if self.task.metric is None:
            raise ValueError(f"{self.name}: the task {self.task.name} measures nothing.")
        return self.task.metric

    def scores(self, encode: Encode) -> Scores:
        """The scores by name, the main one first."""
        prompts = {self.prompts.get(key, "") for key in self.task.texts}
        if len(prompts) == 1 and (prompt := prompts.pop()):
            # The prompt goes before what the metric encodes, which may be a part of a text.
            return self.metric.scores(
                lambda texts: encode([prompt + text for text in texts]), self.rows, self.examples
            )
        rows, examples = (
            [with_prompts(row, self.prompts) for row in each] if self.prompts else each
            for each in (self.rows, self.examples)
        )
        return self.metric.scores(encode, rows, examples)


def with_prompts(row: Row, prompts: Mapping[str, str]) -> Row:
    """Puts prompts before the texts of a row, which need not have all keys of the prompts."""
    return {**row, **{key: text + row[key] for key, text in prompts.items() if key in row}}


def main_score(sets: Sequence[ValidationSet]) -> str:
    """The name of the main score of `scores_of`; of several sets, the mean of their main scores."""
    return sets[0].metric.name if len(sets) == 1 else "mean"


def scores_of(sets: Sequence[ValidationSet], encode: Encode) -> Scores:
    """The scores of an encoder on all sets; empty without sets."""
    if len(sets) <= 1:
        return sets[0].scores(encode) if sets else {}
    results = {each.name: each.scores(encode) for each in sets}
    mean = float(np.mean([results[each.name][each.metric.name] for each in sets]))
    set_scores = {f"{of}_{name}": v for of, scores in results.items() for name, v in scores.items()}
    return {"mean": mean, **set_scores}


def correlation(first: str, second: str, score: str) -> Metric:
    """The rank correlation, and Pearson's, of the cosines of two texts with their scores."""

    def scores(encode: Encode, rows: Sequence[Row], examples: Sequence[Row]) -> Scores:
        from scipy.stats import pearsonr, spearmanr

        vectors = _vectors(encode, [row[key] for key in (first, second) for row in rows])
        cosines = cosine(vectors[: len(rows)], vectors[len(rows) :])
        labels = np.array([row[score] for row in rows])
        results = {"spearman": spearmanr(cosines, labels), "pearson": pearsonr(cosines, labels)}
        return {name: float(np.nan_to_num(each.statistic)) for name, each in results.items()}

    return Metric("spearman", "rank correlation of the cosine with the scores", scores)


def retrieval(query: str, answer: str, *, negatives: Sequence[str] = ()) -> Metric:
    """The mean reciprocal rank of the answer among those of all rows and negatives, by the cosine.

    A row need not have the keys of `negatives`.
    """

    def scores(encode: Encode, rows: Sequence[Row], examples: Sequence[Row]) -> Scores:
        negative_texts = [row[key] for row in rows for key in negatives if key in row]
        return _retrieval(encode, [(row[query], row[answer]) for row in rows], negative_texts)

    description = "mean reciprocal rank of what belongs to a text, by cosine"
    return Metric("mrr", description, scores, query=query)


def halves_retrieval(text: str) -> Metric:
    """The mean reciprocal rank of a text's second half, given the first, by the cosine."""

    def scores(encode: Encode, rows: Sequence[Row], examples: Sequence[Row]) -> Scores:
        words = [row[text].split() for row in rows]
        cut = [(each[: len(each) // 2], each[len(each) // 2 :]) for each in words]
        return _retrieval(encode, [(" ".join(first), " ".join(rest)) for first, rest in cut])

    return Metric("mrr", "mean reciprocal rank of a text's second half, given the first", scores)


def accuracy(*texts: str, label: str) -> Metric:
    """The accuracy of a ridge classifier, in `[0, 1]`, that is fitted to the examples.

    It reads the vector of a text, or `[u; v; |u − v|; u ⊙ v]` of two texts; arguments are keys.
    """

    def scores(encode: Encode, rows: Sequence[Row], examples: Sequence[Row]) -> Scores:
        all_rows = [*examples, *rows]
        names = sorted({row[label] for row in all_rows})
        places = {name: place for place, name in enumerate(names)}
        labels = np.array([places[row[label]] for row in all_rows])
        features = _vectors(encode, [row[key] for key in texts for row in all_rows])
        if len(texts) == 2:
            u, v = np.split(features, 2)
            features = np.concatenate([u, v, np.abs(u - v), u * v], axis=1)
        split = len(examples)
        predicted = ridge_classes(features[:split], labels[:split], features[split:], len(names))
        return {"accuracy": float((predicted == labels[split:]).mean())}

    inputs = "[u; v; |u − v|; u ⊙ v]" if len(texts) == 2 else "the vectors"
    return Metric("accuracy", f"accuracy of a ridge classifier on {inputs}", scores)


def _retrieval(
    encode: Encode, pairs: Sequence[tuple[str, str]], negatives: Sequence[str] = ()
) -> Scores:
    """Ranks the best answer of each query among all answers and hard negatives, by the cosine."""
    answer_sets: dict[str, set[str]] = {}
    for query, answer in pairs:
        answer_sets.setdefault(query, set()).add(answer)
    answers = [*dict.fromkeys([*(answer for _, answer in pairs), *negatives])]
    places = {answer: place for place, answer in enumerate(answers)}
    vectors = unit_rows(_vectors(encode, [*answer_sets, *answers]).astype(np.float32))
    cosines = vectors[: len(answer_sets)] @ vectors[len(answer_sets) :].T
    ranks = []
    for row, right_answers in zip(cosines, answer_sets.values(), strict=True):
        positions = [places[answer] for answer in right_answers]
        other_cosines = np.delete(row, positions)
        # Half of equal candidates rank before: one vector for all texts must not score well.
        best = row[positions].max()
        ranks.append(1 + (other_cosines > best).sum() + (other_cosines == best).sum() / 2)
    rank = np.array(ranks)
    return {
        "mrr": float((1 / rank).mean()),
        "accuracy@1": float((rank < 1.5).mean()),
        "accuracy@10": float((rank < 10.5).mean()),
    }


def ridge_classes(known: np.ndarray, labels: np.ndarray, points: np.ndarray, n: int) -> np.ndarray:
    """Classes of `points` by ridge regression on ±1, the penalty chosen by leaving one example out.

    `known` is float `[examples, width]`, `labels` int `[examples]` below `n`, `points` float
    `[rows, width]`; the result is int `[rows]`.
    """
    mean, deviation = known.mean(axis=0), known.std(axis=0) + 1e-8
    x, z = ((part - mean) / deviation / np.sqrt(known.shape[1]) for part in (known, points))
    y = np.where(labels[:, None] == np.arange(n), 1.0, -1.0)
    offset = y.mean(axis=0)
    values, q = np.linalg.eigh((x @ x.T).astype(np.float64))
    projections = q.T @ (y - offset)
    best_score, best_dual = -1.0, np.zeros_like(y)
    for penalty in _LAMBDAS:
        inverse = 1.0 / (np.maximum(values, 0) + penalty)
        dual = q @ (inverse[:, None] * projections)
        left_out = y - dual / (q**2 @ inverse)[:, None]
        score = float((left_out.argmax(axis=1) == labels).mean())
        if score > best_score:
            best_score, best_dual = score, dual
    return (z @ (x.T @ best_dual) + offset).argmax(axis=1)


def _vectors(encode: Encode, texts: list[str]) -> np.ndarray:
    """The vectors of texts; each distinct text is encoded once."""
    distinct_texts = [*dict.fromkeys(texts)]
    places = {text: place for place, text in enumerate(distinct_texts)}
    return np.asarray(encode(distinct_texts))[[places[text] for text in texts]]
