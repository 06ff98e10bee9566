"""The scores of bi- and cross-encoders on each set, and the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from experiments.trans_encoder.mined_pairs import Pair
from experiments.trans_encoder.pairs import Overlap, overlap
from use_st5 import TrainableEncoder
from use_st5.data import DataFolder, MissingDataError
from use_st5.encode import VectorCache, cosine
from use_st5.evaluation import score_similarities, select_tasks
from use_st5.training import DistilledModel

# First texts, second texts → their similarities `[pairs]`.
Similar = Callable[[list[str], list[str]], np.ndarray]
# Set → similarities of its pairs.
Similarities = Mapping[str, np.ndarray]
# The test sets in the paper's order; STS-B dev is not one, because choices are made on it.
STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
_PAIRS = ("pairs_qqp", "pairs_qnli", "pairs_mrpc")


@dataclasses.dataclass(frozen=True)
class TestSet:
    """One test set.

    Attributes:
        name: The name of its task.
        title: The title in tables.
        metric: "spearman_all" or "auc".
        pairs: Its pairs.
        score: Similarities `[pairs]` → the score.
    """

    name: str
    title: str
    metric: str
    pairs: list[Pair]
    score: Callable[[np.ndarray], float]


def test_sets(data: Path) -> tuple[list[TestSet], list[str]]:
    """The test sets in a data folder, and the titles of those that are missing."""
    folder, sets, missing = DataFolder(data), [], []
    for task in select_tasks(",".join([*STS, *_PAIRS])):
        try:
            sets.append(_test_set(task, folder))
        except MissingDataError:
            missing.append(task.title)
    return sets, missing


def _test_set(task: Any, folder: DataFolder) -> TestSet:
    task.used_sources(folder)
    data = task.read(folder)
    if task.group == "sts":

        def correlation(similarities: np.ndarray) -> float:
            return score_similarities(data, similarities).spearman["all"]

        pairs = [(pair.first, pair.second) for pair in data.pairs]
        return TestSet(task.name, task.title, "spearman_all", pairs, correlation)

    def area(similarities: np.ndarray) -> float:
        return float(roc_auc_score(data.labels == 1, similarities))

    pairs = [*zip(*data.columns, strict=True)]
    return TestSet(task.name, task.title, "auc", pairs, area)


def similar(encoder: TrainableEncoder, *, kind: str) -> Similar:
    """A function from pairs to similarities: a bi-encoder's cosine or a cross-encoder's score."""
    if kind == "cross":

        def score(first: list[str], second: list[str]) -> np.ndarray:
            logits = encoder.encode(zip(first, second, strict=True))[:, 0]
            # In float32, many high scores would be equal.
            return np.exp(-np.logaddexp(0.0, -logits.astype(np.float64)))

        return score
    embed = VectorCache(encoder.encode)
    return lambda first, second: cosine(embed(first), embed(second))


def similarities_of(
    sets: Sequence[TestSet], encoder: TrainableEncoder, *, kind: str
) -> Similarities:
    """The similarities that an encoder gives to the pairs of each set."""
    similarity = similar(encoder, kind=kind)
    return {
        each.name: similarity(*(list(texts) for texts in zip(*each.pairs, strict=True)))
        for each in sets
    }


def ensemble_similarities(members: Sequence[Similarities]) -> Similarities:
    """The mean similarities of several encoders of one kind: the paper's ensembles."""
    return {name: np.mean([each[name] for each in members], axis=0) for name in members[0]}


def scores_of(sets: Sequence[TestSet], similarities: Similarities) -> dict[str, float]:
    """Set → score."""
    return {each.name: each.score(similarities[each.name]) for each in sets}


def report(
    title: str,
    sets: Sequence[TestSet],
    missing: Sequence[str],
    pool: Sequence[Pair],
    scores: Mapping[str, Mapping[str, float]],
    models: Sequence[DistilledModel],
) -> str:
    """The report in Markdown.

    Args:
        title: The title of the run.
        sets: The test sets.
        missing: The titles of test sets without data.
        pool: The training pairs.
        scores: Column → set → score.
        models: All models of the cycles.
    """
    overlaps = {each.name: overlap(each.pairs, pool) for each in sets}
    lines = [
        f"# {title}",
        "",
        f"{len(pool):,} pairs without labels were learnt from. A set is transductive where its "
        "sentences were among them, inductive where none was.",
        "",
    ]
    for metric, heading in (
        ("spearman_all", "STS: Spearman's correlation over all pairs of a set, x 100"),
        ("auc", "Pair classification: area under the ROC curve, x 100"),
    ):
        metric_sets = [each for each in sets if each.metric == metric]
        if metric_sets:
            lines += [f"## {heading}", "", *_table(metric_sets, overlaps, scores), ""]
    if missing:
        lines += [f"Not in the data folder: {', '.join(missing)}.", ""]
    return "\n".join([*lines, *_validation(models)]) + "\n"


def _table(
    sets: Sequence[TestSet],
    overlaps: Mapping[str, Overlap],
    scores: Mapping[str, Mapping[str, float]],
) -> list[str]:
    lines = ["| set | pairs | in the pool | " + " | ".join(scores) + " |"]
    lines.append("|---" * (3 + len(scores)) + "|")
    for test_set in sets:
        cells = [test_set.title, f"{len(test_set.pairs):,}", str(overlaps[test_set.name])]
        cells += [f"{100 * column[test_set.name]:.2f}" for column in scores.values()]
        lines.append("| " + " | ".join(cells) + " |")
    unseen_sets = [test_set for test_set in sets if not overlaps[test_set.name].pairs]
    for label, group in (("mean", sets), ("mean of those without a pair in the pool", unseen_sets)):
        if len(group) > 1:
            means = [
                100 * np.mean([column[test_set.name] for test_set in group])
                for column in scores.values()
            ]
            cells = [label, "", "", *(f"{mean:.2f}" for mean in means)]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def _validation(models: Sequence[DistilledModel]) -> list[str]:
    lines = [
        "## The cycles: Spearman's correlation on STS-B dev, which chooses, x 100",
        "",
        "| cycle | model | STS-B dev | step |",
        "|---|---|---|---|",
    ]
    for entry in models:
        model = f"{entry.student}, {entry.kind}"
        lines.append(f"| {entry.cycle} | {model} | {100 * entry.spearman:.2f} | {entry.step} |")
    return lines
