from __future__ import annotations

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report.evaluated import evaluated_models
from use_st5.evaluation.report.page import html_page


def rendered(*records: EvaluationRecord) -> str:
    return html_page(evaluated_models(records), [], {}, published=True)


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


def test_addresses_are_links_and_the_rest_is_text() -> None:
    why = "Get it from https://x.org/a?b=1&c=2, or (http://y.org/z). No javascript:alert(1)."
    text = rendered(record("a", {}, {"cr": why}))
    assert '<a href="https://x.org/a?b=1&amp;c=2">https://x.org/a?b=1&amp;c=2</a>, or (' in text
    assert '<a href="http://y.org/z">http://y.org/z</a>). No javascript' in text
    assert text.count("<a href") == 2 + text.count('<a href="#')


def test_one_reason_for_several_tasks_and_models_is_told_once() -> None:
    why = "Get SentEval."
    first, second = record("a", {}, {"mr": why, "cr": why}), record("b", {}, {"mr": why, "cr": why})
    third = record("c", {}, {"mr": why})
    text = rendered(first, second, third)
    assert "<dt>mr (a, b, c)</dt>" in text
    assert "<dt>cr (a, b)</dt>" in text
    assert "Not measured" not in rendered(record("a", {}))


def test_each_data_file_stands_once_with_the_models_measured_on_it() -> None:
    task = entry("sts", "STS12", {"spearman_all": 0.5}) | {"data": {"sts12.txt": "aa"}}
    other = task | {"data": {"sts12.txt": "bb"}}
    text = rendered(record("a", {"x": task, "y": task}), record("b", {"x": other}))
    assert text.count(">sts12.txt</th>") == 2
    assert '>aa</td><td class="left">a</td>' in text
    assert '>bb</td><td class="left">b</td>' in text
