from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.report.records import entry, record
from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.report.evaluated import Evaluated, evaluated_models
from use_st5.evaluation.task import TaskContext
from use_st5.evaluation.tatoeba.readers import GROUPS, LANGUAGES
from use_st5.evaluation.tatoeba.tasks import TASKS, TatoebaTask, tatoeba_plots, tatoeba_tables
from use_st5.vector_store import VectorCache


def test_groups_are_means_over_their_languages(tmp_path: Path) -> None:
    """English finds all, none and half of its sentences in languages of 14, of 36 and others."""
    folder = tmp_path / "LASER" / "data" / "tatoeba" / "v1"
    folder.mkdir(parents=True)
    for code in LANGUAGES:
        english = ["good evening friends", "how much"]
        if code in GROUPS[14]:
            foreign = english
        elif code in GROUPS[36]:
            foreign = english[::-1]
        else:
            foreign = [english[0], english[0] + " dear"]
        for side, lines in (("eng", english), (code, foreign)):
            path = folder / f"tatoeba.{code}-eng.{side}"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    task = TatoebaTask()
    data = DataFolder(tmp_path)
    result = task.run(TaskContext(VectorCache(BagOfWords().encode), data))
    scores = result.scores
    assert scores["accuracy_14"] == scores["accuracy_14_to_english"] == 1.0
    assert scores["accuracy_36"] == scores[result.main] == pytest.approx(14 / 36)
    # To English one of two is right, from English the first and, by what both lack, one of two.
    for direction in ("to_english", "from_english"):
        others = result.details["languages"]["zsm"][direction]
        assert scores[f"accuracy_112_{direction}"] == pytest.approx((14 + 76 * others) / 112)
    assert result.details["languages"]["zsm"]["to_english"] == 0.5
    assert result.details["languages"]["deu"] == {
        "name": "German",
        "pairs": 2,
        "to_english": 1.0,
        "from_english": 1.0,
    }
    assert result.counts == {"pairs": 224}
    assert len(data.hashes(task.used_sources(data))) == 224


def test_the_task_and_its_source() -> None:
    (task,) = TASKS
    assert (task.group, task.name) == ("tatoeba", "tatoeba")
    assert all(source.places and "https://" in source.origin for source in task.sources)


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
