from __future__ import annotations

import math

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.bias import bias_section
from use_st5.evaluation.report.evaluated import evaluated_models
from use_st5.evaluation.report.theme import LIGHT

SCORES = {
    "effect_size": 1.381,
    "p_value": 1e-5,
    "effect_size_low": -0.204,
    "effect_size_high": 1.5,
}
MALE_NAMES = ["MaleNames", "Y", "A", "B"]
FLOWERS = ["Flowers", "Insects", "Pleasant", "Unpleasant"]


def test_effects_stand_with_interval_and_p_beside_the_published_ones() -> None:
    given = evaluated_models(
        [
            record("a", {"weat1": entry("weat", "WEAT1", SCORES, categories=FLOWERS)}),
            record("b", {"seat1": entry("seat", "SEAT1", SCORES, categories=MALE_NAMES)}),
        ]
    )
    section = bias_section(given, published=True)
    weat, seat = section.tables
    (row,) = weat.rows
    assert row.detail == "Flowers / Insects × Pleasant / Unpleasant"
    assert [cell.text for cell in row.cells] == ["1.38", "–", "1.50"]
    assert row.cells[0].small == "−0.20 to 1.50; p < 0.001"
    assert [column.title for column in weat.columns] == ["a", "b", "GloVe (published)"]
    assert [column.title for column in seat.columns] == ["a", "b"]
    assert seat.rows[0].detail == "Male Names / Y × A / B"
    assert not any(cell.best for cell in row.cells)
    assert [plot.name for plot in section.plots] == ["weat", "seat"]


def test_an_undefined_effect_and_a_missing_interval_are_shown_as_such() -> None:
    tasks = {
        "weat1": entry("weat", "WEAT1", SCORES | {"effect_size": None, "p_value": None}),
        "weat2": entry("weat", "WEAT2", SCORES | {"effect_size_low": None}),
    }
    section = bias_section(evaluated_models([record("a", tasks)]), published=False)
    cells = [row.cells[0] for row in section.tables[0].rows]
    assert [cell.text for cell in cells] == ["undefined", "1.38"]
    assert [cell.small for cell in cells] == ["", "p < 0.001"]
    (axes,) = section.plots[0].draw(LIGHT).axes
    widths = [patch.get_width() for patch in axes.patches]
    assert math.isnan(widths[0])
    assert widths[1] == 1.381


def test_nothing_without_tests() -> None:
    assert bias_section(evaluated_models([record("a", {})]), published=True) is None
