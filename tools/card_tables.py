"""Makes tables of the bundled models from the records of their evaluations, as Markdown.

    python tools/card_tables.py results/MODEL.json
    python tools/card_tables.py --page results/MODEL.json …

The first prints the tables of a card: STS and transfer tasks. The second prints what is too long
for a card: results/bundled_models.md. A record is what `use-st5 evaluate` writes for the groups
sts, senteval, sentglue, pairs, minimal_pairs, geometry, weat and seat.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

# The five sets that the README averages: those of SimCSE's seven sets whose data is available.
AVERAGED = ("sts12", "sts13", "sts15", "stsb", "sickr")
TRANSFER = ("mr", "subj", "sst2", "sst5", "trec", "mrpc", "sicke")
_NAMES = re.compile(r"\b(european|african|american|black|white)\b")

_PAGE = """# Further scores of the bundled models

`tools/card_tables.py --page` writes this page from the [records](README.md). The cards have the
scores on STS and transfer tasks. WEAT and SEAT: the effect size d in standard deviations (ddof 1),
its 95 % percentile bootstrap interval over the targets, and the one-sided p, exact up to n = 9 and
by 100,000 sampled partitions beyond. SEAT counts the sentences of one word as independent, so its
intervals are too narrow and its p too small.
"""

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
    """Every score of the tasks of the groups sentglue, pairs, minimal_pairs and geometry."""
    yield "| task | score | value |"
    yield "|---|---|---|"
    for task in tasks.values():
        if task["group"] in ("sentglue", "pairs", "minimal_pairs", "geometry"):
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


def page(records: Iterable[Path]) -> Iterator[str]:
    """The page of the tables that are too long for a card, a section for each record."""
    yield _PAGE
    for path in records:
        tasks = _tasks(path)
        yield f"## {path.stem}\n"
        yield from (*other_table(tasks), "", *bias_table(tasks), "")


def _tasks(record: Path) -> Tasks:
    return json.loads(record.read_text(encoding="utf-8"))["tasks"]


def main() -> None:
    """Reads the arguments and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("records", type=Path, nargs="+", help="what `use-st5 evaluate` wrote")
    parser.add_argument("--page", action="store_true", help="print results/bundled_models.md")
    options = parser.parse_args()
    if options.page:
        print("\n".join(page(options.records)).rstrip())
        return
    for record in options.records:
        for table in (sts_table, transfer_table):
            print(*table(_tasks(record)), sep="\n", end="\n\n")


if __name__ == "__main__":
    main()
