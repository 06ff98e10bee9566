"""Records as the runner writes them, with made-up scores."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from use_st5.evaluation.runner import EvaluationRecord
from use_st5.evaluation.task import all_tasks

# Group → the main score of its tasks; that of others is "accuracy".
_MAINS = {"sts": "spearman_all", "multilingual_sts": "spearman_all", "pairs": "auc", "bucc": "f1"}
_MAINS |= {"retrieval": "ndcg@10", "geometry": "uniformity"}


def entry(
    group: str,
    title: str,
    scores: dict[str, float | None],
    protocol: str = "As in the paper",
    **details: Any,
) -> dict[str, Any]:
    """A task's entry of a record; the first score is the main one."""
    return {
        "group": group,
        "title": title,
        "protocol": protocol,
        "options": {"k": 4} if group == "bucc" else {},
        "main": next(iter(scores)),
        "scores": scores,
        "counts": {"pairs": 3108},
        "details": details,
        "data": {f"{group}/{title}.txt": hashlib.sha256(title.encode()).hexdigest()},
        "seconds": 1.2,
        "finished": "2026-11-21T12:34:56+00:00",
        "versions": {"python": "3.11.2"},
    }


def record(
    name: str, tasks: dict[str, dict[str, Any]], skipped: dict[str, str] | None = None
) -> EvaluationRecord:
    """A record of these tasks."""
    return EvaluationRecord(
        model={"name": name, "identity": "sha256:0f3a", "dimension": 512},
        created="2026-11-21T12:34:56+00:00",
        versions={"python": "3.11.2", "numpy": "2.4.0", "use_st5": "0.1.0"},
        command=f"use-st5 evaluate {name} --tasks all --data DIR",
        seed=1111,
        tasks=tasks,
        skipped=skipped or {},
    )


def full_record(name: str, seed: int) -> EvaluationRecord:
    """A record of every task."""
    random, tasks = np.random.default_rng(seed), {}
    for task in all_tasks().values():
        details: dict[str, Any] = {}
        if task.group in ("weat", "seat"):
            effect = float(random.normal(0.8, 0.6))
            scores = {"effect_size": effect, "p_value": float(random.uniform(0, 0.3)) ** 4}
            scores |= {"effect_size_low": effect - 0.4, "effect_size_high": effect + 0.3}
            details["categories"] = ["Math", "Arts", "Male terms", "Female terms"]
        else:
            scores = {_MAINS.get(task.group, "accuracy"): float(random.uniform(0.5, 0.9))}
        tasks[task.name] = entry(task.group, task.title, scores, **details)
    return record(name, tasks)
