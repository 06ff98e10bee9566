"""`use-st5 rank`: files, standard input, tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from use_st5.cli import models
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.encode.token_limit import TokenLimit


@pytest.fixture(autouse=True)
def shared_letters(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A cross-encoder that counts shared letters; returns the list of its batch sizes."""
    sizes: list[int] = []

    def cross_encoder(first: list[str], second: list[str]) -> np.ndarray:
        sizes.append(len(first))
        shared = [len({*a} & {*b}) for a, b in zip(first, second, strict=True)]
        return np.array(shared, np.float32)

    def load(folder: str) -> CrossEncoder:
        if folder == "absent":
            raise FileNotFoundError("Expected a model, found none.")
        # The model reads at most six letters of a pair.
        limit = TokenLimit(6, lambda first, second: tf.strings.length(first + second))
        return CrossEncoder(cross_encoder, name=folder, limit=limit)

    monkeypatch.setattr(models, "start_tensorflow", lambda: None)
    monkeypatch.setattr(CrossEncoder, "load", load)
    return sizes


def test_texts_of_files_with_their_places(use: Callable, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("xyz\nabx\n")
    (tmp_path / "b.txt").write_text("abc\n")
    lines = use("rank", "cross_encoder", "--query", "abc", "a.txt", "b.txt").stdout.splitlines()
    assert lines[0].split("\t") == ["score", "place", "text"]
    scores = [1 / (1 + np.exp(-shared)) for shared in (3, 2, 0)]
    assert [line.split("\t") for line in lines[1:]] == [
        [f"{scores[0]:.4f}", "b.txt:1", "abc"],
        [f"{scores[1]:.4f}", "a.txt:2", "abx"],
        [f"{scores[2]:.4f}", "a.txt:1", "xyz"],
    ]


def test_pairs_that_were_cut_are_counted(use: Callable) -> None:
    result = use("rank", "cross_encoder", "-q", "abc", input="abc\nabcd\nx\nyyyyy\n")
    assert result.stderr == (
        "2 of 4 pairs of the query and a text are longer than 6 tokens; the rest was not read\n"
    )
    assert use("rank", "cross_encoder", "-q", "abc", input="abc\n").stderr == ""


def test_standard_input_as_json(use: Callable, shared_letters: list[int]) -> None:
    options = ("-q", "abc", "--top-k", "2", "--batch-size", "2", "--json")
    for file in ((), ("-",)):
        result = use("rank", "cross_encoder", *file, *options, input="b\n\nabc, née\nb\n")
        assert result.exit_code == 0, result.stderr
        found = json.loads(result.stdout)
        assert (found["model"], found["query"], found["texts"]) == ("cross_encoder", "abc", 4)
        assert [(each["line"], each["text"]) for each in found["ranked"]] == [
            (3, "abc, née"),
            (1, "b"),
        ]
        assert found["ranked"][0]["file"] == "-"
        assert found["ranked"][0]["score"] == pytest.approx(1 / (1 + np.exp(-3)))
    assert shared_letters == [2, 2, 2, 2]


def test_what_a_search_prints_keeps_its_ids(use: Callable) -> None:
    found = "score\tline\tid\tyear\ttext\n0.9\t7\t007\t1990\txyz\n0.8\t3\t7\t\tabc, née\n"
    options = ("-q", "abc", "--column", "text")
    table = use("rank", "cross_encoder", *options, "--fields", "year", input=found)
    assert table.exit_code == 0, table.stderr
    rows = [line.split("\t")[1:] for line in table.stdout.splitlines()]
    assert rows == [
        ["place", "id", "year", "text"],
        ["-:2", "7", "", "abc, née"],
        ["-:1", "007", "1990", "xyz"],
    ]
    ranked = json.loads(use("rank", "cross_encoder", *options, "--json", input=found).stdout)[
        "ranked"
    ]
    assert ranked[1]["fields"] == {"score": 0.9, "line": 7, "id": "007", "year": 1990}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("cross_encoder",), 2, "--query"),
        (("cross_encoder", "-q", "a", "none.txt"), 1, "found none"),
        (("absent", "-q", "a"), 1, "found none"),
    ],
)
def test_errors_are_one_line(
    use: Callable, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = use("rank", *arguments, input="a\n")
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1)
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
