"""Records as the runner writes them, with made-up scores."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from use_st5.evaluation.runner import EvaluationRecord

_STS = {"sts12": "STS12", "sts13": "STS13", "sts14": "STS14", "sts15": "STS15"}
_STS |= {"sts16": "STS16", "stsb_dev": "STS-B dev", "stsb": "STS-B test", "sickr": "SICK-R"}
_TRANSFER = ("mr", "cr", "subj", "mpqa", "sst2", "sst5", "trec", "mrpc", "sicke")
_GLUE = {"cola": "CoLA", "sst2": "SST-2", "mrpc": "MRPC", "stsb": "STS-B", "qqp": "QQP"}
_GLUE |= {"mnli_m": "MNLI-m", "mnli_mm": "MNLI-mm", "qnli": "QNLI", "rte": "RTE"}
_TESTS = {
    "weat1": ["Flowers", "Insects", "Pleasant", "Unpleasant"],
    "weat6": ["Male names", "Female names", "Career", "Family"],
    "weat7": ["Math", "Arts", "Male terms", "Female terms"],
}


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
    """A record with tasks of every group."""
    random = np.random.default_rng(seed)

    def about(middle: float) -> float:
        return float(np.clip(middle + random.normal(0, 0.05), 0, 1))

    tasks = {}
    for task, title in _STS.items():
        scores = {"spearman_all": about(0.75), "spearman_mean": about(0.73)}
        scores["pearson_angular_all"] = about(0.76)
        tasks[task] = entry("sts", title, scores)
    for task in _TRANSFER:
        scores = {"accuracy": about(0.85)}
        tasks[task] = entry(
            "senteval", task.upper(), scores | ({"f1": 0.8} if task == "mrpc" else {})
        )
    tasks["probing_length"] = entry("probing", "SentLen", {"accuracy": about(0.6)})
    for task, title in _GLUE.items():
        main = {"cola": "matthews", "stsb": "pearson"}.get(task, "accuracy")
        tasks[f"sentglue_{task}"] = entry("sentglue", title, {main: about(0.7)})
    for task in ("qqp", "qnli", "mrpc"):
        tasks[f"pairs_{task}"] = entry("pairs", task.upper(), {"auc": about(0.78)})
    tasks["minimal_pairs"] = entry(
        "minimal_pairs",
        "Minimal pairs",
        {"accuracy": about(0.4), "accuracy_negation": about(0.3), "accuracy_roles": about(0.2)},
    )
    tasks |= _language_tasks(about)
    tasks["geometry"] = entry(
        "geometry",
        "Alignment and uniformity",
        {
            "uniformity": float(-2 + random.normal(0, 0.4)),
            "alignment_above_4": about(0.25),
            "alignment_from_4": about(0.3),
        },
    )
    for group in ("weat", "seat"):
        for test, categories in _TESTS.items():
            effect = float(random.normal(0.8, 0.6))
            scores = {
                "effect_size": effect,
                "p_value": float(random.uniform(0, 0.3)) ** 4,
                "effect_size_low": effect - 0.4,
                "effect_size_high": effect + 0.3,
            }
            title = test.upper() if group == "weat" else test.upper().replace("WEAT", "SEAT")
            task = test if group == "weat" else test.replace("weat", "seat")
            tasks[task] = entry(group, title, scores, categories=categories)
    return record(name, tasks)


def _language_tasks(about: Any) -> dict[str, dict[str, Any]]:
    tasks = {}
    scores = {"accuracy_36": about(0.8), "accuracy_36_to_english": about(0.8)}
    tasks["tatoeba"] = entry("tatoeba", "Tatoeba", scores)
    for pair in ("de-en", "zh-en"):
        scores = {"f1": about(0.8), "precision": about(0.8), "recall": about(0.8)}
        tasks[f"bucc_{pair}"] = entry("bucc", f"BUCC {pair}", scores)
    for pair in ("ar-en", "es-es"):
        tasks[f"xsts_{pair}"] = entry("multilingual_sts", pair, {"spearman": about(0.7)})
    return tasks
