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
    for wrong in ("{", "[]", json.dumps({**content, "attr2": []}), '{"targ1": 1}'):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(ValueError, match=r"weat0.jsonl: \$.*: expected .*sent-bias"):
            read_weat(path)
    with pytest.raises(FileNotFoundError):
        read_weat(tmp_path / "absent.jsonl")
