from __future__ import annotations

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.evaluated import evaluated_models
from use_st5.evaluation.report.geometry import geometry_section
from use_st5.evaluation.report.theme import LIGHT


def geometry(uniformity: float | None, alignment: float) -> dict[str, dict]:
    scores = {
        "uniformity": uniformity,
        "alignment_above_4": alignment,
        "alignment_from_4": alignment,
    }
    return {"geometry": entry("geometry", "Alignment and uniformity", scores)}


def test_less_is_better_and_every_point_is_drawn() -> None:
    models = evaluated_models(
        [
            record("a", geometry(-2.0, 0.3)),
            record("b", geometry(-1.0, 0.2)),
            record("c", {}),
            record("d", geometry(None, 0.4)),
        ]
    )
    section = geometry_section(models)
    assert [[cell.text for cell in row.cells] for row in section.tables[0].rows] == [
        ["0.300", "0.300", "−2.000"],
        ["0.200", "0.200", "−1.000"],
        ["–", "–", "–"],
        ["0.400", "0.400", "undefined"],
    ]
    best = [[cell.best for cell in row.cells] for row in section.tables[0].rows]
    assert best == [[False, False, True], [True, True, False], [False] * 3, [False] * 3]
    (axes,) = section.plots[0].draw(LIGHT).axes
    points = [(*line.get_xdata(), *line.get_ydata()) for line in axes.lines]
    assert points == [(-2.0, 0.3), (-1.0, 0.2)]


def test_nothing_without_it() -> None:
    assert geometry_section(evaluated_models([record("a", {})])) is None
