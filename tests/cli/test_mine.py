"""`use-st5 mine` and `use-st5 bitext`: pairs in, triplets out; two texts in, pairs out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from use_st5.training.rows import read_file

# In degrees: "old" is near to "age?" and "years", "shop?" is far from both; "haus" and "house",
# "hund" and "dog" are near to each other; "rain" has no partner.
ANGLES = {"age?": 0, "years": 6, "old": 23, "shop?": 92, "store, nine": 97}
ANGLES |= {"haus": 0, "house": 5, "hund": 90, "dog": 94, "rain": 200}


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
    monkeypatch.setattr("use_st5.cli.mine.load_encoder", lambda name: Directions())
    (tmp_path / "de.txt").write_text("haus\n\nhund\nhaus\n")
    (tmp_path / "en.txt").write_text("dog\nrain\nhouse\n")
    (tmp_path / "blank.txt").write_text("\n\n")
    (tmp_path / "sts.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n")
    (tmp_path / "one.tsv").write_text("anchor\tpositive\nage?\tyears\n")


def test_the_nearest_that_is_no_positive(use: Callable, tmp_path: Path) -> None:
    (tmp_path / "faq.tsv").write_text(
        "title\tanswer\nage?\tyears\nshop?\tstore, nine\nshop?\told\n", encoding="utf-8"
    )
    result = use("mine", "faq.tsv", "--to", "t.jsonl", "--column", "anchor=title")
    assert result.exit_code == 0, result.stderr
    source = read_file(tmp_path / "t.jsonl")
    assert source.task.name == "pairs"
    # "shop?" has two positives, so that only "years" can be its negative.
    rows = [tuple(row.values()) for row in source]
    assert rows == [
        *(("age?", "years", "old"), ("shop?", "store, nine", "years")),
        ("shop?", "old", "years"),
    ]
    report = result.stderr.splitlines()
    assert report[:3] == [
        "3 pairs, 3 negatives",
        "0 pairs have fewer than 1; 0 negatives are missing",
        "left out: none",
    ]
    assert report[3].startswith("scores of the positives: mean 0.")
    options = [
        "--column",
        "anchor=title",
        "--rank-from",
        "2",
        "--rank-to",
        "2",
        "--margin",
        "0.001",
    ]
    assert use("mine", "faq.tsv", "--to", "second.tsv", *options).exit_code == 0
    assert "age?\tyears\tstore, nine\n" in (tmp_path / "second.tsv").read_text()


def test_a_guide_and_a_corpus(use: Callable, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("store, nine\nyears\n\nold\n")
    arguments = ("mine", "one.tsv", "--to", "t.tsv", "--corpus", "corpus.txt")
    assert use(*arguments).exit_code == 0
    assert (tmp_path / "t.tsv").read_text().endswith("age?\tyears\told\n")
    # The guide, which reads vectors of a file, says that "old" is an answer.
    vectors = {"age?": [1, 0], "years": [1, 0.1], "old": [1, 0], "store, nine": [0, 1]}
    lines = [json.dumps({"text": text, "embedding": vectors[text]}) for text in vectors]
    (tmp_path / "guide.jsonl").write_text("\n".join(lines))
    result = use(*arguments, "--guide", "guide.jsonl")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "t.tsv").read_text().endswith("age?\tyears\tstore, nine\n")
    assert "left out: 1 within the margin\n" in result.stderr
    result = use(*arguments, "--guide", "guide.jsonl", "--min-score", "0.5")
    assert result.exit_code == 1
    assert "left out: 1 within the margin, 1 beyond min_score or max_score\n" in result.stderr


def test_pairs_that_training_reads(use: Callable, tmp_path: Path) -> None:
    result = use("bitext", "de.txt", "en.txt", "--to", "pairs.tsv")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "pairs.tsv: 2 pairs of 2 and 3 different sentences\n"
    source = read_file(tmp_path / "pairs.tsv")
    assert source.task.name == "pairs"
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
    result = use("bitext", "de.txt", "en.txt", "--to", "pairs.tsv")
    assert result.exit_code == 0, result.stderr
    line = "warning: directions knows one language, en. Pairs with a text in another language"
    assert result.stderr.startswith(line) == warned
    assert result.stderr.count("\n") == 1 + warned


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("mine", "faq.tsv", "--to", "t.xml"), 2, "ends in .tsv, .csv, .jsonl"),
        (("mine", "one.tsv", "--to", "./one.tsv"), 1, "expected another file than the input"),
        (("mine", "sts.tsv", "--to", "t.tsv"), 1, "expected the columns anchor or query"),
        (("mine", "one.tsv", "--to", "t.tsv"), 1, "found no negatives"),
        (("bitext", "de.txt", "none.txt", "--to", "t.tsv"), 1, "found none"),
        (("bitext", "de.txt", "blank.txt", "--to", "t.tsv"), 1, "expected sentences, one a line"),
        (("bitext", "de.txt", "en.txt", "--to", "t.tsv", "--threshold", "9"), 1, "the largest"),
    ],
)
def test_errors_are_one_line(
    arguments: tuple[str, ...], code: int, message: str, use: Callable, tmp_path: Path
) -> None:
    result = use(*arguments)
    assert result.exit_code == code
    assert message in result.stderr.splitlines()[-1]
    assert not list(tmp_path.glob("t.*"))
