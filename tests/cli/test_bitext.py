"""`use-st5 bitext`: two texts in, pairs out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from use_st5.training.sources import open_source

# In degrees: "haus" and "house", "hund" and "dog" are near to each other; "rain" has no partner.
ANGLES = {"haus": 0, "house": 5, "hund": 90, "dog": 94, "rain": 200}


class Directions:
    name, identity, max_length = "directions", "0", None
    prompts, default_prompt_name = {"query": ""}, None

    def encode(self, texts: list[str], **options: object) -> np.ndarray:
        angles = np.radians([ANGLES[text] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def truncated(self, texts: list[str]) -> list[int]:
        return []


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("use_st5.cli.bitext.load_encoder", lambda name: Directions())
    (tmp_path / "de.txt").write_text("haus\n\nhund\nhaus\n")
    (tmp_path / "en.txt").write_text("dog\nrain\nhouse\n")
    (tmp_path / "blank.txt").write_text("\n\n")


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_pairs_that_training_reads(suffix: str, use: Callable, tmp_path: Path) -> None:
    result = use("bitext", "de.txt", "en.txt", "--to", f"pairs.{suffix}", "--neighbours", "2")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == f"pairs.{suffix}: 2 pairs of 2 and 3 different sentences\n"
    source = open_source(tmp_path / f"pairs.{suffix}")
    assert source.kind.name == "pairs"
    rows = [(row["anchor"], row["positive"]) for row in source]
    assert sorted(rows) == [("haus", "house"), ("hund", "dog")]


@pytest.mark.parametrize(
    ("languages", "warned"), [(["en"], True), (["de", "en"], False), ([], False)]
)
def test_a_model_of_one_language_is_warned_of(
    languages: list[str], warned: bool, use: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = SimpleNamespace(metadata={"languages": languages} if languages else {})
    monkeypatch.setattr(Directions, "manifest", manifest, raising=False)
    result = use("bitext", "de.txt", "en.txt", "--to", "pairs.tsv", "--neighbours", "2")
    assert result.exit_code == 0, result.stderr
    line = "warning: directions knows one language, en. Pairs with a text in another language"
    assert result.stderr.startswith(line) == warned
    assert result.stderr.count("\n") == 1 + warned


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("de.txt", "en.txt", "--to", "p.xml"), 2, "ends in .tsv, .csv, .jsonl"),
        (("de.txt", "none.txt", "--to", "p.tsv"), 1, "found none"),
        (("de.txt", "blank.txt", "--to", "p.tsv"), 1, "expected sentences, one a line"),
        (("de.txt", "en.txt", "--to", "p.tsv", "--threshold", "9"), 1, "found none: the largest"),
    ],
)
def test_errors_are_one_line(
    arguments: tuple[str, ...], code: int, message: str, use: Callable, tmp_path: Path
) -> None:
    result = use("bitext", *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1)
    assert message in result.stderr
    assert not list(tmp_path.glob("p.*"))
