"""The tables of measured results: how they are made, and that documents print what they hold."""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path

from tools.results_table import rows

NAMES = {
    "untrained": "untrained",
    "skip-thought": "skip_thought",
    "input-response": "input_response",
    "inference": "inference",
    "all three": "three_tasks",
    "untrained, words weighted by their rank": "weighed_untrained",
    "the same, all three": "weighed_three_tasks",
}


def test_a_row_for_each_number(tmp_path: Path) -> None:
    (tmp_path / "self_0").mkdir()
    (tmp_path / "self_0/scores.json").write_text(json.dumps({"bi/stsb": 0.5, "format": 1}))
    (tmp_path / "mr_10.json").write_text(json.dumps({"tasks": {"mr": {"scores": [0.7, None]}}}))
    (tmp_path / "frozen.json").write_text(json.dumps({"mr": 1}))
    assert [*rows(tmp_path)] == [
        ("frozen", "", "mr", 1),
        ("mr", "10", "tasks/mr/scores/0", 0.7),
        ("mr", "10", "tasks/mr/scores/1", None),
        ("self/scores", "0", "bi/stsb", 0.5),
    ]


def test_the_page_of_own_tasks_prints_its_table(repository: Path) -> None:
    scores: dict[tuple[str, str], list[float]] = {}
    with (repository / "results/own_tasks.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            value = 100 * float(row["value"])
            scores.setdefault((row["run"], row["name"].removeprefix("stsb_dev_")), []).append(value)
    text = (repository / "experiments/use/README.md").read_text(encoding="utf-8")
    table = text.split("| | 1,200 steps, Pearson | Spearman |", 1)[1].split("\n\n", 1)[0]
    printed = 0
    for line in table.splitlines()[2:]:
        name, *cells = (cell.strip(" *") for cell in line.strip("|").split("|"))
        places = [
            (steps, each) for steps in (1200, 10000, 20000) for each in ("pearson", "spearman")
        ]
        for (steps, correlation), cell in zip(places, cells, strict=False):
            if cell and cell != "not run":
                values = scores[f"{NAMES[name]}_{steps}", correlation]
                mean = f"{statistics.fmean(values):.1f}"
                spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
                assert cell == f"{mean}{spread}", (name, steps, correlation)
                printed += 1
    assert printed == 30
