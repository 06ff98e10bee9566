from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.footprint.records import THROUGHPUT
from use_st5.footprint import throughput


def test_sentences_a_second(use: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple] = []

    def measured(models: list[str], path: Path, **options: object) -> object:
        asked.append(
            (models, options.get("tokens"), options.get("batch_sizes"), options["threads"])
        )
        THROUGHPUT.write(path)
        return THROUGHPUT

    monkeypatch.setattr(throughput, "measure_throughput", measured)
    arguments = ("fresh:t5_small", "--lengths", "16,128", "--batch-sizes", "1,32", "-o", "here")
    result = use("benchmark", "--throughput", *arguments)
    assert result.exit_code == 0, result.stderr
    assert asked == [(["fresh:t5_small"], [16, 128], [1, 32], 1)]
    assert "base\t110.0 M\t128\t9.88\tno room" in result.stdout
    assert {path.name for path in (tmp_path / "here").iterdir()} >= {
        "throughput.json", "throughput.md", "throughput_16.png", "throughput_128.png",
    }  # fmt: skip
    assert json.loads(use("benchmark", "--throughput", "--json").stdout)["speeds"]
