"""What single groups show: their own tables, and where the points of their plots are."""

from __future__ import annotations

import math

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.charts import LIGHT
from use_st5.evaluation.report.plots import dice_plot, source_plot, tatoeba_plots
from use_st5.evaluation.report.sections import report_sections
from use_st5.evaluation.report.tables import Evaluated, evaluated_models


def test_points_are_where_the_scores_are() -> None:
    quintiles = [
        {"dice_from": 0.0, "dice_to": 0.5, "spearman": 0.6},
        {"dice_from": 0.5, "dice_to": 1.0, "spearman": None},
    ]
    dice = entry("sts", "STS-B by shared words", {"spearman_mean": 0.6}, quintiles=quintiles)
    one = {"STS12 MSRpar": {"spearman": 0.5}, "STS13 FNWN": {"spearman": -0.1}}
    two = {"STS13 FNWN": {"spearman": 0.3}}
    models = evaluated_models(
        [
            record("a", {"sts_dice": dice, "sts_sources": sources(one)}),
            record("b", {"sts_sources": sources(two)}),
        ]
    )
    fifths, by_source = dice_plot(models), source_plot(models)
    (axes,) = fifths.draw(LIGHT).axes
    values = axes.lines[0].get_ydata()
    assert values[0] == 60
    assert math.isnan(values[1])
    assert axes.get_xticklabels()[0].get_text() == "0.00 to\n0.50"
    (axes,) = by_source.draw(LIGHT).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["STS12 MSRpar", "STS13 FNWN"]
    first, second = (line.get_xdata() for line in axes.lines)
    assert tuple(first) == (50, -10)
    assert math.isnan(second[0])
    assert second[1] == 30
    assert by_source.protocol == "As in the paper"


def sources(scores: dict[str, dict]) -> dict:
    return entry("sts", "By source", {"spearman_mean": 0.5}, sources=scores)


SCORES = {
    "effect_size": 1.381,
    "p_value": 1e-5,
    "effect_size_low": -0.204,
    "effect_size_high": 1.5,
}


MALE_NAMES = ["MaleNames", "Y", "A", "B"]


FLOWERS = ["Flowers", "Insects", "Pleasant", "Unpleasant"]


def test_effects_stand_with_interval_and_p() -> None:
    given = evaluated_models(
        [
            record("a", {"weat1": entry("weat", "WEAT1", SCORES, categories=FLOWERS)}),
            record("b", {"seat1": entry("seat", "SEAT1", SCORES, categories=MALE_NAMES)}),
        ]
    )
    section = report_sections(given)[1]
    weat, seat = section.tables
    (row,) = weat.rows
    assert row.detail == "Flowers / Insects × Pleasant / Unpleasant"
    assert [cell.text for cell in row.cells] == ["1.38", "–"]
    assert row.cells[0].small == "−0.20 to 1.50; p < 0.001"
    assert [column.title for column in weat.columns] == ["a", "b"]
    assert [column.title for column in seat.columns] == ["a", "b"]
    assert seat.rows[0].detail == "Male Names / Y × A / B"
    assert not any(cell.best for cell in row.cells)
    assert [plot.name for plot in section.plots] == ["weat", "seat"]


def test_an_undefined_effect_and_a_missing_interval_are_shown_as_such() -> None:
    tasks = {
        "weat1": entry("weat", "WEAT1", SCORES | {"effect_size": None, "p_value": None}),
        "weat2": entry("weat", "WEAT2", SCORES | {"effect_size_low": None}),
    }
    section = report_sections(evaluated_models([record("a", tasks)]))[1]
    cells = [row.cells[0] for row in section.tables[0].rows]
    assert [cell.text for cell in cells] == ["undefined", "1.38"]
    assert [cell.small for cell in cells] == ["", "p < 0.001"]
    (axes,) = section.plots[0].draw(LIGHT).axes
    widths = [patch.get_width() for patch in axes.patches]
    assert math.isnan(widths[0])
    assert widths[1] == 1.381


def scores_of(uniformity: float | None, alignment: float) -> dict[str, dict]:
    scores = {
        "uniformity": uniformity,
        "alignment_above_4": alignment,
        "alignment_from_4": alignment,
    }
    return {"geometry": entry("geometry", "Alignment and uniformity", scores)}


def test_less_is_better_and_every_point_is_drawn() -> None:
    models = evaluated_models(
        [
            record("a", scores_of(-2.0, 0.3)),
            record("b", scores_of(-1.0, 0.2)),
            record("c", {}),
            record("d", scores_of(None, 0.4)),
        ]
    )
    section = report_sections(models)[1]
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


def tatoeba_models(*accuracies: dict[str, tuple[float | None, float | None]]) -> list[Evaluated]:
    """A model per argument: language → accuracy to and from English."""
    records = []
    for place, given in enumerate(accuracies):
        languages = {
            code: {"name": f"name of {code}", "pairs": 1000, "to_english": to, "from_english": back}
            for code, (to, back) in given.items()
        }
        scores = {"accuracy_36": 0.5, "accuracy_36_to_english": 0.6}
        task = entry("tatoeba", "Tatoeba", scores, languages=languages)
        records.append(record(f"m{place}", {"tatoeba": task} if given else {}))
    return evaluated_models(records)


def test_languages_are_sorted_by_the_mean_of_all_models() -> None:
    given = tatoeba_models(
        {"fr": (0.2, 0.4), "de": (0.9, 0.7), "sw": (None, 0.5)}, {"fr": (1.0, 1.0)}, {}
    )
    _, table = report_sections(given)[1].tables
    assert [row.detail for row in table.rows] == ["de", "fr", "sw"]
    assert [column.title for column in table.columns][:3] == [
        "m0, to English",
        "m1, to English",
        "m2, to English",
    ]
    french = [cell.text for cell in table.rows[1].cells]
    assert french == ["20.00", "100.00", "–", "40.00", "100.00", "–"]
    assert [cell.best for cell in table.rows[1].cells] == [False, True, False, False, True, False]
    assert table.rows[2].cells[0].text == "undefined"


def test_many_languages_are_several_plots() -> None:
    few = tatoeba_models({f"l{number}": (0.5, 0.5) for number in range(60)})
    many = tatoeba_models({f"l{number}": (0.5, 0.5) for number in range(112)})
    assert [plot.name for plot in tatoeba_plots(few)] == ["tatoeba"]
    plots = tatoeba_plots(many)
    assert [plot.name for plot in plots] == ["tatoeba_1", "tatoeba_2"]
    assert all("56 languages" in plot.alt for plot in plots)
