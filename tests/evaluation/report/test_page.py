from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.report.records import entry, record
from tests.test_page import Page, check_alone
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report import write_report
from use_st5.evaluation.report.page import html_page
from use_st5.evaluation.report.tables import report_sections


def rendered(*records: EvaluationRecord) -> str:
    return html_page(records, report_sections(records))


def test_texts_of_a_record_are_escaped_wherever_they_stand() -> None:
    evil = "<img src=x onerror=alert(1)>'\""
    task = entry(evil, evil, {evil: 0.5}, protocol=evil) | {"data": {evil: evil}}
    task["counts"] = {evil: 1}
    model = record(evil, {evil: task}, {"cr": f"{evil} https://x.org/{evil}"})
    model.versions[evil] = evil
    text = rendered(model)
    assert "<img" not in text
    assert "onerror=alert(1)>'" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_one_reason_for_several_tasks_and_models_is_told_once() -> None:
    why = "Get SentEval."
    first, second = record("a", {}, {"mr": why, "cr": why}), record("b", {}, {"mr": why, "cr": why})
    third = record("c", {}, {"mr": why})
    text = rendered(first, second, third)
    assert "<dt>mr (a, b, c)</dt>" in text
    assert "<dt>cr (a, b)</dt>" in text
    assert "Not measured" not in rendered(record("a", {}))


def test_the_data_files_of_each_model_are_listed_once() -> None:
    task = entry("sts", "STS12", {"spearman_all": 0.5}) | {"data": {"sts12.txt": "aa"}}
    other = task | {"data": {"sts12.txt": "bb"}}
    text = rendered(record("a", {"x": task, "y": task}), record("b", {"x": other}))
    assert text.count("<li>sts12.txt: <code>aa</code></li>") == 1
    assert text.count("<li>sts12.txt: <code>bb</code></li>") == 1


@pytest.fixture(scope="module")
def page(full_report: Path) -> Page:
    return Page((full_report / "report.html").read_text(encoding="utf-8"))


def written(folder: Path, *records: EvaluationRecord) -> Page:
    (path, *_) = write_report(records, folder)
    return Page(path.read_text(encoding="utf-8"))


def test_the_page_is_whole_and_needs_nothing_else(page: Page) -> None:
    check_alone(page)


def test_every_part_is_there(page: Page) -> None:
    found = {attrs["id"] for tag, attrs in page.tags if tag == "h2"}
    assert found == {
        "overview", "sts", "senteval", "probing", "sentglue", "pairs", "minimal_pairs",
        "tatoeba", "bucc", "multilingual_sts", "geometry", "weat", "seat", "every-score", "repeat",
    }  # fmt: skip


def test_scores_stand_in_the_tables(page: Page, full_records: list[EvaluationRecord]) -> None:
    score = full_records[0].tasks["sts14"]["scores"]["spearman_all"]
    rows = [row for row in page.rows if row[0].endswith("use_dan_en")]
    assert any(f"{score * 100:.2f}" in row for row in rows)
    effect = full_records[1].tasks["weat6"]["scores"]["effect_size"]
    (row,) = [row for row in page.rows if row[0].startswith("WEAT6 (Male names")]
    assert row[2].startswith(f"{effect:.2f}".replace("-", "−"))


def test_how_to_repeat_it_is_there(page: Page, full_records: list[EvaluationRecord]) -> None:
    for model in full_records:
        assert model.command in page.text
        for task in model.tasks.values():
            assert all(digest in page.text for digest in task["data"].values())
            assert task["protocol"] in page.text
    assert "numpy 2.4.0" in page.text


def test_plots_have_captions_and_the_page_is_all_there_is(page: Page, full_report: Path) -> None:
    assert [path.name for path in full_report.iterdir()] == ["report.html"]
    plots = [attrs["aria-label"] or "" for tag, attrs in page.tags if tag == "svg"]
    assert all(len(words) > 20 for words in plots)
    words = ("Alignment", "Effect", "Difference to use_dan_en by task")
    assert all(any(word in plot for plot in plots) for word in words)


def test_what_was_measured_and_the_means_stand_first() -> None:
    tasks = {name: entry("sts", name, {"spearman_all": 0.5}) for name in ("sts12", "sts13")}
    better = {name: entry("sts", name, {"spearman_all": 0.6}) for name in ("sts12", "sts13")}
    whole = rendered(record("a", tasks), record("b", better))
    text = Page(whole).text
    assert "2 sentence encoders, a, b, were measured on 2 tasks of 1 groups (2026-11-21)" in text
    assert "“–” means: not measured; “undefined” has no value." in text
    assert "Semantic textual similarity, 2 of 7" in text
    assert whole.index(">60.00<") < whole.index("<nav ")
    assert "a was measured on 2 tasks" in Page(rendered(record("a", tasks))).text


def test_differences_are_to_the_baseline_with_intervals(tmp_path: Path) -> None:
    def model(name: str, share: float) -> EvaluationRecord:
        found = entry("senteval", "MR", {"accuracy": share}) | {"counts": {"train": 100}}
        return record(name, {"mr": found})

    models = [model("a", 0.7), model("b", 0.5)]
    (path,) = write_report(models, tmp_path, baseline="b")
    page = Page(path.read_text(encoding="utf-8"))
    assert "Difference to b" in page.text
    # Wilson's intervals are 0.6042 to 0.7811 and 0.4038 to 0.5962: 0.2 − √(0.0958² + 0.0962²).
    assert ["a", "+20.00 (+6.42 to +32.58)"] in page.rows
    (path,) = write_report(models, tmp_path)
    assert ["b", "−20.00 (−32.58 to −6.42)"] in Page(path.read_text(encoding="utf-8")).rows
    with pytest.raises(ValueError, match="baseline: expected one of a, b; received c"):
        write_report(models, tmp_path, baseline="c")
    for task in models[1].tasks.values():
        task["options"] = {"k": 5}
    assert "Difference to" not in rendered(*models)


def test_gaps_are_named_and_never_zero(tmp_path: Path) -> None:
    tasks = {"mr": entry("senteval", "MR", {"accuracy": None})}
    tasks["cr"] = entry("senteval", "CR", {"accuracy": 0.8})
    other = {"cr": entry("senteval", "CR", {"accuracy": 0.7})}
    page = written(
        tmp_path,
        record("a", tasks),
        record("b", other, {"mr": "MR: get it from https://x.org/mr."}),
    )
    assert ["MR", "CR"] in [row[1:] for row in page.rows]
    assert ["undefined", "80.00"] in [row[1:] for row in page.rows]
    assert ["–", "70.00"] in [row[1:] for row in page.rows]
    assert ("a", {"href": "https://x.org/mr"}) in page.tags


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    geometry = {"uniformity": -2.0, "alignment_above_4": 0.2, "alignment_from_4": 0.3}
    model = record("a", {"geometry": entry("geometry", "Geometry", geometry)})
    paths = [write_report([model], tmp_path / name) for name in ("one", "two")]
    assert [path.name for path in paths[0]] == ["report.html"]
    for one, two in zip(*paths, strict=True):
        assert one.read_bytes() == two.read_bytes()


def test_groups_of_later_versions_are_shown(tmp_path: Path) -> None:
    model = record("a", {"new": entry("clustering", "Clusters", {"v_measure": 0.4321})})
    page = written(tmp_path, model)
    assert ["a", "0.43"] in page.rows
    assert "Clusters" in page.text


def test_no_records_write_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="received none"):
        write_report([], tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    one = record("a", {"mr": entry("senteval", "MR", {"accuracy": 0.5})})
    two = record("b", {"mr": entry("senteval", "MR", {"accuracy": 0.6}, protocol="Another")})
    text = written(tmp_path, one, two).text
    assert "Not comparable. MR: the models were measured by different protocols." in text
