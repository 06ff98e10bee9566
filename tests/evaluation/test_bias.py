from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.toys import BagOfWords
from use_st5.bias.weat import read_weat, run_weat, weat_tests
from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.encode.vector_store import Encode, VectorCache
from use_st5.evaluation import bias
from use_st5.evaluation.bias import TASKS, own_test, sentence_task, word_task
from use_st5.evaluation.task import TaskContext

BAG = BagOfWords().encode


def context(folder: Path, *, seed: int = 7, encode: Encode = BAG) -> TaskContext:
    return TaskContext(VectorCache(encode), DataFolder(folder), seed=seed)


def scattered(texts: list[str]) -> np.ndarray:
    """Gives each text its own direction, so that no two targets have the same association."""
    seeds = [[*text.encode()] for text in texts]
    return np.array([np.random.default_rng(seed).standard_normal(16) for seed in seeds])


QUICK = {"ddof": 1, "samples": 1000, "resamples": 100}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The settings of the statistics in a test, in place of those of the tasks."""
    monkeypatch.setattr(bias, "_SETTINGS", found := {**QUICK})
    return found


def test_words_of_ones_own(tmp_path: Path) -> None:
    groups = {
        letter: {"category": letter, "examples": [f"{letter} {n}" for n in range(3)]}
        for letter in ("targ1", "targ2", "attr1", "attr2")
    }
    for name in ("my words", "weat6", "stsb", "tatoeba"):
        (tmp_path / f"{name}.json").write_text(json.dumps(groups), encoding="utf-8")
    task = own_test(tmp_path / "my words.json")
    assert (task.name, task.title, task.group) == ("my_words", "my words", "weat")
    assert task.options["texts"]["x"] == ["targ1 0", "targ1 1", "targ1 2"]
    result = task.run(context(tmp_path, encode=scattered))
    assert result.details["categories"] == [*groups]
    assert task.options["categories"] == [*groups], "another name is another result"
    expected = run_weat(scattered, read_weat(tmp_path / "my words.json"), seed=7)
    assert result.scores["effect_size"] == expected.effect_size
    for name in ("weat6", "stsb", "tatoeba"):
        message = rf"{name}\.json: expected a new name, received {name}, the name of another task"
        with pytest.raises(ValueError, match=message):
            own_test(tmp_path / f"{name}.json")


def test_every_setting_reaches_the_outcome(tmp_path: Path, settings: dict[str, int]) -> None:
    task = word_task(weat_tests()["weat9"], "")
    assert task.options == QUICK

    def run(seed: int = 7, **changes: int) -> Mapping[str, Mapping[str, float]]:
        settings.update(QUICK | changes)
        found = task.run(context(tmp_path, seed=seed, encode=scattered))
        assert found.details["ddof"] == settings["ddof"]
        return {"scores": found.scores, "counts": found.counts}

    base = run()
    # For 12 targets, the two standard deviations differ by the factor √(12 / 11).
    ratio = run(ddof=0)["scores"]["effect_size"] / base["scores"]["effect_size"]
    assert ratio == pytest.approx((12 / 11) ** 0.5)
    assert base["counts"]["partitions"] == 924
    assert run(samples=900)["counts"]["partitions"] == 900
    for other in (run(resamples=101), run(seed=8)):
        assert other["scores"]["effect_size_low"] != base["scores"]["effect_size_low"]
        assert other["scores"]["p_value"] == base["scores"]["p_value"]


@pytest.mark.usefixtures("settings")
def test_sentences_are_read_from_the_data_folder(tmp_path: Path) -> None:
    task = sentence_task("7", "sent-weat7")
    with pytest.raises(MissingDataError, match=r"sent-weat7\.jsonl.*sent-bias"):
        task.run(context(tmp_path))
    groups = zip(
        ("targ1", "targ2", "attr1", "attr2"),
        (["this is art", "that is art"], ["this is math", "a math"], ["is art"], ["math", "a"]),
        strict=True,
    )
    content = {key: {"category": key.upper(), "examples": texts} for key, texts in groups}
    folder = tmp_path / "sent-bias" / "tests"
    folder.mkdir(parents=True)
    (folder / "sent-weat7.jsonl").write_text(json.dumps(content), encoding="utf-8")
    result = task.run(context(tmp_path))
    assert result.scores["effect_size"] > 0
    assert result.counts == {
        "targets": 2,
        "attributes_a": 1,
        "attributes_b": 2,
        "partitions": 6,
    }
    assert result.details["categories"] == ["TARG1", "TARG2", "ATTR1", "ATTR2"]


def test_every_published_file_is_read(data_dir: Path, settings: dict[str, int]) -> None:
    settings.update(samples=10, resamples=10)
    for task in TASKS:
        if task.sources:
            result = task.run(context(data_dir))
            assert -2 < result.scores["effect_size"] < 2
            assert result.counts["targets"] >= 8
