from __future__ import annotations

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.evaluated import Evaluated, evaluated_models
from use_st5.evaluation.report.retrieval import tatoeba_plots, tatoeba_tables


def models(*accuracies: dict[str, tuple[float | None, float | None]]) -> list[Evaluated]:
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
    given = models({"fr": (0.2, 0.4), "de": (0.9, 0.7), "sw": (None, 0.5)}, {"fr": (1.0, 1.0)}, {})
    _, table = tatoeba_tables(given, published=False)
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


def test_published_means_stand_beside_the_same_groups_of_languages() -> None:
    means, _ = tatoeba_tables(models({"fr": (0.2, 0.4)}), published=True)
    assert [column.title for column in means.columns] == ["36", "36, to English"]
    # Multilingual Sentence-T5, Table 1.
    labse = next(row for row in means.rows if row.label == "LaBSE")
    assert [cell.text for cell in labse.cells] == ["95.0", "–"]


def test_many_languages_are_several_plots() -> None:
    few = models({f"l{number}": (0.5, 0.5) for number in range(60)})
    many = models({f"l{number}": (0.5, 0.5) for number in range(112)})
    assert [plot.name for plot in tatoeba_plots(few)] == ["tatoeba"]
    plots = tatoeba_plots(many)
    assert [plot.name for plot in plots] == ["tatoeba_1", "tatoeba_2"]
    assert all("56 languages" in plot.alt for plot in plots)


def test_nothing_without_tatoeba() -> None:
    assert tatoeba_tables(models({}), published=True) == []
    assert tatoeba_plots(models({})) == []
