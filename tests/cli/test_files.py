"""Targets that commands refuse to write to, before any work and in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import use_st5
from tests.evaluation.toys import BagOfWords, words_task
from use_st5.cli import convert, export, models
from use_st5.evaluation.runner import evaluate

WRITERS = [
    ("embed", "texts.txt", "-o", "target", "--format", "npy", "--overwrite"),
    ("evaluate", "use_dan_en", "--tasks", "weat", "--out", "target"),
    ("convert", "texts.txt", "--to", "target", "--overwrite"),
    ("export", "use_dan_en", "--to", "target", "--overwrite"),
    ("report", "record.json", "--out", "folder"),
]


@pytest.fixture
def no_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts and a record, where the test fails if a command begins to work."""
    (tmp_path / "texts.txt").write_text("one\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("a b\nc\n", encoding="utf-8")
    evaluate(BagOfWords(), [words_task()], tmp_path).write(tmp_path / "record.json")

    def work(*_: Any, **__: Any) -> None:
        raise AssertionError("the command began to work")

    for module in (models, export):
        monkeypatch.setattr(module, "start_tensorflow", work)
    for module in (convert, export):
        monkeypatch.setattr(module, "start_keras", work)
    monkeypatch.setattr(use_st5, "load", work, raising=False)
    monkeypatch.setattr("use_st5.evaluation.report.write_report", work)
    return tmp_path


@pytest.mark.process
def test_what_another_process_writes_is_refused_before_any_work(
    use: Callable, no_work: Path, written_elsewhere: Callable[..., int]
) -> None:
    ids = {
        "target": written_elsewhere(no_work / "target", inside=False),
        "folder": written_elsewhere(no_work / "folder", inside=True),
    }
    for arguments in WRITERS:
        result = use(*arguments)
        assert result.exit_code == 1, arguments
        name = "folder" if "folder" in arguments else "target"
        said = f"{no_work / name} is being written by process {ids[name]} "
        assert said in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", WRITERS)
def test_what_cannot_be_written_is_refused_before_any_work(
    use: Callable, no_work: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """A file where a folder must be, a device, and a folder that may not be written to."""
    at = arguments.index("target" if "target" in arguments else "folder")

    def to(path: str) -> Any:
        return use(*arguments[:at], path, *arguments[at + 1 :])

    before = sorted(no_work.rglob("*"))
    for result in (to("texts.txt/x"), to("/dev/null")):
        assert result.exit_code == 1, result.stderr
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != no_work)
    result = to("new")
    assert f"found no permission: {no_work}" in result.stderr
    assert sorted(no_work.rglob("*")) == before
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".", "found a folder: ."),
        ("map.txt", ".png"),
        ("texts.txt/map.png", "found a file: "),
        ("/dev/null", "found a device or a pipe: /dev/null"),
    ],
)
def test_a_heat_map_is_refused_before_any_work(
    use: Callable, no_work: Path, path: str, message: str
) -> None:
    pytest.importorskip("matplotlib")
    result = use("similarity", "a", "b", "--heatmap", path)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_rows_of_two_processes_do_not_mix(use: Callable, fake: Any, tmp_path: Path) -> None:
    """Without a lock, another process could append to the unfinished work of this one."""
    texts = [f"text {number}" for number in range(5)]
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    encode = fake.encode

    def meddled(sentences: list[str], **options: Any) -> np.ndarray:
        with (tmp_path / "v.npy.partial" / "data").open("ab") as data:
            data.write(b"row of another")
        return encode(sentences, **options)

    fake.encode = meddled
    for form in ("npy", "jsonl"):
        result = use("embed", "texts.txt", "-o", "v.npy", "--format", form)
        assert result.exit_code == 1
        assert "found" in result.stderr
        assert "another process changed it" in result.stderr
        assert result.stderr.count("\n") == 1 + (form == "jsonl")  # it says what it throws away
        assert not (tmp_path / "v.npy").exists()
