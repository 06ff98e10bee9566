"""`use-st5 data` lists the data sets; a reader refuses what is not its data set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.evaluation.toys import WORDS, words_task
from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation import task as task_module
from use_st5.evaluation.task import all_tasks
from use_st5.evaluation.translations import LANGUAGES

OTHER_TEXT = b"word " * 10
NO_UTF8 = b"caf\xe9\n" * 3
_PAIRS = "\n".join("a cat\ta dog" for _ in range(250)) + "\n"
_MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\ta\tb\n0\t3\t4\tc\td\n"
_SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    "1\ta\tb\t3.5\tNEUTRAL\n2\tc\td\t1.0\tENTAILMENT\n"
)
_GROUP = {"category": "c", "examples": ["a", "b"]}
_WEAT = json.dumps({key: _GROUP for key in ("targ1", "targ2", "attr1", "attr2")})
_JSTS = json.dumps({"sentence_pair_id": 1, "sentence1": "a", "sentence2": "b", "label": 2.5})
# Pattern of a published path → content of a small file at it; the first pattern that fits counts.
CONTENTS = {
    "*sts-*.csv": "main-news\tMSRpar\t2012\t1\t5.000\ta\tb\n",
    "*/SICK_*.txt": _SICK,
    "SST/binary/*": "a good film\t1\na bad one\t0\n",
    "SST/fine/*": "4 a good film\n0 a bad one\n",
    "TREC/*": "DESC:manner How ?\nNUM:count How many ?\n",
    "MRPC/*": _MRPC,
    "probing/*": "tr\tA\tx\ntr\tB\ty\nva\tA\tz\nte\tB\tw\n",
    "CoLA/*": "gj04\t1\t\ta sentence\ngj04\t0\t*\tno one\n",
    "SST-2/*": "sentence\tlabel\na good film\t1\n",
    "STS-B/*": "sentence1\tsentence2\tscore\na\tb\t3.0\n",
    "QQP/*": "question1\tquestion2\tis_duplicate\na\tb\t1\n",
    "MNLI/*": "sentence1\tsentence2\tgold_label\na\tb\tneutral\n",
    "QNLI/*": "question\tsentence\tlabel\n" + 1001 * "a\tb\tentailment\n",
    "RTE/*": "sentence1\tsentence2\tlabel\na\tb\tentailment\n",
    "*.jsonl": _WEAT,
    "*/STS.input.*": _PAIRS,
    "*/STS.gs.*": 250 * "3\n",
    "jsts*": _JSTS,
    "KorSTS/*": "score\tsentence1\tsentence2\n3\ta\tb\n",
    "cnsd*": "2012||a||b||3\n",
    "*/stsb-*.csv": '"a, b",c,3.0\n',
    "parallel/*": "de\ta dog\tein Hund\n",
    "xnli/dev-*": "a\tb\tneutral\n",
    "xnli/test-*": "a\tb\n",
    "KorNLI/*": "sentence1\tsentence2\tgold_label\na\tb\tneutral\n",
    "*": "a sentence\nanother one\n",  # MR, CR, SUBJ, MPQA
}


def files_of(source: DataSource) -> Iterator[tuple[str, str]]:
    """The paths and contents of a small copy, in the first of the set's places."""
    place = source.places[0]
    if source.name.startswith("STS1"):
        folder = place.partition("/")[0]
        yield f"{folder}/STS.input.x.txt", "a\tb\n"
        yield f"{folder}/STS.gs.x.txt", "2\n"
    elif source.name.startswith("BUCC"):
        yield place.replace("*", "dev"), "1\t1\n" if place.endswith("gold") else "1\ta sentence\n"
    elif source.name == "BEIR":
        yield place, '{"_id": "1", "text": "a sentence"}\n'
        yield "queries.jsonl", '{"_id": "2", "text": "a query"}\n'
        yield "qrels/test.tsv", "2\t1\t1\n"
    elif source.name == "Tatoeba":
        for code in LANGUAGES:
            for side in (code, "eng"):
                yield f"{place}/tatoeba.{code}-eng.{side}", "a sentence\n"
    else:
        yield place, next(text for end, text in CONTENTS.items() if fnmatchcase(place, end))


@pytest.fixture
def every_set(tmp_path: Path) -> dict[str, list[Path]]:
    """The files of a small copy of every data set, by its name."""
    copies: dict[str, list[Path]] = {}
    for task in all_tasks().values():
        for source in task.sources:
            for place, text in files_of(source):
                path = tmp_path / "data" / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                copies.setdefault(source.name, []).append(path)
    return copies


def unreadable(folder: Path) -> set[str]:
    """The tasks whose data cannot be read."""
    names, data = set(), DataFolder(folder)
    for name, task in all_tasks().items():
        try:
            if task.sources:
                task.read(data)
        except (OSError, ValueError):
            names.add(name)
    return names


def test_every_published_set_is_read(every_set: dict[str, list[Path]], tmp_path: Path) -> None:
    assert unreadable(tmp_path / "data") == set()


@pytest.mark.parametrize("content", [b"\x00\x01\xff\xfe", NO_UTF8, OTHER_TEXT, None])
def test_no_set_of_another_content_is_read(
    every_set: dict[str, list[Path]], tmp_path: Path, content: bytes | None
) -> None:
    """A binary file, other encodings and texts, a folder in its place."""
    for path in {path for paths in every_set.values() for path in paths}:
        path.unlink()
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content)
    # These sets accept any text as a sentence; SentEval's are read as ISO-8859-1.
    takes_all = {"mr", "cr", "subj", "mpqa"} if content in (OTHER_TEXT, NO_UTF8) else set()
    takes_all |= {"tatoeba"} if content == OTHER_TEXT else set()
    with_data = {name for name, task in all_tasks().items() if task.sources}
    assert unreadable(tmp_path / "data") == with_data - takes_all


SICK = DataSource("SICK-R test", ("sick2014/SICK_test_annotated.txt",), "Zenodo", "CC BY-NC-SA")
COLUMNS = ["data set", "found", "for", "from", "licence"]


@pytest.fixture
def toy_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups of tasks, and a folder `data` with one of their two sets."""
    tasks = (
        words_task(),
        words_task("again", group="more"),
        words_task("sick", sources=(WORDS, SICK)),
    )
    monkeypatch.setattr(task_module, "all_tasks", lambda: {task.name: task for task in tasks})
    monkeypatch.delenv("USE_ST5_DATA", raising=False)
    (tmp_path / "data" / "deeper").mkdir(parents=True)
    (tmp_path / "data" / "deeper" / "words.txt").write_text("a", encoding="utf-8")


def rows_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_sets_are_listed_once_with_what_to_do(use: Callable, toy_suite: None) -> None:
    result = use("data", "--data", "data")
    assert result.exit_code == 0
    assert rows_of(result.stdout) == [
        COLUMNS,
        ["words", "deeper/words.txt", "toys, more", "nowhere: a test makes it", "not stated"],
        ["SICK-R test", "missing", "toys", "Zenodo", "CC BY-NC-SA"],
    ]


def test_the_variable_and_no_folder(
    use: Callable, toy_suite: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [row[1] for row in rows_of(use("data").stdout)[1:]] == ["unknown", "unknown"]
    monkeypatch.setenv("USE_ST5_DATA", "data")
    assert [row[1] for row in rows_of(use("data").stdout)[1:]] == ["deeper/words.txt", "missing"]
    monkeypatch.setenv("USE_ST5_DATA", "nowhere")
    result = use("data")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: nowhere: expected a folder with data sets, found none.\n",
    )
