"""The model card of a training."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from use_st5.training.arguments import make_arguments
from use_st5.training.model_card import card


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
        columns={"anchor": name},
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
        arguments=make_arguments(prompts=name),
    )
    history: Any = SimpleNamespace(best_step=1, step=2, evaluations=[1])
    scores = {use: {name: 0.5} for use in ("before", "after")}
    text = card(plan, history, scores, scores, Path("somewhere", name))
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    parts = [part for token in tokens for part in (token, *(token.children or ()))]
    assert not [part for part in parts if part.type.startswith(("html", "image", "link"))]
    cells = [token.type for token in tokens].count("td_open")
    assert cells == 6 + 3 + 3
    shown = " ".join(name.split())
    inline = [
        "".join(part.content for part in token.children or ())
        for token in tokens
        if token.type == "inline"
    ]
    assert inline[0] == shown
    assert inline.count(shown) == 5
    python, settings = (token for token in tokens if token.type == "fence")
    (call,) = (
        node
        for node in ast.walk(ast.parse(python.content))
        if isinstance(node, ast.Constant) and node.value == name
    )
    assert json.loads(settings.content) == {"prompts": name}
