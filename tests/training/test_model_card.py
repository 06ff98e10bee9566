"""The card's command repeats the training: `use-st5` reads the same arguments from it."""

from __future__ import annotations

import ast
import importlib
import shlex
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from use_st5.cli import train as command
from use_st5.cli.main import app
from use_st5.training.arguments import NAMED_SETTINGS, make_arguments
from use_st5.training.model_card import card, command_line
from use_st5.training.rows import TrainingFile, read_file
from use_st5.training.train import Trained

training = importlib.import_module("use_st5.training.train")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The calls of `train` that the command line makes; nothing is trained."""
    calls: list[dict[str, Any]] = []

    def noted(model: str, files: list[str], to: str, **options: Any) -> Trained:
        calls.append({"model": model, "files": files, "to": to, **options})
        return Trained(Path("m"), Path("m.run"), {}, {}, "mrr", 0, 0)

    monkeypatch.setattr(training, "train", noted)
    monkeypatch.setattr(command, "start_keras", lambda command: None)
    return calls


def commanded(
    sources: list[TrainingFile],
    dev: Sequence[TrainingFile] = (),
    test: Sequence[TrainingFile] = (),
    **settings: Any,
) -> str:
    plan: Any = SimpleNamespace(
        start="use_dan_en",
        files=sources,
        validation=dev,
        test=test,
        arguments=make_arguments(**settings),
    )
    return command_line(plan, Path("somewhere/tuned"))


@pytest.mark.parametrize(
    "name",
    ['a"><img src=x onerror=alert(1)>.tsv', "a|b.tsv", 'm"<b>', "`a`", "a\n```\n<b>", "a\\", "_a_"],
)
def test_names_in_the_card_are_text(name: str) -> None:
    """Read by Markdown's own rules: neither HTML, nor a further column, nor broken Python."""
    from markdown_it import MarkdownIt

    source: Any = SimpleNamespace(
        name=name,
        task=SimpleNamespace(name="pairs"),
        kept=3,
        mixing_weight=None,
        content="0" * 64,
        columns_given={},
        task_given=False,
        in_memory=False,
    )
    metric = SimpleNamespace(description="a metric")
    plan: Any = SimpleNamespace(
        start=name,
        unit="step",
        monitor=f"{name} spearman",
        files=[source],
        sets=[SimpleNamespace(name=name, rows=[1], metric=metric)],
        tests=[SimpleNamespace(name=name, rows=[1], metric=metric)],
        validation=(),
        test=(),
        arguments=make_arguments(),
    )
    history: Any = SimpleNamespace(best_step=1, step=2, evaluations=[1])
    scores = {use: {name: 0.5} for use in ("before", "after")}
    text = card(plan, history, scores, scores, Path("somewhere", name))
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    parts = [part for token in tokens for part in (token, *(token.children or ()))]
    assert not [part for part in parts if part.type.startswith(("html", "image", "link"))]
    cells = [token.type for token in tokens].count("td_open")
    assert cells == 5 + 3 + 3
    shown = " ".join(name.split())
    inline = [
        "".join(part.content for part in token.children or ())
        for token in tokens
        if token.type == "inline"
    ]
    assert inline[0] == shown
    assert inline.count(shown) == 4
    python, command = (token for token in tokens if token.type == "fence")
    (call,) = (
        node
        for node in ast.walk(ast.parse(python.content))
        if isinstance(node, ast.Constant) and node.value == name
    )
    assert shlex.split(command.content)[-1] == name


def given(line: str, asked: list[dict[str, Any]]) -> dict[str, Any]:
    program, *words = shlex.split(line)
    assert program == "use-st5"
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    (found,) = asked
    return found


@pytest.mark.parametrize(
    "settings",
    [
        *({"name": name} for name in NAMED_SETTINGS),
        {"loss": {"hidden_dims": (512,), "temperature": 0.02, "bidirectional": True}},
        {"matryoshka_dimensions": (64,), "freeze": (), "learning_rate": 2 / 3 * 1e-4},
        {"freeze": ("embedding", "head"), "words": 20, "seed": 3, "precision": "int8"},
        {"teacher": "my models/cross_encoder", "keep": 0.5, "lora_rank": 4, "cycles": 3},
        {"score_range": (-1.0, 1.5), "head_init": "random"},
    ],
)
def test_the_command_of_a_card_has_the_settings(
    settings: dict[str, Any], tmp_path: Path, asked: list
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("anchor,positive\none,two\n")
    found = given(commanded([read_file(path)], **settings), asked)
    strange = {"model", "files", "to", "validation", "test", "task", "columns", "settings"}
    strange |= {"overwrite", "strategy", "batch_files", "log"}
    options = {name: value for name, value in found.items() if name not in strange}
    assert make_arguments(**options) == make_arguments(**settings)


def test_the_command_of_a_card_names_the_files(tmp_path: Path, asked: list) -> None:
    train, text, dev = (tmp_path / name for name in ("my faq.csv", "b.txt", "sts-dev.v2.csv"))
    # Without --column the anchor would be "query", whose name is known too.
    train.write_text("query,question,body\nzero,one,two\n")
    text.write_text("A line.\nAnother.\n")
    dev.write_text("sentence1,sentence2,gold\na,b,1\n")
    columns = {"anchor": "question", "positive": "body", "score": "gold"}
    sources = [
        read_file(f"{train}=0.25", columns=columns),
        read_file(text, task={str(text): "neighbours"}),
    ]
    measured = read_file(dev, columns=columns)
    found = given(commanded(sources, [measured], [measured]), asked)
    assert (found["model"], found["to"]) == ("use_dan_en", "tuned")
    assert found["files"] == [f"{train}=0.25", str(text)]
    assert (found["validation"], found["test"]) == ([str(dev)], [str(dev)])
    assert found["task"] == {str(text): "neighbours"}
    assert found["columns"] == columns
