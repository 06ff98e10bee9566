"""`use-st5 similarity`: matrices, pairs, the closest, pictures."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import use_st5

TEXTS = ["How old are you?", "What is your age?", "The train is late."]


def test_matrix_of_arguments_as_json(use: Callable, fake: Any) -> None:
    result = use("similarity", *TEXTS, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["model"], found["metric"], found["texts"]) == ("fake", "cosine", TEXTS)
    np.testing.assert_allclose(found["similarity"], fake.similarity(TEXTS, metric="cosine"))


def test_matrix_in_a_pipe_is_tab_separated(use: Callable, fake: Any) -> None:
    lines = use("similarity", *TEXTS).stdout.splitlines()
    assert lines[0].split("\t") == ["", "text", "1", "2", "3"]
    assert lines[1].split("\t")[:3] == ["1", TEXTS[0], "1.000"]
    assert len(lines) == 4


def test_file_of_many_texts_shows_the_closest_other(
    use: Callable, fake: Any, tmp_path: Path
) -> None:
    texts = [f"text {number}" for number in range(11)] + ["text 4"]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    lines = use("similarity", "--file", "texts.txt").stdout.splitlines()
    assert len(lines) == 13
    # The same text twice: each is the other's closest, not its own.
    assert lines[5].split("\t") == ["1.000", "text 4", "text 4"]
    assert lines[12].split("\t") == ["1.000", "text 4", "text 4"]
    assert lines[1].split("\t")[1] == "text 0"
    assert lines[1].split("\t")[2] != "text 0"


def test_pairs_row_by_row_and_every_metric(use: Callable, fake: Any, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(f"same\tsame\n{TEXTS[0]}\t{TEXTS[1]}\n")
    left, right = fake.encode(["same", TEXTS[0]]), fake.encode(["same", TEXTS[1]])
    cosines = (left * right).sum(axis=1)
    expected = {
        "cosine": cosines,
        "dot": cosines,
        "angular": 1 - np.arccos(cosines.clip(-1, 1)) / np.pi,
    }
    for metric, scores in expected.items():
        result = use("similarity", "--pairs", "pairs.tsv", "--metric", metric, "--json")
        assert result.exit_code == 0, result.stderr
        pairs = json.loads(result.stdout)["pairs"]
        np.testing.assert_allclose([pair["similarity"] for pair in pairs], scores, atol=1e-3)
        assert pairs[1]["texts"] == TEXTS[:2]
    lines = use("similarity", "-p", "-", input="same\tsame\n").stdout.splitlines()
    assert lines == ["cosine\tfirst\tsecond", "1.0000\tsame\tsame"]


def test_an_engine_without_tensorflow_is_the_default(
    use: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, used = use_st5.load, []

    def recorded(name: str, *, backend: str) -> Any:
        used.append(backend)
        if name != "use_dan_en" and backend != "tensorflow":
            raise ValueError("no engine")
        return load("use_dan_en", backend=backend)

    monkeypatch.setattr(use_st5, "load", recorded)
    choices = [("-m", "use_dan_en"), ("--backend", "tensorflow"), ("-m", "without an engine")]
    scores = [
        json.loads(use("similarity", *TEXTS, "--json", *choice).stdout)["similarity"]
        for choice in choices
    ]
    assert used == ["onnx", "tensorflow", "onnx", "tensorflow"]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)
    assert scores[1] == scores[2]


def test_texts_that_were_cut_are_counted(use: Callable, fake: Any) -> None:
    fake.max_length = 16
    result = use("similarity", "How old are you?", *TEXTS[1:], "--json")
    assert result.stderr == "2 of 3 texts are longer than 16 tokens; the rest was not read\n"
    result = use("similarity", "--pairs", "-", input="How old are you?\tWhat is your age?\na\tb\n")
    assert result.stderr.startswith("1 of 4 texts is longer than 16 tokens")


def test_heat_map_is_written(use: Callable, fake: Any, tmp_path: Path) -> None:
    (tmp_path / ".map.use_st5-0123456789ab.png").write_bytes(b"of a run that was killed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = use("similarity", *TEXTS, "日本語", "--heatmap", "map.png")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["map.png"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "expected one of texts, --file and --pairs"),
        (("only one",), 1, "expected 2 to 5,000 texts, received 1"),
        (("--pairs", "-", "--heatmap", "x.png"), 2, "--heatmap"),
        (("--pairs", "-"), 1, "-:2: expected 1 tab"),
        (("a", "b", "--heatmap", "map.xyz"), 1, "xyz"),
        ((*"abc" * 21, "--heatmap", "map.png"), 1, "expected 2 to 60 texts"),
    ],
)
def test_errors_are_one_line(
    use: Callable, fake: Any, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = use("similarity", *arguments, input="a\tb\nno tab\n")
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_texts_and_pairs_get_the_prompt(use: Callable, fake: Any, tmp_path: Path) -> None:
    fake.prompts = {"query": "q: "}
    assert use("similarity", "a", "b", "--prompt-name", "query").exit_code == 0
    assert fake.encoded == ["q: a", "q: b"]
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    fake.encoded.clear()
    assert use("similarity", "--pairs", "pairs.tsv", "--prompt", "p: ").exit_code == 0
    assert fake.encoded == ["p: a", "p: b"]
