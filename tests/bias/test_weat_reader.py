from __future__ import annotations

import json
from pathlib import Path

import pytest

from use_st5.bias.weat_reader import read_weat
from use_st5.bias.weat_test import WEATTest


def test_read(tmp_path: Path) -> None:
    groups = zip(("targ1", "targ2", "attr1", "attr2"), "XYAB", "pqrs", strict=True)
    content = {key: {"category": name, "examples": [text, "ü"]} for key, name, text in groups}
    path = tmp_path / "weat0.jsonl"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    expected = WEATTest("weat0", ("p", "ü"), ("q", "ü"), ("r", "ü"), ("s", "ü"))
    assert read_weat(path) == read_weat(str(path)) == expected
    text_alone = {**content, "attr2": {"category": "S", "examples": "a text is no list"}}
    numbers = {**content, "attr2": {"category": "S", "examples": [1, 2]}}
    unnamed = {**content, "attr2": {"category": None, "examples": ["s"]}}
    others = [json.dumps(one) for one in (text_alone, numbers, unnamed, {**content, "attr2": []})]
    for wrong in ("", "{", "[]", '{"targ1": 1}', "\0", "[" * 100_000, *others):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(ValueError, match=r"weat0.jsonl: \$.*: expected .*sent-bias"):
            read_weat(path)
    uneven = {**content, "targ1": {"category": "X", "examples": ["p"]}}
    empty = {**content, "attr1": {"category": "A", "examples": []}}
    for refused in (uneven, empty):
        path.write_text(json.dumps(refused), encoding="utf-8")
        with pytest.raises(ValueError, match=r"weat0.jsonl: .*expected .*texts in .*sent-bias"):
            read_weat(path)
    for content in (b"\xff", b" " * (2**24 + 1)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"weat0.jsonl: .*expected .*sent-bias"):
            read_weat(path)
    for absent in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(OSError, match="absent.jsonl|test_read"):
            read_weat(absent)
