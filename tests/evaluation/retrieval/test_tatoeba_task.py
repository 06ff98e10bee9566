from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.toys import BagOfWords
from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.retrieval.tatoeba_languages import GROUPS, LANGUAGES
from use_st5.evaluation.retrieval.tatoeba_task import TatoebaTask
from use_st5.evaluation.task import TaskContext
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
