"""`use-st5 classify`: files, standard input, tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import FakeEncoder
from use_st5.cli import classify
from use_st5.training.classifier import Classifier


class ByLength(Classifier):
    """Texts of fewer than three letters are short, and longer ones are long, by three to one."""

    encoder = FakeEncoder()

    def probabilities(self, texts: list[str], **options: object) -> np.ndarray:
        assert options["on_truncation"] == "ignore", "cut texts are counted, and said once"
        rows = [(0.75, 0.25) if len(text) < 3 else (0.25, 0.75) for text in texts]
        return np.array(rows, np.float32)


@pytest.fixture(autouse=True)
def by_length(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """A fake classifier; returns the list of encoders that were requested."""
    asked: list[str | None] = []

    def load(path: str, *, encoder: str | None = None) -> Classifier:
        if path == "absent":
            raise FileNotFoundError("expected a file, found none.")
        asked.append(encoder)
        return ByLength(Path(path), "fake", ["short", "long"], {})

    monkeypatch.setattr(classify, "start_tensorflow", lambda: None)
    monkeypatch.setattr(Classifier, "load", load)
    monkeypatch.setattr(ByLength.encoder, "max_length", None)
    return asked


def test_the_lines_of_files(
    use: Callable, tmp_path: Path, by_length: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classify, "_ROWS", 2)
    (tmp_path / "a.txt").write_text("ab\nabcd\n\n")
    (tmp_path / "b.txt").write_text("näh\n")
    result = use("classify", "c.keras", "a.txt", "b.txt", "--encoder", "moved")
    assert result.exit_code == 0, result.stderr
    assert [line.split("\t") for line in result.stdout.splitlines()] == [
        ["label", "probability", "text"],
        ["short", "0.7500", "ab"],
        ["long", "0.7500", "abcd"],
        ["short", "0.7500", ""],
        ["long", "0.7500", "näh"],
    ]
    assert by_length == ["moved"]


@pytest.mark.parametrize("file", [(), ("-",)])
def test_standard_input_as_json(use: Callable, file: tuple[str, ...]) -> None:
    result = use("classify", "c.keras", *file, "--json", input="ab\nnée\n")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first == {
        "label": "short",
        "probabilities": {"short": 0.75, "long": 0.25},
        "text": "ab",
    }
    assert (second["label"], second["text"]) == ("long", "née")


def test_a_text_may_have_several_labels_or_none(
    use: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Classifier,
        "load",
        lambda path, *, encoder=None: ByLength(Path(path), "fake", ["a", "b"], {}, True),
    )
    rows = np.array([[0.9, 0.6], [0.1, 0.2]], np.float32)
    monkeypatch.setattr(ByLength, "probabilities", lambda self, texts, **options: rows)
    result = use("classify", "c.keras", input="x\ny\n")
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert lines[1:] == [["a, b", "0.9000", "x"], ["", "0.2000", "y"]]
    result = use("classify", "c.keras", "--json", input="x\ny\n")
    assert [json.loads(line)["labels"] for line in result.stdout.splitlines()] == [["a", "b"], []]


def test_texts_that_were_cut_are_counted(use: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ByLength.encoder, "max_length", 3)
    result = use("classify", "c.keras", input="abcd\nabc\nabcde\n")
    assert result.stderr == ("2 of 3 texts are longer than 3 tokens; the rest was not read\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "CLASSIFIER"),
        (("c.keras", "none.txt"), 1, "found none"),
        (("c.keras", "--batch-size", "0"), 2, "--batch-size"),
        (("absent",), 1, "found none"),
        (("c.keras",), 1, "expected texts to classify, one a line, received none"),
        (("my.v2/c.keras", "--backend", "onnx"), 1, "give --encoder FOLDER"),
    ],
)
def test_errors_are_one_line(
    use: Callable, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = use("classify", *arguments, input="")
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1)
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
