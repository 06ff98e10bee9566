from __future__ import annotations

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.evaluated import evaluated_models
from use_st5.evaluation.report.little_data import little_data_section
from use_st5.evaluation.report.theme import LIGHT


def curve(*points: tuple[int, float, float | None, int]) -> dict[str, dict]:
    names = ("examples", "accuracy", "std", "draws")
    points = [dict(zip(names, point, strict=True)) for point in points]
    scores = {"accuracy_1000": points[0]["accuracy"]}
    return {"little_data_sst": entry("little_data", "SST", scores, curve=points)}


def test_a_column_per_size_and_a_line_per_model() -> None:
    models = evaluated_models(
        [
            record("a", curve((8000, 0.8, 0.01, 5), (1000, 0.7, 0.025, 5))),
            record("b", {}),
            record("c", curve((1000, 0.75, 0.02, 5), (67349, 0.9, None, 1))),
        ]
    )
    section = little_data_section(models)
    (table,) = section.tables
    assert [column.title for column in table.columns] == ["1,000", "8,000", "67,349"]
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["70.00", "80.00", "–"],
        ["–", "–", "–"],
        ["75.00", "–", "90.00"],
    ]
    assert [cell.small for cell in table.rows[0].cells] == ["± 2.50", "± 1.00", ""]
    assert table.rows[2].cells[2].small == ""
    assert [row.cells[0].best for row in table.rows] == [False, False, True]
    (axes,) = section.plots[0].draw(LIGHT).axes
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1k", "8k", "67.3k"]
    assert tuple(axes.lines[0].get_xdata()) == (1000, 8000)
    ends = [tuple(line.get_ydata()) for line in axes.lines[1:3]]
    assert ends == [(67.5, 72.5), (79.0, 81.0)]


def test_nothing_without_it() -> None:
    assert little_data_section(evaluated_models([record("a", {})])) is None
