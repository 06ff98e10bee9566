"""Prompts of a sentence-transformers folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from use_st5.convert.prompts import Prompts, read_prompts


def write(folder: Path, settings: Any, pooling: Any = None) -> Path:
    (folder / "1_Pooling").mkdir()
    modules = [{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"}]
    for name, value in {
        "modules.json": modules,
        "1_Pooling/config.json": pooling or {},
        "config_sentence_transformers.json": settings,
    }.items():
        (folder / name).write_text(json.dumps(value))
    return folder


def test_what_is_read(tmp_path: Path) -> None:
    assert read_prompts(tmp_path) == Prompts({}, None)
    settings = {"prompts": {"query": "q: ", "document": None}, "default_prompt_name": "query"}
    write(tmp_path, {**settings, "__version__": {}, "similarity_fn_name": "cosine"})
    assert read_prompts(tmp_path) == Prompts({"query": "q: ", "document": ""}, "query")


@pytest.mark.parametrize(
    ("settings", "pooling", "said"),
    [
        ({"prompts": {"a": 3}}, {}, "expected str . null, received int"),
        ({"default_prompt_name": "a"}, {}, "default_prompt_name to be one of .*'a'"),
        ({"truncate_dim": 64}, {}, r"encode\(texts, truncate_dim=64\)"),
        ({}, {"include_prompt": False}, "1_Pooling.config.json: expected include_prompt to be tr"),
    ],
)
def test_what_is_refused(tmp_path: Path, settings: Any, pooling: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_prompts(write(tmp_path, settings, pooling))
