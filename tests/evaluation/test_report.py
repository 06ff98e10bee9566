"""Reports of records, and the differences between models."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt
from scipy.stats import spearmanr

from tests.evaluation.records import entry, full_record, record
from use_st5.evaluation import report
from use_st5.evaluation.report import (
    _difference_to,
    difference,
    interval,
    report_text,
    write_report,
)
from use_st5.evaluation.runner import EvaluationRecord
from use_st5.evaluation.task import all_tasks, groups


def rendered(*records: EvaluationRecord) -> str:
    return report_text(records, records[0], {})


def rows(text: str, group: str = "") -> list[list[str]]:
    """The rows of the tables below a heading, as cells in Markdown; "": below the title."""
    (part,) = (part for part in f"\n{text}".split("\n## ") if part.startswith(group or "\n# "))
    return [line[2:-2].split(" | ") for line in part.splitlines() if line.startswith("| ")]


def models(*scores: dict[str, float | None], **changes: Any) -> list[EvaluationRecord]:
    """Makes a model per argument, with tasks of BUCC; `changes` apply to the last model's tasks."""
    records = [
        record(
            f"m{place}",
            {f"bucc_{name}-en": entry("bucc", name, {"f1": x}) for name, x in given.items()},
        )
        for place, given in enumerate(scores)
    ]
    for task in records[-1].tasks.values():
        task.update(changes)
    return records


ALL = {"fr": 0.5, "xx": 0.1, "de": 0.7, "zh": 0.5, "ru": 0.3}


def test_columns_are_in_the_order_of_the_paper_then_others_then_the_mean() -> None:
    assert rows(rendered(*models(ALL)), "Mining") == [
        ["Model", "de", "fr", "ru", "zh", "xx", "Avg."],
        ["---", *["--:"] * 6],
        ["m0", "70.00", "50.00", "30.00", "50.00", "10.00", "50.00"],
    ]
    assert rows(rendered(*models({"de": 0.5})), "Mining")[0] == ["Model", "de"]


def test_the_best_is_bold_and_gaps_stay_gaps() -> None:
    text = rendered(*models({"de": 0.7, "fr": 0.70001}, {"fr": 0.70004}, {"de": 0.5, "fr": None}))
    assert rows(text, "Mining")[2:5] == [
        ["m0", "**70.00**", "**70.00**"],
        ["m1", "–", "**70.00**"],
        ["m2", "50.00", "undefined"],
    ]


def test_of_alignment_and_uniformity_less_is_better() -> None:
    scores = {"a": (-2.0, 0.3), "b": (-1.0, 0.2), "c": (None, 0.4)}
    given = [
        record(
            name, {"geometry": entry("geometry", "G", {"uniformity": u, "alignment_above_4": a})}
        )
        for name, (u, a) in scores.items()
    ]
    assert rows(rendered(*given), "Alignment") == [
        ["Model", "uniformity", "alignment above 4"],
        ["---", "--:", "--:"],
        ["a", "**−2.000**", "0.300"],
        ["b", "−1.000", "**0.200**"],
        ["c", "undefined", "0.400"],
    ]


def test_effects_stand_with_interval_and_p() -> None:
    scores = {"effect_size": 1.381, "p_value": 1e-5}
    scores |= {"effect_size_low": -0.204, "effect_size_high": 1.5}
    names = ["Flowers", "Insects", "Pleasant", "EuropeanAmericanNames"]
    first = {"weat1": entry("weat", "WEAT1", scores, categories=names)}
    second = {"weat1": entry("weat", "WEAT1", {"effect_size": 0.5, "p_value": 0.0345})}
    third = {"weat1": entry("weat", "WEAT1", {"effect_size": 0.5, "p_value": None})}
    given = [record("a", first), record("b", {}), record("c", second), record("d", third)]
    heads, _, row = rows(rendered(*given), "Associations of words (WEAT)")
    assert heads == ["Test", "a", "b", "c", "d"]
    assert row == [
        "WEAT1 (Flowers / Insects × Pleasant / European American Names)",
        r"1.38 (−0.20 to 1.50; p \< 0.001)",
        "–",
        "0.50 (p = 0.035)",
        "0.50 (p undefined)",
    ]


def test_means_are_over_what_every_model_has() -> None:
    def model(name: str, **scores: float) -> EvaluationRecord:
        tasks = {task: entry("sts", task, {"spearman_mean": x}) for task, x in scores.items()}
        return record(name, tasks)

    one, two = model("a", sts12=0.5, sts13=0.7, stsb=0.1), model("b", sts12=0.6, sts13=0.9)
    two.model["dimension"] = None
    assert rows(rendered(one, two)) == [
        ["Model", "Dimension", "Tasks", "Semantic textual similarity, 2 of 7"],
        ["---", "--:", "--:", "--:"],
        ["a", "512", "3", "60.00"],
        ["b", "–", "2", "**75.00**"],
        ["Difference to a", "Semantic textual similarity, 2 of 7"],
        ["---", "--:"],
        ["b", "+15.00"],
    ]


def test_differences_are_to_the_baseline_with_intervals(tmp_path: Path) -> None:
    def model(name: str, share: float) -> EvaluationRecord:
        found = entry("senteval", "MR", {"accuracy": share}) | {"counts": {"train": 100}}
        return record(name, {"mr": found})

    given = [model("a", 0.7), model("b", 0.5)]
    path, plot = write_report(given, tmp_path, baseline="b")
    assert plot == tmp_path / "senteval.png"
    text = path.read_text(encoding="utf-8")
    assert "](senteval.png)" in text
    # Wilson's intervals are 0.6042 to 0.7811 and 0.4038 to 0.5962: 0.2 − √(0.0958² + 0.0962²).
    difference = ["a", "**+20.00 (+6.42 to +32.58)**"]
    assert rows(text)[-1] == rows(text, "Transfer")[-1] == difference
    assert rows(rendered(*given))[-1] == ["b", "**−20.00 (−32.58 to −6.42)**"]
    with pytest.raises(ValueError, match="baseline: expected one of a, b; received c"):
        write_report(given, tmp_path, baseline="c")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"protocol": "Another"}, "by different protocols"),
        ({"options": {"k": 5}}, "by different protocols"),
        ({"data": {"a": "00"}}, "on different data files"),
    ],
)
def test_what_cannot_be_compared_is_said_and_neither_bold_nor_subtracted(
    change: dict[str, Any], what: str
) -> None:
    text = rendered(*models({"de": 0.5}, {"de": 0.6}, **change))
    assert f"**Not comparable.** de: the models were measured {what}." in text
    assert rows(text, "Mining")[2:] == [["m0", "50.00"], ["m1", "60.00"]]
    assert "Difference to" not in text


def test_one_line_for_tasks_of_one_protocol_with_score_and_options() -> None:
    tasks = {
        "x": entry("pairs", "X", {"auc": 0.5}, protocol="by cosine"),
        "y": entry("pairs", "Y", {"auc": 0.5}, protocol="by cosine"),
        "z": entry("pairs", "Z", {"v": 0.5}, protocol="by cosine.") | {"options": {"k": 4}},
    }
    text = rendered(record("m", tasks))
    assert "\n- X, Y: auc × 100. by cosine.\n- Z: v. by cosine. Options: k = 4.\n" in text


def test_one_reason_for_several_tasks_is_told_once() -> None:
    why = "Get SentEval."
    text = rendered(record("a", {}, {"mr": why, "cr": why}), record("b", {}, {"mr": why}))
    assert text.endswith(f"## Not measured\n\n- a: mr, cr: {why}\n- b: mr: {why}\n")


def test_texts_of_a_record_are_neither_markup_nor_html() -> None:
    evil = "<img src=x onerror=alert(1)> | **b** _c_ `d` [e](f)\x1b[2J\n# g"
    task = entry(evil, evil, {evil: 0.5}, protocol=evil) | {"options": {evil: evil}}
    text = rendered(record(evil, {evil: task}, {"cr": evil}), record("other", {evil: task}))
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = {part.type for token in tokens for part in (token, *(token.children or ()))}
    assert not {"html_inline", "html_block", "image", "link_open", "em_open", "code_inline"} & kinds
    assert sum(token.type == "heading_open" for token in tokens) == 3
    assert "\x1b" not in text
    texts = ["".join(part.content for part in token.children or ()) for token in tokens]
    assert " ".join(evil.replace("\x1b", "\ufffd").split()) in texts


def test_groups_are_in_a_fixed_order_and_unknown_ones_last() -> None:
    tasks = {
        "new": entry("clustering", "Clusters", {"v_measure": 0.4321}),
        "trec": entry("senteval", "TREC", {"accuracy": 0.9}),
        "sts12": entry("sts", "STS12", {"spearman_all": 0.5}),
    }
    text = rendered(record("a", tasks))
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        *("## Semantic textual similarity", "## Transfer (SentEval)", "## Clustering")
    ]
    assert rows(text, "Clustering")[2] == ["a", "0.43"]
    assert {*report._TITLES} == {*groups(), "mteb"}
    averaged = {name for average in report._AVERAGES.values() for name in average}
    assert averaged <= {*all_tasks()}


def test_a_whole_report_has_its_plots_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    given = [full_record("use_dan_en", 1), full_record("$\\frac{a}$ | *b*", 2)]
    paths = write_report(given, tmp_path / "one")
    plots = [
        "sts",
        "senteval",
        "probing",
        "sentglue",
        "multilingual_sts",
        "multilingual_sts_dev",
        "weat",
        "seat",
    ]
    assert [path.name for path in paths] == ["report.md", *(f"{name}.png" for name in plots)]
    text = paths[0].read_text(encoding="utf-8")
    assert all(f"]({path.name})" in text for path in paths[1:])
    assert "matplotlib" not in text
    for one, two in zip(paths, write_report(given, tmp_path / "two"), strict=True):
        assert one.read_bytes() == two.read_bytes()


def test_without_matplotlib_the_tables_are_there_and_the_plots_named_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    given = [full_record("a", 1), full_record("b", 2)]
    (path,) = write_report(given, tmp_path)
    text = path.read_text(encoding="utf-8")
    assert text.endswith("The plots are missing: they need matplotlib (extra `plots`).\n")
    assert rows(text, "Alignment")


def test_each_model_has_a_name_of_its_own_and_no_records_write_nothing(tmp_path: Path) -> None:
    for records in ([], [record("a b", {}), record("c", {}), record("a\n b", {})]):
        with pytest.raises(ValueError, match="Expected records of models with different names"):
            write_report(records, tmp_path / "report")
    assert not (tmp_path / "report").exists()


def task(name: str, value: float | None, **counts: int) -> dict[str, Any]:
    return entry("group", "Task", {name: value}) | {"counts": counts}


def test_differences_of_shares_are_those_of_newcombe() -> None:
    """Table II of Newcombe (1998), method 10: 56/70 minus 48/80 is 0.0524 to 0.3339."""
    found = difference(task("accuracy", 56 / 70, test=70), task("accuracy", 48 / 80, test=80))
    assert found == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


def test_the_interval_of_a_share_is_wilsons() -> None:
    """Newcombe (1998), interval estimation for the single proportion: 81/263."""
    found = interval(task("accuracy", 81 / 263, train=263))
    assert found == pytest.approx((81 / 263, 0.2553, 0.3662), abs=1e-4)


@pytest.mark.parametrize("name", ["pearson_all", "spearman_all"])
def test_intervals_of_correlations_hold_the_true_one_as_often_as_said(name: str) -> None:
    random, true, held = np.random.default_rng(0), 0.7, 0
    population = 6 / math.pi * math.asin(true / 2) if name.startswith("spearman") else true
    for _ in range(400):
        x = random.normal(size=100)
        y = true * x + math.sqrt(1 - true * true) * random.normal(size=100)
        found = spearmanr(x, y).statistic if "spearman" in name else np.corrcoef(x, y)[0, 1]
        _, low, high = interval(task(name, float(found), pairs=100))
        held += low <= population <= high
    assert 0.92 <= held / 400 <= 0.98


@pytest.mark.parametrize(
    "unknown",
    [
        task("accuracy", 0.5),
        task("accuracy", None, test=100),
        task("spearman_mean", 0.5, pairs=100),
        task("f1_dev", 0.5, pairs=100),
        task("auc", 0.5, pairs=100, positive=50),
        task("spearman_all", 1.0, pairs=100),
    ],
)
def test_no_interval_where_the_record_lacks_what_it_needs(unknown: dict[str, Any]) -> None:
    assert np.isnan(interval(unknown)[1:]).all()


def test_a_difference_turns_around_with_its_models() -> None:
    one, two = task("accuracy", 0.8, test=500), task("accuracy", 0.7, test=500)
    there, back = difference(one, two), difference(two, one)
    assert there == pytest.approx((-back[0], -back[2], -back[1]))
    assert there[1] > 0 > difference(one, one)[1]
    assert math.isnan(difference(one, task("accuracy", None, test=500))[0])
    assert math.isnan(difference(one, task("accuracy", 0.7))[1])


def test_means_of_equal_differences_are_surer_by_the_root_of_their_number() -> None:
    first, second = (
        record(name, {f"t{n}": task("accuracy", value, test=500) for n in range(4)})
        for name, value in (("a", 0.8), ("b", 0.7))
    )
    (value, low, high), mean = (
        _difference_to(first, second, names) for names in (["t0"], [*first.tasks])
    )
    assert mean == pytest.approx((value, value - (value - low) / 2, value + (high - value) / 2))
