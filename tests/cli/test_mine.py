"""`use-st5 mine`: pairs in, triplets out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from use_st5.training.sources import open_source

# Angles in radians: "old" is near to "age" and to "years", "shop" is far from both.
DIRECTIONS = {"age?": 0.0, "years": 0.1, "old": 0.4, "shop?": 1.6, "store, nine": 1.7}


class Directions:
    max_length = default_prompt_name = None
    prompts = {"query": ""}

    def encode(self, texts: list[str], **options: object) -> np.ndarray:
        angles = np.array([DIRECTIONS[text] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def truncated(self, texts: list[str]) -> list[int]:
        return []


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("use_st5.cli.mine.load_encoder", lambda name: Directions())


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_the_nearest_that_is_no_positive(suffix: str, use: Callable, tmp_path: Path) -> None:
    (tmp_path / "faq.tsv").write_text(
        "title\tanswer\nage?\tyears\nshop?\tstore, nine\nshop?\told\n", encoding="utf-8"
    )
    result = use("mine", "faq.tsv", "--to", f"t.{suffix}", "--column", "anchor=title")
    assert result.exit_code == 0, result.stderr
    source = open_source(tmp_path / f"t.{suffix}")
    assert source.kind.name == "pairs"
    # "shop?" has two positives, so that only "years" can be its negative.
    rows = [tuple(row.values()) for row in source]
    assert rows == [
        *(("age?", "years", "old"), ("shop?", "store, nine", "years")),
        ("shop?", "old", "years"),
    ]
    assert "3 triplets; of 3 pairs 0 have no negative" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("faq.tsv", "--to", "t.xml"), 2, "ends in .tsv, .csv, .jsonl"),
        (("one.tsv", "--to", "./one.tsv"), 1, "one.tsv: expected another file than the input"),
        (("sts.tsv", "--to", "t.tsv"), 1, "expected the columns anchor (or query"),
        (("one.tsv", "--to", "t.tsv"), 1, "expected hard negatives, found none"),
    ],
)
def test_errors_are_one_line(
    arguments: tuple[str, ...], code: int, message: str, use: Callable, tmp_path: Path
) -> None:
    (tmp_path / "sts.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n")
    (tmp_path / "one.tsv").write_text("anchor\tpositive\nage?\tyears\n")
    result = use("mine", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.glob("t.*"))
