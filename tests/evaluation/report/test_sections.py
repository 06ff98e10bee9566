from __future__ import annotations

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.evaluated import evaluated_models
from use_st5.evaluation.report.sections import every_score, report_sections


def test_sections_are_those_with_something_to_show_in_a_fixed_order() -> None:
    tasks = {
        "new": entry("clustering", "Clusters", {"v_measure": 0.4}),
        "geometry": entry("geometry", "Geometry", {"uniformity": -2.0}),
        "trec": entry("senteval", "TREC", {"accuracy": 0.9}),
        "sts12": entry("sts", "STS12", {"spearman_all": 0.5}),
    }
    models = evaluated_models([record("a", tasks)])
    names = [section.name for section in report_sections(models, published=True)]
    assert names == ["overview", "sts", "senteval", "geometry", "group-0"]
    (alone,) = report_sections(evaluated_models([record("a", {})]), published=True)
    assert alone.name == "overview"


def test_every_score_of_every_model_is_listed() -> None:
    models = evaluated_models(
        [
            record("a", {"mr": entry("senteval", "MR", {"accuracy": 0.5, "f1": 0.6})}),
            record("b", {"mr": entry("senteval", "MR", {"accuracy": 0.7, "auc": None})}),
        ]
    )
    (table,) = every_score(models)
    assert {row.detail: [cell.text for cell in row.cells] for row in table.rows} == {
        "accuracy × 100": ["50.00", "70.00"],
        "F1 × 100": ["60.00", "–"],
        "area under the ROC curve × 100": ["–", "undefined"],
    }
