"""GLUE out of TFDS: its real builders, over a few rows in place of a download."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from use_st5.data import tfds_reader
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.glue import readers
from use_st5.evaluation.preparation.glue import GLUE, read_glue
from use_st5.evaluation.preparation.preparation import PREPARATIONS, prepare

tfds = pytest.importorskip("tensorflow_datasets")

TEXTS = ("A café, “here”.", "two\tparts\nof it")
READ = {"glue/mnli": "MNLI_MATCHED", "glue/sst2": "SST2"}


@pytest.fixture(scope="module")
def tfds_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All eight data sets as TFDS stores them, three rows in each split."""
    folder = tmp_path_factory.mktemp("tfds")
    for name in GLUE:
        builder = tfds.builder(name, data_dir=folder)
        texts = [key for key, kind in builder.info.features.items() if _is_text(kind)]
        splits = ["train", "validation"]
        if name == "glue/mnli":
            splits = ["train", "validation_matched", "validation_mismatched"]
        builder._split_generators = _splits(splits, texts, builder.info.features["label"])
        builder.download_and_prepare()
    return folder


def _is_text(kind: Any) -> bool:
    return isinstance(kind, tfds.features.Text)


def _splits(splits: list[str], texts: list[str], label: Any) -> Callable[..., dict]:
    def rows(split: str) -> Iterator[tuple[int, dict[str, Any]]]:
        for row in range(3):
            pair = {key: f"{split} {row} {text}" for key, text in zip(texts, TEXTS, strict=False)}
            graded = label.dtype == np.float32
            yield row, {**pair, "label": 3.8 if graded else row % label.num_classes, "idx": row}

    return lambda *arguments: {split: rows(split) for split in splits}


@pytest.mark.parametrize("name", GLUE)
def test_the_readers_take_what_is_written(name: str, tfds_folder: Path, tmp_path: Path) -> None:
    (written,), _ = prepare(PREPARATIONS[name], tmp_path, source=tfds_folder)
    (place,) = GLUE[name]
    assert written == tmp_path / place
    assert sorted(path.name for path in written.iterdir()) == sorted(GLUE[name][place])
    dataset = getattr(readers, READ.get(name, name.removeprefix("glue/").upper()))
    data = DataFolder(tmp_path)
    dev = "validation_matched" if name == "glue/mnli" else "validation"
    for split, texts in (("train", dataset.read_train(data)), (dev, dataset.read_dev(data))):
        assert len(texts) == 3
        assert {column[0][: len(split)] for column in texts.columns} == {split}
        assert sorted(texts.columns[0]) == [f"{split} {row} {TEXTS[0]}" for row in range(3)]
        if len(texts.columns) > 1:
            assert sorted(texts.columns[1])[2] == f"{split} 2 two parts of it"
        for text, label in zip(texts.columns[0], texts.labels, strict=True):
            row = int(text.removeprefix(split).split()[0])
            classes = {"glue/mnli": 3}.get(name, 2)
            assert label == (3.8 if name == "glue/stsb" else row % classes)


def test_files_are_laid_out_as_glue_lays_them(tfds_folder: Path) -> None:
    rte = read_glue("glue/rte", tfds_folder)["RTE"]
    assert sorted(rte) == ["dev.tsv", "train.tsv"]
    header, *rows = rte["train.tsv"].decode().splitlines()
    assert header == "index\tsentence1\tsentence2\tlabel"
    assert f"1\ttrain 1 {TEXTS[0]}\ttrain 1 two parts of it\tnot_entailment" in rows
    cola = read_glue("glue/cola", tfds_folder)["CoLA"]["dev.tsv"].decode().splitlines()
    assert f"\t0\t\tvalidation 2 {TEXTS[0]}" in cola
    assert len(cola) == 3
    stsb = read_glue("glue/stsb", tfds_folder)["STS-B"]["dev.tsv"].decode()
    assert stsb.splitlines()[1].endswith("\t3.8")
    mnli = read_glue("glue/mnli", tfds_folder)["MNLI"]
    assert sorted(mnli) == ["dev_matched.tsv", "dev_mismatched.tsv", "train.tsv"]
    assert b"validation_mismatched 0" in mnli["dev_mismatched.tsv"]


def test_an_unprepared_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"glue/rte is not prepared in "):
        read_glue("glue/rte", tmp_path)


def test_a_failed_download_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, download: bool, **options: Any) -> None:
        assert download
        raise RuntimeError("HTTPSConnectionPool: Max retries exceeded\nand so on")

    monkeypatch.setattr(tfds_reader, "TFDSReader", fail)
    with pytest.raises(ConnectionError) as caught:
        read_glue("glue/cola", None)
    assert str(caught.value) == (
        "glue/cola: TensorFlow Datasets could not download it (RuntimeError: HTTPSConnectionPool: "
        "Max retries exceeded). Prepare it where there is a network, and give the folder with "
        "--from."
    )
