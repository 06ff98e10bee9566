"""`use_st5.train` on a small file for each task, from toys, in a few steps."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import use_st5
from tests.golden.toys import WORDS, use_encoder, write_bert
from tests.golden.vectors import summary

SENTENCES = [" ".join(words) for words in itertools.permutations(WORDS[:6], 3)]
PROBES = [SENTENCES[3], "how old are you", "what is a dog"]
_LABELS = ("entailment", "neutral", "contradiction")

_PAIRS = [*zip(SENTENCES, SENTENCES[1:], SENTENCES[7:], strict=False)]


def _shared(first: str, second: str) -> float:
    return 5 * len({*first.split()} & {*second.split()}) / 3


Rows = list[tuple[object, ...]]
SCORED: Rows = [(a, b, _shared(a, b)) for a, b in itertools.combinations(SENTENCES[:12], 2)]
TOPICS: Rows = [(text, text.split()[0]) for text in SENTENCES]
PROSE = [f"{'. '.join(t.capitalize() for t in SENTENCES[n : n + 4])}." for n in range(0, 60, 2)]
# Task → columns and rows of its file.
FILES: dict[str, tuple[str, Rows]] = {
    "pairs": ("anchor positive", [(a, b) for a, b, _ in _PAIRS]),
    "triplets": ("anchor positive negative", [*_PAIRS]),
    "scored_pairs": ("sentence1 sentence2 score", SCORED),
    "inference": (
        "premise hypothesis label",
        [(a, b, _LABELS[n % 3]) for n, (a, b, _) in enumerate(_PAIRS)],
    ),
    "responses": ("input response", [(a, b) for a, b, _ in _PAIRS]),
    "labels": ("text label", TOPICS),
    "neighbours": ("text", [(text,) for text in PROSE]),
    "texts": ("text", [(text,) for text in SENTENCES]),
    "definitions": (
        "word definition",
        [(word, f"{a} {word} {b}") for word in WORDS for a, b in (("the", "sat"), ("a", "mat"))],
    ),
    "unscored_pairs": ("sentence1 sentence2", [(a, b) for a, b, _ in _PAIRS[:24]]),
}
_FEW: dict[str, Any] = {"batch_size": 8, "steps": 4, "evaluations": 4, "learning_rate": 0.01}
# Name → files, and the differences from `_FEW`. Tracing a task takes most of the time, and so most
# tasks are in one mixture.
TRAININGS: dict[str, tuple[Sequence[str], dict[str, Any]]] = {
    "pairs": (["pairs"], {}),
    "triplets_in_micro_batches": (
        ["triplets"],
        {"micro_batch_size": 4, "matryoshka_dimensions": (4, 16)},
    ),
    "scored_pairs": (
        ["scored_pairs"],
        {"loss": {"objective": "cosent"}, "schedule": "constant", "warmup_ratio": 0.5, "seed": 3},
    ),
    "texts": (["texts"], {"task": "texts", "dropout": 0.2}),
    "mixture": (
        ["scored_pairs", "inference", "responses", "labels", "neighbours"],
        {"steps": 16, "evaluations": 2, "keep": 0.5},
    ),
    "definitions": (["definitions"], {"freeze": ("embedding",)}),
    "unscored_pairs": (["unscored_pairs"], {"cycles": 1, "steps": 2}),
}
# Trainings of a BERT take a minute.
SLOW = ("definitions", "unscored_pairs")


def write_files(folder: Path) -> None:
    """Writes the file of each task, and the models to start from: `use_dan`, `bert`."""
    for name, (columns, rows) in FILES.items():
        lines = ["\t".join(columns.split()), *("\t".join(map(str, row)) for row in rows)]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    use_encoder("use_dan").export(folder / "use_dan")
    write_bert(folder / "bert", layers=1)


def trained(name: str, folder: Path) -> dict[str, Any]:
    """Steps, losses, scores and vectors of one of `TRAININGS`; `folder` has the files."""
    files, changes = TRAININGS[name]
    options = _FEW | changes
    # With ranks of triplets, two steps were so close that the processor decided which was best.
    if name in ("unscored_pairs", "triplets_in_micro_batches"):
        options["validation"] = folder / "scored_pairs.tsv"
    start = folder / ("bert" if name in SLOW else "use_dan")
    given = [folder / f"{file}.tsv" for file in files]
    done = use_st5.train(str(start), given, folder / f"{name}_trained", **options)
    record = json.loads((done.run / "history.json").read_text(encoding="utf-8"))[""]
    return {
        "steps": done.steps,
        "best_step": done.best_step,
        "curves": _curves(done.run),
        "validation": record["evaluations"],
        "before": {**done.before},
        "after": {**done.after},
        "test_before": {**done.test_before},
        "test_after": {**done.test_after},
        "classifiers": [each.accuracy for each in done.classifiers],
        "vectors": summary(use_st5.load(done.folder).encode(PROBES)),
    }


def _curves(run: Path) -> dict[str, list[tuple[int, float]]]:
    """Losses of the tasks and the learning rate by step, from TensorBoard's files."""
    import tensorflow as tf

    curves: dict[str, list[tuple[int, float]]] = {}
    for file in sorted(run.rglob("events.out.tfevents.*")):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                if value.tag.endswith(("loss", "learning_rate")):
                    number = float(tf.make_ndarray(value.tensor))
                    curves.setdefault(value.tag, []).append((event.step, number))
    return curves
