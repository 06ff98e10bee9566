from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.evaluation.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.glue.glue_dataset import GlueDataset
from use_st5.evaluation.glue.table_layout import TableLayout

DATASET = GlueDataset(
    "Toy",
    ("Toy/train.tsv", "elsewhere/raw/train.txt"),
    ("Toy/dev.tsv", "elsewhere/raw"),
    (TableLayout(("text",), "label", ("a", "b")), TableLayout((1,), 0, ("a", "b"))),
    origin="the toy shop",
    parts=("one.txt", "two.txt"),
)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_each_place_is_read_in_its_layout(tmp_path: Path) -> None:
    write(tmp_path / "x" / "elsewhere" / "raw" / "train.txt", "a\tone\nb\ttwo\n")
    write(tmp_path / "x" / "elsewhere" / "raw" / "two.txt", "b\tfour\n")
    write(tmp_path / "x" / "elsewhere" / "raw" / "one.txt", "a\tthree\n")
    data = DataFolder(tmp_path)
    assert DATASET.read_train(data).columns == (["one", "two"],)
    assert DATASET.read_dev(data).columns == (["three", "four"],)
    # GLUE's own layout comes first where both are there.
    write(tmp_path / "glue" / "Toy" / "train.tsv", "text\tlabel\nfive\tb\n")
    assert DATASET.read_train(data).columns == (["five"],)
    assert DATASET.read_train(data).labels.tolist() == [1]


def test_missing_data_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        MissingDataError, match=r"GLUE Toy dev: expected Toy/dev\.tsv or .* from the toy shop"
    ):
        DATASET.read_dev(DataFolder(tmp_path))
    write(tmp_path / "elsewhere" / "raw" / "one.txt", "a\tthree\n")
    with pytest.raises(FileNotFoundError, match=r"two\.txt: expected a file"):
        DATASET.read_dev(DataFolder(tmp_path))
