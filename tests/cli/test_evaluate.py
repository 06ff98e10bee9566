"""`use-st5 evaluate`: choosing tasks and models, the result's file, interruption, errors."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress as Bars

from tests.cli.conftest import FakeEncoder
from tests.evaluation.toys import WORDS, words_task
from use_st5.cli.evaluation_tasks import EvaluationProgress, print_tasks
from use_st5.data.data_folder import DataSource
from use_st5.evaluation import task as task_module
from use_st5.evaluation.runner import EvaluationRecord
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

ABSENT = DataSource("Rare", ("rare.txt",), "https://example.org/rare", "free")
ENCODERS = '''
import numpy as np
from beside import SIZE

ASKED = []

class Lengths:
    """Texts as their lengths."""
    name, identity = "lengths", "v1"
    def encode(self, sentences):
        ASKED.extend(sentences)
        return np.array([[len(text), 1] for text in sentences], np.float32)

class Batched(Lengths):
    identity = None
    def encode(self, sentences, batch_size=7):
        return np.full((len(sentences), SIZE), batch_size, np.float32)

class Prompted(Lengths):
    def encode(self, sentences, prompt="", prompt_name=None):
        prompt = "named: " if prompt_name else prompt
        return super().encode([prompt + text for text in sentences])

class Usual(Prompted):
    prompts, default_prompt_name = {"usual": "u: "}, "usual"

class Sides(Lengths):
    prompts = {"query": "q: ", "document": "d: "}

def made():
    return Batched()

ready = Lengths()
number = 3

def needs(argument):
    return Lengths()

def fails():
    raise RuntimeError("no weights")

def empty():
    return object()
'''


def own_task(runs: list[int]) -> EvaluationTask:
    """A task that needs no data, and adds an entry to `runs` at each run."""

    def score(context: TaskContext, data: None) -> TaskResult:
        runs.append(context.seed)
        return TaskResult("first", {"first": float(context.embed(["abcd"])[0, 0])}, {"texts": 1})

    return EvaluationTask("own", "light", "Own", "the first number of one vector", score)


def stopped_task() -> EvaluationTask:
    """A task that is interrupted, as by Ctrl-C, when it runs for the first time."""
    presses: list[int] = []

    def score(context: TaskContext, lines: list[str]) -> TaskResult:
        if not presses:
            presses.append(1)
            raise KeyboardInterrupt
        return words_task().score(context, lines)

    return words_task("stopped", group="trouble", score=score)


@pytest.fixture
def own_runs() -> list[int]:
    return []


@pytest.fixture(autouse=True)
def toy_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_runs: list[int]
) -> Iterator[None]:
    """Tasks, a data folder `data` and a file `encoders.py`."""
    tasks = (
        words_task(),
        stopped_task(),
        words_task("rare", title="Rare words", sources=(ABSENT,)),
        words_task("any", group="some", sources=(WORDS,)),
        own_task(own_runs),
    )
    monkeypatch.setattr(task_module, "all_tasks", lambda: {task.name: task for task in tasks})
    monkeypatch.delenv("USE_ST5_DATA", raising=False)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words.txt").write_text("a b\nc\n", encoding="utf-8")
    (tmp_path / "encoders.py").write_text(ENCODERS, encoding="utf-8")
    (tmp_path / "beside.py").write_text("SIZE = 3\n", encoding="utf-8")
    before = [*sys.path]
    yield
    sys.path[:] = before
    for name in ("encoders", "beside"):
        sys.modules.pop(name, None)


MODEL = "encoders.py:Lengths"


def test_scores_go_to_the_pipe_and_the_record_to_a_file(
    use: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["use-st5", "evaluate", "with space"])
    result = use("evaluate", MODEL, "--tasks", "own,words", "--data", "data", "--seed", "5")
    assert result.exit_code == 0, result.stderr
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert lines[0] == ["task", "title", "score", "value", "n", "seconds"]
    # The vectors are (3, 1) and (1, 1): a length and a 1.
    assert lines[1][:5] == ["words", "Words", "mean", "1.5000", "2 lines"]
    assert lines[2][:5] == ["own", "Own", "first", "4.0000", "1 texts"]
    record = EvaluationRecord.read(tmp_path / "evaluation" / "lengths.json")
    assert record.model == {"name": "lengths", "identity": "v1", "dimension": 2}
    assert (record.seed, record.command) == (5, "use-st5 evaluate 'with space'")
    assert [*record.tasks] == ["words", "own"]
    assert "written: evaluation/lengths.json" in result.stderr.replace("\\", "/")


def test_associations_have_their_groups_intervals_and_p(use: Callable, tmp_path: Path) -> None:
    words = {"targ1": ["aa", "aaa"], "targ2": ["a", "aaaaa"], "attr1": ["b"], "attr2": ["b" * 9]}
    groups = {name: {"category": name, "examples": some} for name, some in words.items()}
    (tmp_path / "mine.json").write_text(json.dumps(groups), encoding="utf-8")
    result = use("evaluate", MODEL, "--weat", "mine.json", "--no-cache", "--out", "r.json")
    assert result.exit_code == 0, result.stderr
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert [line[0] for line in lines] == ["task", "mine", "task", "mine"]
    assert lines[2][1:] == ["targets", "attributes", "effect size d", "95 % interval", "p"]
    assert lines[3][1:3] == ["targ1 / targ2", "attr1 / attr2"]
    scores = EvaluationRecord.read(tmp_path / "r.json").tasks["mine"]["scores"]
    effect, low, high = (scores[f"effect_size{end}"] for end in ("", "_low", "_high"))
    assert lines[3][3:] == [f"{effect:.2f}", f"{low:.2f} to {high:.2f}", f"{scores['p_value']:.4f}"]
    many = {"targ1": ["a"] * 10, "targ2": ["aaaaa"] * 10, "attr1": ["b"], "attr2": ["b" * 9]}
    groups = {name: {"category": name, "examples": some} for name, some in many.items()}
    (tmp_path / "mine.json").write_text(json.dumps(groups), encoding="utf-8")
    result = use("evaluate", MODEL, "--weat", "mine.json", "--no-cache", "--out", "r.json")
    assert EvaluationRecord.read(tmp_path / "r.json").tasks["mine"]["scores"]["p_value"] < 5e-5
    assert result.stdout.splitlines()[3].endswith("\t< 0.0001")
    twice = use("evaluate", MODEL, "--weat", "mine.json", "--weat", "mine.json")
    assert "expected different names, received two mine" in twice.stderr


def test_json_is_the_record(use: Callable, tmp_path: Path) -> None:
    result = use(
        *("evaluate", MODEL, "--tasks", "toys", "--data", "data"),
        *("--out", "sub/mine.json", "--json"),
    )
    printed = json.loads(result.stdout)
    written = json.loads((tmp_path / "sub" / "mine.json").read_text(encoding="utf-8"))
    assert {"format": 1, **printed} == written
    assert printed["skipped"] == {"rare": printed["skipped"]["rare"]}
    assert "https://example.org/rare" in printed["skipped"]["rare"]


def test_a_record_names_no_folder_of_this_machine(use: Callable, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    result = use("evaluate", MODEL, "--tasks", "toys", "--data", str(folder), "--json")
    (reason,) = json.loads(result.stdout)["skipped"].values()
    assert "in DATA or up to" in reason
    assert str(folder) in result.stderr, "on the screen it helps"
    result = use("evaluate", MODEL, "--tasks", "toys", "--data", ".", "--json")
    (reason,) = json.loads(result.stdout)["skipped"].values()
    assert reason.startswith("Rare: expected rare.txt in DATA or up to two folders deeper, found")


def test_groups_leave_out_what_is_missing_and_say_how_to_get_it(use: Callable) -> None:
    result = use("evaluate", MODEL, "--tasks", "toys,some", "--data", "data")
    assert result.exit_code == 0
    assert [line.split("\t")[0] for line in result.stdout.splitlines()] == ["task", "words", "any"]
    news = [line for line in result.stderr.splitlines() if line.startswith("skipped")]
    assert news == [
        "skipped rare: Rare: expected rare.txt in data or up to two folders deeper, found none. "
        "Get it from https://example.org/rare."
    ]


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (("--tasks", "own,rare", "--data", "data"), "rare: Rare: expected rare.txt in data"),
        (("--tasks", "own,words"), "words: expected a data folder, received none"),
        (("--tasks", "toys"), "words: expected a data folder"),
        (("--data", "nowhere"), "nowhere: expected a folder"),
    ],
)
def test_missing_data_of_a_named_task_is_an_error_before_any_work(
    use: Callable, own_runs: list[int], tasks: tuple[str, ...], message: str
) -> None:
    # The missing model would be another error, but it is not even looked at.
    result = use("evaluate", "absent.py:Model", *tasks)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert own_runs == []


def test_an_interrupted_run_goes_on(use: Callable, tmp_path: Path, own_runs: list[int]) -> None:
    command = ("evaluate", MODEL, "--tasks", "words,stopped,own", "--data", "data")
    first = use(*command)
    assert first.exit_code == 130
    assert "1 of 3: words: mean 1.5000" in first.stderr
    cache = Path("evaluation", "cache")
    assert first.stderr.endswith(
        f"interrupted after 1 of 3 tasks; their results are in {cache}; "
        "the same command continues\n"
    )
    assert first.stdout == ""
    assert not (tmp_path / "evaluation" / "lengths.json").exists()

    again = use(*command)
    assert again.exit_code == 0
    assert "1 of 3: words: mean 1.5000 (from the cache)" in again.stderr
    assert [line.split("\t")[0] for line in again.stdout.splitlines()[1:]] == [
        *("words", "stopped", "own")
    ]
    assert own_runs == [1111]
    assert use(*command, "--no-cache").exit_code == 0
    assert own_runs == [1111, 1111]
    assert use(*command, "--cache", "other").exit_code == 0
    assert own_runs == [1111] * 3
    assert (tmp_path / "other").is_dir()


def test_objects_without_identity_are_not_kept(use: Callable, tmp_path: Path) -> None:
    """A function gives the object; the module is found in the current folder."""
    ready = use("evaluate", "encoders.py:ready", "--tasks", "own", "--no-cache")
    assert ready.stdout.splitlines()[1].split("\t")[3] == "4.0000", "it is not called"
    model = "encoders:made"
    result = use("evaluate", model, "--tasks", "own")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[1].split("\t")[3] == "7.0000"
    assert "lengths has no attribute identity: its results are not cached" in result.stderr
    assert not (tmp_path / "evaluation" / "cache").exists()


def test_batch_size_reaches_encode_where_it_is_taken(use: Callable, fake: FakeEncoder) -> None:
    result = use("evaluate", "encoders.py:made", "--tasks", "own", "--batch-size", "9")
    assert result.stdout.splitlines()[1].split("\t")[3] == "9.0000"
    result = use("evaluate", MODEL, "--tasks", "own", "--batch-size", "9")
    assert result.exit_code == 1
    assert "batch_size" in result.stderr
    assert use("evaluate", "bundled", "--tasks", "own", "--batch-size", "9").exit_code == 0
    assert fake.batch_sizes == [9]


def test_the_prompt_is_put_before_each_text_and_its_results_are_kept_apart(
    use: Callable, fake: FakeEncoder, tmp_path: Path
) -> None:
    fake.prompts, fake.default_prompt_name = {"query": "q: ", "usual": "u: "}, "usual"
    for options, encoded, identity in (
        ([], ["u: abcd"], "0 with the prompt 'u: '"),
        (["--prompt-name", "query"], ["q: abcd"], "0 with the prompt 'q: '"),
        (["--prompt", "q: "], [], "0 with the prompt 'q: '"),
        (["--prompt", ""], ["abcd"], "0 with the prompt ''"),
        (["--prompt-name", "usual"], [], "0 with the prompt 'u: '"),
    ):
        fake.encoded.clear()
        result = use("evaluate", "bundled", "--tasks", "own", *options)
        assert result.exit_code == 0, result.stderr
        assert fake.encoded == encoded
        record = EvaluationRecord.read(tmp_path / "evaluation" / "fake.json")
        assert record.model["identity"] == identity
    # The same weights in a folder with another default prompt.
    fake.prompts["usual"] = "v: "
    fake.encoded.clear()
    assert use("evaluate", "bundled", "--tasks", "own").exit_code == 0
    assert fake.encoded == ["v: abcd"]
    fake.prompts["usual"] = "u: "
    refused = use("evaluate", "bundled", "--tasks", "own", "--prompt-name", "passage")
    assert refused.exit_code == 2
    assert "the model's prompts, ['query', 'usual']" in refused.stderr


def test_the_prompt_reaches_encode_where_it_is_taken(use: Callable, tmp_path: Path) -> None:
    prompt = ("--prompt", "q: ")
    result = use("evaluate", "encoders.py:Prompted", "--tasks", "own", *prompt)
    assert result.stdout.splitlines()[1].split("\t")[3] == "7.0000"
    record = EvaluationRecord.read(tmp_path / "evaluation" / "lengths.json")
    assert record.model["identity"] == "v1 with the prompt 'q: '"
    use("evaluate", "encoders.py:Usual", "--tasks", "own")
    record = EvaluationRecord.read(tmp_path / "evaluation" / "lengths.json")
    assert record.model["identity"] == "v1 with the prompt 'u: '"
    # The name of a prompt is not its text.
    for options, score in ((("--prompt-name", "q: "), "11.0000"), (prompt, "7.0000")):
        result = use("evaluate", "encoders.py:Prompted", "--tasks", "own", *options)
        assert result.stdout.splitlines()[1].split("\t")[3] == score
    for options in (prompt, ("--prompt-name", "query")):
        refused = use("evaluate", MODEL, "--tasks", "own", "--no-cache", *options)
        assert refused.exit_code == 1
        assert options[0][2:].replace("-", "_") in refused.stderr


def test_texts_that_the_model_cuts_are_told_once(use: Callable, fake: FakeEncoder) -> None:
    fake.max_length = 2
    result = use("evaluate", "bundled", "--tasks", "own,words", "--data", "data")
    assert result.exit_code == 0, result.stderr
    told = [line for line in result.stderr.splitlines() if "tokens" in line]
    assert told == ["2 of 3 texts are longer than 2 tokens; the rest was not read"]


def test_results_are_added_to_the_record(
    use: Callable, tmp_path: Path, own_runs: list[int]
) -> None:
    command = ("evaluate", MODEL, "--data", "data", "--no-cache", "--tasks")
    file = tmp_path / "evaluation" / "lengths.json"
    assert use(*command, "own").exit_code == 0
    first = EvaluationRecord.read(file).tasks["own"]
    assert use(*command, "words").exit_code == 0
    assert {*(merged := EvaluationRecord.read(file).tasks)} == {"own", "words"}
    assert merged["own"] == first
    assert own_runs == [1111]
    assert use(*command, "own").exit_code == 0
    again = EvaluationRecord.read(file).tasks
    assert again["words"] == merged["words"]
    assert own_runs == [1111, 1111]


def test_a_task_that_ran_is_no_longer_skipped_or_failed() -> None:
    record = EvaluationRecord(
        model={"name": "toy", "identity": "1", "dimension": 8},
        created="2026-01-01",
        versions={},
        command="",
        seed=1,
        tasks={"a": {"seconds": 1}},
        skipped={"b": "no data", "c": "no data"},
        failed={"d": "ValueError"},
    )
    later = dataclasses.replace(
        record,
        model={"name": "toy", "identity": "1", "dimension": None},
        tasks={"b": {"seconds": 2}, "d": {"seconds": 3}},
        skipped={"a": "no data", "e": "no data"},
        failed={},
    )
    merged = record.merged(later)
    assert {*merged.tasks} == {"a", "b", "d"}
    assert (merged.skipped, merged.failed) == ({"c": "no data", "e": "no data"}, {})
    assert merged.model["dimension"] == 8


def test_a_record_of_more_tasks_is_not_replaced(
    use: Callable, tmp_path: Path, own_runs: list[int]
) -> None:
    command = ("evaluate", MODEL, "--data", "data", "--no-cache", "--tasks")
    assert use(*command, "own,words").exit_code == 0
    file = tmp_path / "evaluation" / "lengths.json"
    before = file.read_text(encoding="utf-8")
    refused = use(*command, "own", "--seed", "2")
    assert refused.exit_code == 1
    assert "the results of words would be lost" in refused.stderr
    assert file.read_text(encoding="utf-8") == before
    assert own_runs == [1111], "refused before any work"
    assert use(*command, "own", "--out", "other.json").exit_code == 0
    assert use(*command, "words,own,any").exit_code == 0
    assert [*EvaluationRecord.read(file).tasks] == ["words", "any", "own"]
    file.write_text("a letter", encoding="utf-8")
    refused = use(*command, "all")
    assert "lengths.json: $: expected JSON" in refused.stderr
    assert file.read_text(encoding="utf-8") == "a letter"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("absent.py:Model", "absent.py: expected a Python file, found none"),
        ("absent.module:Model", "absent.module could not be imported (ModuleNotFoundError"),
        ("encoders.py:Absent", "encoders.py:Absent: expected an object with encode"),
        ("encoders.py:needs", "or a function that returns one (TypeError: needs() missing 1"),
        ("encoders.py:fails", "(RuntimeError: no weights)"),
        ("encoders.py:empty", "expected an object with encode(list of str) → array"),
        ("absent", "Expected a model, found none."),
    ],
)
def test_models_that_cannot_be_had(
    use: Callable, fake: FakeEncoder, tmp_path: Path, model: str, message: str
) -> None:
    result = use("evaluate", model, "--tasks", "own")
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "evaluation").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "expected a model, or --list"),
        ((MODEL, "--tasks", "nonsense"), 2, "groups (toys, trouble, some, light, multilingual) or"),
        ((MODEL, "--no-cache", "--cache", "here"), 2, "received both"),
        ((MODEL, "--tasks", "own", "--out", "data"), 1, "found something else"),
    ],
)
def test_errors_are_one_line(
    use: Callable, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = use("evaluate", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_list_tells_what_each_task_needs_and_whether_it_is_there(use: Callable) -> None:
    result = use("evaluate", "--list", "--data", "data")
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    columns = ["task", "title", "group", "what it computes", "needs", "there", "from", "licence"]
    assert rows[0] == columns
    by_name = {row[0]: row[1:] for row in rows[1:]}
    nowhere = "nowhere: a test makes it"
    assert by_name["words"] == [
        *("Words", "toys", "the mean of all numbers", "words", "yes", nowhere, "not stated")
    ]
    assert by_name["rare"][3:] == ["Rare", "no", "https://example.org/rare", "free"]
    assert by_name["own"][3:] == ["nothing", "yes", "the package", ""]


def test_list_without_data_and_as_json(use: Callable) -> None:
    rows = json.loads(use("evaluate", "--list", "--tasks", "toys,own", "--json").stdout)
    assert [(row["task"], row["there"]) for row in rows] == [
        *(("words", "unknown"), ("rare", "unknown"), ("own", "yes"))
    ]


def test_a_terminal_gets_an_overview_and_cards_of_a_group(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_tasks("all", tmp_path / "data", as_json=False)
    overview = capsys.readouterr()
    assert re.search(r"^task +.*\n─+$", re.sub(r"\x1b\[[0-9;]*m", "", overview.out), re.MULTILINE)
    assert "example.org" not in overview.out
    assert "--list --tasks GROUP also shows" in overview.err
    print_tasks("toys", tmp_path / "data", as_json=False)
    cards = capsys.readouterr()
    assert "https://example.org/rare" in cards.out
    assert cards.err == ""


@pytest.fixture
def screen() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80)


def test_bars_name_the_task_and_each_score_is_printed(
    screen: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    with Bars(console=screen, auto_refresh=False) as bars:
        progress = EvaluationProgress(bars)
        progress.started(words_task(), 2, 5)
        assert (bars.tasks[0].description, bars.tasks[0].completed) == ("Words", 1)
        assert progress.done == 0
        result = {"main": "mean", "scores": {"mean": 0.25}, "seconds": 1.26}
        progress.finished("words", result, cached=False)
        progress.finished("more", result | {"scores": {"mean": None}}, cached=True)
        assert progress.done == 2
    assert capsys.readouterr().err.splitlines() == [
        "1 of 5: words: mean 0.2500 (1.3 s)",
        "2 of 5: more: mean undefined (from the cache)",
    ]


@pytest.mark.parametrize(
    ("prompt", "sides"), [(None, {"query": "q: ", "document": "d: "}), ("", {})]
)
def test_retrieval_gets_the_prompts_of_both_sides(
    use: Callable, monkeypatch: pytest.MonkeyPatch, prompt: str | None, sides: dict[str, str]
) -> None:
    given: list[dict[str, str]] = []

    def score(context: TaskContext, data: None) -> TaskResult:
        given.append(dict(context.prompts))
        return TaskResult("first", {"first": 1.0}, {"texts": 1})

    task = EvaluationTask("sides", "own", "Sides", "The prompts of both sides", score=score)
    monkeypatch.setattr("use_st5.evaluation.task.all_tasks", lambda: {"sides": task})
    options = () if prompt is None else ("--prompt", prompt)
    result = use("evaluate", "encoders.py:Sides", "--tasks", "sides", "--no-cache", *options)
    assert given == [sides], result.stderr
