"""Running tasks: their choice, records, caches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.evaluation.records import entry, record
from tests.evaluation.toys import BagOfWords, words_task
from use_st5.data.data_folder import DataFolder, DataSource, MissingDataError
from use_st5.evaluation.runner import EvaluationRecord, Progress, _key, evaluate
from use_st5.evaluation.task import (
    EvaluationTask,
    TaskContext,
    TaskResult,
    all_tasks,
    groups,
    select_tasks,
    with_data,
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "one" / "deeper"
    folder.mkdir(parents=True)
    (folder / "words.txt").write_text("a b\na b\nc\n", encoding="utf-8")
    return tmp_path / "data"


def stopped(context: TaskContext, lines: list[str]) -> TaskResult:
    context.embed(["a b", "new"])
    raise KeyboardInterrupt


class Log(Progress):
    def __init__(self) -> None:
        self.events: list[tuple] = []
        self.cached: dict[str, bool] = {}

    def started(self, task: EvaluationTask, number: int, total: int) -> None:
        self.events.append((task.name, number, total))

    def finished(self, name: str, result: Mapping[str, Any], *, cached: bool) -> None:
        assert "scores" in result
        self.cached[name] = cached


def test_two_tasks_share_the_embeddings_and_the_record_tells_all(data: Path) -> None:
    encoder, log = BagOfWords(), Log()
    tasks = [words_task(), words_task("double", factor=2.0)]
    record = evaluate(encoder, tasks, data, progress=log, command="use-st5 evaluate …", seed=7)
    assert encoder.asked == ["a b", "c"]
    assert log.events == [("words", 1, 2), ("double", 2, 2)]
    words, double = record.tasks["words"], record.tasks["double"]
    assert double["scores"]["mean"] == pytest.approx(2 * words["scores"]["mean"])
    # Three lines of 64 numbers, which are 0.001 each, plus 1 for each of the five words.
    assert words["scores"]["mean"] == pytest.approx(5 / (3 * 64) + 1e-3)
    assert words["scores"]["undefined"] is None
    digest = hashlib.sha256(b"a b\na b\nc\n").hexdigest()
    assert words["data"] == {"one/deeper/words.txt": digest}
    assert (record.seed, record.command) == (7, "use-st5 evaluate …")
    assert record.model == {
        "name": "bag_of_words",
        "identity": "bag of words, 64 buckets",
        "dimension": 64,
    }


def test_a_record_is_read_as_it_was_written(data: Path, tmp_path: Path) -> None:
    record = evaluate(BagOfWords(), [words_task()], data)
    record.write(tmp_path / "new" / "record.json")
    assert EvaluationRecord.read(tmp_path / "new" / "record.json") == record


def test_a_stopped_run_goes_on(data: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(KeyboardInterrupt):
        evaluate(
            BagOfWords(), [words_task(), words_task("failing", score=stopped)], data, cache=cache
        )
    encoder, log = BagOfWords(), Log()
    evaluate(
        encoder,
        [words_task(), words_task("again", factor=3.0)],
        data,
        cache=cache,
        progress=log,
    )
    assert log.cached == {"words": True, "again": False}
    assert encoder.asked == [], "the embeddings are kept too"


def test_a_damaged_result_is_named(data: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    evaluate(BagOfWords(), [words_task()], data, cache=cache)
    (kept,) = cache.glob("*/words-*.json")
    kept.write_text(kept.read_text(encoding="utf-8")[:50], encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{kept}: \$: expected .* Remove it"):
        evaluate(BagOfWords(), [words_task()], data, cache=cache)
    kept.unlink()
    evaluate(BagOfWords(), [words_task()], data, cache=cache)
    assert kept.is_file()


def test_what_changes_a_score_misses_the_cache(data: Path, tmp_path: Path) -> None:
    encoder = BagOfWords()

    def runs(task: EvaluationTask, *, seed: int = 1, identity: str | None = None) -> bool:
        log, cache = Log(), tmp_path / "cache"
        evaluate(encoder, [task], data, cache=cache, seed=seed, identity=identity, progress=log)
        return not log.cached[task.name]

    task = words_task()
    assert runs(task)
    assert not runs(task)
    assert runs(words_task(factor=2.0))
    assert runs(task, seed=2)
    assert runs(task, identity="another model")
    for prompts, other in (({"q": "q: "}, True), ({"q": "other: "}, True), ({"q": ""}, False)):
        encoder.default_prompt_name, encoder.prompts = "q", prompts
        assert runs(task) is other, "the default prompt is before each text"
    (words,) = data.rglob("words.txt")
    words.rename(data / "words.txt")
    assert not runs(task), "the same content in another place"
    (data / "words.txt").write_text("other\n", encoding="utf-8")
    assert runs(task)


def broken(context: TaskContext, lines: list[str]) -> TaskResult:
    raise ValueError("words.txt:3: expected a word")


def test_a_task_that_fails_does_not_lose_the_others(data: Path, tmp_path: Path) -> None:
    record = evaluate(
        BagOfWords(),
        [words_task("broken", score=broken), words_task(), words_task("b", score=broken)],
        data,
    )
    assert [*record.tasks] == ["words"]
    error = "ValueError: words.txt:3: expected a word"
    assert record.failed == {"broken": error, "b": error}
    record.write(tmp_path / "record.json")
    assert EvaluationRecord.read(tmp_path / "record.json") == record
    with pytest.raises(ValueError, match="words.txt:3"):
        evaluate(
            BagOfWords(), [words_task("broken", score=broken), words_task("b", score=broken)], data
        )


def test_files_that_trade_places_miss_the_cache() -> None:
    key = _key(words_task(), {"data/train.tsv": "1", "data/test.tsv": "2"}, 0)
    assert key == _key(words_task(), {"moved/test.tsv": "2", "moved/train.tsv": "1"}, 0)
    assert key != _key(words_task(), {"data/train.tsv": "2", "data/test.tsv": "1"}, 0)


def test_missing_data_is_found_before_any_work(data: Path) -> None:
    absent = DataSource("absent", ("absent.txt",), "https://example.org")
    encoder = BagOfWords()
    with pytest.raises(MissingDataError, match="absent.txt in .* Get it from https://example.org"):
        evaluate(encoder, [words_task(), words_task("b", sources=(absent,))], data)
    assert not encoder.asked
    with pytest.raises(ValueError, match="Words: expected a data folder"):
        evaluate(encoder, [words_task()])


def test_what_has_no_name_is_called_like_its_function_or_class(data: Path) -> None:
    def shout(sentences: list[str]) -> np.ndarray:
        return np.ones((len(sentences), 2))

    class Nameless:
        encode = staticmethod(shout)

    for encoder, name in ((shout, "shout"), (Nameless(), "Nameless")):
        assert evaluate(encoder, [words_task()], data).model["name"] == name


def test_refusals(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one task"):
        evaluate(BagOfWords(), [], data)
    with pytest.raises(ValueError, match="identity: expected a text that changes"):
        evaluate(BagOfWords().encode, [words_task()], data, cache=tmp_path)
    bad = tmp_path / "bad.json"
    no_scores = {"format": 1, "tasks": {"sts12": {"group": "sts"}}}
    for content in ("[]", "{", "{}", '{"format": 1, "model": {}}', json.dumps(no_scores)):
        bad.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=r"bad.json: \$.* Give a record that `use-st5 eval"):
            EvaluationRecord.read(bad)
    bad.write_text('{"format": 2}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"received 2: a newer version of use_st5 wrote it"):
        EvaluationRecord.read(bad)


def test_every_task_says_what_it_is() -> None:
    for name, task in all_tasks().items():
        assert task.name == name == name.lower()
        assert task.title
        assert len(task.protocol) > 20, f"{name}: a protocol is a sentence"
        json.dumps(dict(task.options))
        for source in task.sources:
            assert source.places
            assert source.origin, f"{name}: nobody knows where to get {source.name}"
    assert not set(groups()) & {"all"}


def test_tasks_are_chosen_by_name_and_group_in_the_order_of_the_tables() -> None:
    names = [task.name for task in select_tasks("sickr, sts12,sts12")]
    assert names == ["sts12", "sickr"]
    assert [task.name for task in select_tasks("sts")] == [task.name for task in groups()["sts"]]
    assert select_tasks("all") == [*all_tasks().values()]
    multilingual = [task.name for task in select_tasks("multilingual,xnli,sts12")]
    assert multilingual[:2] == ["sts12", "tatoeba"]
    assert {"ntrex", "mkqa", "bucc_zh-en", "xsts_tr-en", "jsts", "stsb_zh"} < {*multilingual}
    assert multilingual.count("xnli") == 1


@pytest.mark.parametrize("wanted", ["", ",", "sts99", "sts,nothing"])
def test_unknown_names_are_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match=r"groups \(sts, .*received (none|sts99|nothing)\."):
        select_tasks(wanted)


def test_tasks_whose_data_is_there(tmp_path: Path) -> None:
    words = words_task()
    tasks = [*select_tasks("stsb,mr"), words]
    assert with_data(tasks, DataFolder(tmp_path)) == []
    (tmp_path / "words.txt").write_text("a\n")
    assert with_data(tasks, DataFolder(tmp_path)) == [words]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"main": "x"}, r"\$.main: expected one of \['spearman'\], received 'x'"),
        ({"scores": {"spearman": "1"}}, r"\$.scores\[...\]: expected float \| null"),
        ({"options": 3}, r"\$.options: expected object, received int"),
        ({"data": {"a": 1}}, r"\$.data\[...\]: expected str, received int"),
    ],
)
def test_what_is_read_of_tasks(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "a.json"
    record("m", {"sts12": entry("sts", "STS12", {"spearman": 0.5}) | changes}).write(path)
    with pytest.raises(ValueError, match=rf"a.json: task sts12.*{message}"):
        EvaluationRecord.read(path)


@pytest.mark.parametrize("name", ["use_dan_en", "use_transformer_en", "all-MiniLM-L6-v2"])
def test_the_records_in_the_repository(name: str) -> None:
    path = Path(__file__).parents[2] / "results" / f"{name}.json"
    record = EvaluationRecord.read(path)
    assert record.tasks == json.loads(path.read_text(encoding="utf-8"))["tasks"]
