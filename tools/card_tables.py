"""Prints the tables of a model's card, as Markdown, from the record of its evaluation.

Run it as `python tools/card_tables.py evaluation/MODEL.json`; the record is what `use-st5 evaluate`
writes for the groups sts, senteval, sentglue, pairs, geometry, weat and seat.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# The five sets that the README averages: those of SimCSE's seven sets whose data is available.
AVERAGED = ("sts12", "sts13", "sts15", "stsb", "sickr")
TRANSFER = ("mr", "subj", "sst2", "sst5", "trec", "mrpc", "sicke")
_NAMES = re.compile(r"\b(european|african|american|black|white)\b")

Tasks = Mapping[str, Mapping[str, Any]]


def sts_table(tasks: Tasks) -> Iterator[str]:
    """Spearman and Pearson of each set, times 100, and the mean."""
    yield "| set | pairs | Spearman | Pearson, cosine | Pearson, angular |"
    yield "|---|---|---|---|---|"
    for name in ("sts12", "sts13", "sts15", "stsb_dev", "stsb", "sickr"):
        task = tasks[name]
        names = ("spearman_all", "pearson_all", "pearson_angular_all")
        scores = " | ".join(f"{100 * task['scores'][score]:.2f}" for score in names)
        yield f"| {task['title']} | {task['counts']['pairs']} | {scores} |"
    yield f"| mean of all but STS-B dev | | {mean_spearman(tasks):.2f} | | |"


def mean_spearman(tasks: Tasks) -> float:
    """The mean of the five sets, times 100."""
    return 100 * sum(tasks[name]["scores"]["spearman_all"] for name in AVERAGED) / len(AVERAGED)


def transfer_table(tasks: Tasks) -> Iterator[str]:
    """Accuracy on each transfer task, times 100."""
    yield "| " + " | ".join(tasks[name]["title"] for name in TRANSFER) + " |"
    yield "|---" * len(TRANSFER) + "|"
    yield "| " + " | ".join(f"{100 * _main(tasks[name]):.2f}" for name in TRANSFER) + " |"


def other_table(tasks: Tasks) -> Iterator[str]:
    """Every score of the tasks of the groups little_data, sentglue, pairs and geometry."""
    yield "| task | score | value |"
    yield "|---|---|---|"
    for task in tasks.values():
        if task["group"] in ("little_data", "sentglue", "pairs", "geometry"):
            for score, value in task["scores"].items():
                yield f"| {task['title']} | {score} | {_signed(value, digits=4)} |"


def bias_table(tasks: Tasks) -> Iterator[str]:
    """Effect size with its interval, and p-value, of each association test."""
    yield "| test | targets | attributes | n | d (95 % interval) | p |"
    yield "|---|---|---|---|---|---|"
    for name, task in tasks.items():
        if task["group"] in ("weat", "seat"):
            first, second, third, fourth = map(_spelled, task["details"]["categories"])
            scores = task["scores"]
            d, low, high = (_signed(scores[f"effect_size{end}"]) for end in ("", "_low", "_high"))
            p = scores["p_value"]
            yield (
                f"| {name} | {first} / {second} | {third} / {fourth} | {task['counts']['targets']} "
                f"| {d} ({low} to {high}) | {'<0.001' if p < 0.001 else f'{p:.3f}'} |"
            )


def _main(task: Mapping[str, Any]) -> float:
    return task["scores"][task["main"]]


def _signed(value: float, *, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def _spelled(category: str) -> str:
    """A category such as `EuropeanAmericanNames` in separate words."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", category).lower()
    return _NAMES.sub(lambda match: match[0].capitalize(), words)


def main() -> None:
    """Reads the arguments and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("record", type=Path, help="what `use-st5 evaluate` wrote")
    tasks = json.loads(parser.parse_args().record.read_text(encoding="utf-8"))["tasks"]
    for table in (sts_table, transfer_table, other_table, bias_table):
        print(*table(tasks), sep="\n", end="\n\n")


if __name__ == "__main__":
    main()
