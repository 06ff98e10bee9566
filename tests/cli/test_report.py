"""`use-st5 report`: reading records and naming them; the report has tests of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.evaluation.toys import BagOfWords, words_task
from use_st5.evaluation.runner import EvaluationRecord, evaluate


@pytest.fixture(autouse=True)
def records(tmp_path: Path) -> None:
    """Records `a.json`, `b.json` and `a=b.json` of one model, and two files that are no records."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "words.txt").write_text("a b\nc\n", encoding="utf-8")
    for seed, name in enumerate(("a.json", "b.json", "a=b.json")):
        evaluate(BagOfWords(), [words_task()], data, seed=seed).write(tmp_path / name)
    (tmp_path / "later.json").write_text('{"format": 99}', encoding="utf-8")
    (tmp_path / "text.json").write_text("text", encoding="utf-8")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """The arguments of the calls of `write_report`."""
    given: list[tuple] = []

    def write_report(
        records: list[EvaluationRecord], folder: Path, *, baseline: str | None
    ) -> list[Path]:
        given.append(([(each.model["name"], each.seed) for each in records], folder, baseline))
        return [folder / "report.md"]

    monkeypatch.setattr("use_st5.evaluation.report.write_report", write_report)
    return given


def test_records_are_read_in_order_and_files_printed(use: Callable, written: list) -> None:
    result = use("report", "new=b.json", "a.json")
    assert result.exit_code == 0, result.stderr
    assert written == [([("new", 1), ("bag_of_words", 0)], Path("report"), None)]
    assert result.stdout.splitlines() == [str(Path("report", "report.md"))]
    assert result.stderr == ""


def test_names_and_files_that_hold_an_equals_sign(use: Callable, written: list) -> None:
    assert (
        use("report", "a=b.json", "x=a=b.json", "--out", "page", "--baseline", "x").exit_code == 0
    )
    assert written == [([("bag_of_words", 2), ("x", 2)], Path("page"), "x")]


def test_a_real_report(use: Callable, tmp_path: Path) -> None:
    result = use("report", "old=a.json", "b.json", "--out", "page")
    assert result.exit_code == 0, result.stderr
    for line in result.stdout.splitlines():
        assert (tmp_path / line).is_file()
    text = (tmp_path / "page" / "report.md").read_text(encoding="utf-8")
    assert "\n| old |" in text
    assert "\n| bag_of_words |" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "Missing argument"),
        (("absent.json",), 1, "of `use-st5 evaluate`, found none"),
        (("name=absent.json",), 1, "found none"),
        (("text.json",), 1, "Give a record that `use-st5 evaluate` wrote."),
        (("later.json",), 1, "later.json: $.format: expected 1, received 99"),
        (("a.json", "b.json"), 1, "expected different names, received bag_of_words in a.json"),
        (("x=a.json", "x=b.json"), 1, "received x in a.json and b.json"),
        (("a.json", "--out", "b.json"), 1, "b.json"),
    ],
)
def test_errors_are_one_line(
    use: Callable, written: list, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = use("report", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert written == []
