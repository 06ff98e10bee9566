"""GLUE's train and dev files out of TensorFlow Datasets."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_BREAKS = re.compile(r"[\t\r\n]+")
_ENTAILMENT = ("entailment", "not_entailment")


@dataclass(frozen=True)
class _Table:
    """One of GLUE's data sets.

    Attributes:
        place: GLUE's folder.
        columns: Heading in GLUE's file → key in TFDS, in GLUE's order; the last one is the label.
            Headings of which TFDS has no content (numbers of articles, parse trees) are left out:
            nothing reads them. The key "" gives an empty field.
        classes: The labels as GLUE writes them; empty where it writes numbers.
        dev: GLUE's file → split of TFDS.
        header: Whether the file begins with the headings.
    """

    place: str
    columns: dict[str, str]
    classes: tuple[str, ...] = ()
    dev: dict[str, str] = field(default_factory=lambda: {"dev.tsv": "validation"})
    header: bool = True


_PAIR = {"sentence1": "sentence1", "sentence2": "sentence2"}
_TABLES = {
    # Source, judgement, the author's own mark, sentence.
    "cola": _Table("CoLA", {"0": "", "1": "label", "2": "", "3": "sentence"}, header=False),
    "sst2": _Table("SST-2", {"sentence": "sentence", "label": "label"}),
    "mrpc": _Table(
        "MRPC", {"Quality": "label", "#1 String": "sentence1", "#2 String": "sentence2"}
    ),
    "stsb": _Table("STS-B", {"index": "idx", **_PAIR, "score": "label"}),
    "qqp": _Table(
        "QQP",
        {
            "id": "idx",
            "question1": "question1",
            "question2": "question2",
            "is_duplicate": "label",
        },
    ),
    "mnli": _Table(
        "MNLI",
        {"index": "idx", "sentence1": "premise", "sentence2": "hypothesis", "gold_label": "label"},
        ("entailment", "neutral", "contradiction"),
        {
            "dev_matched.tsv": "validation_matched",
            "dev_mismatched.tsv": "validation_mismatched",
        },
    ),
    "qnli": _Table(
        "QNLI",
        {"index": "idx", "question": "question", "sentence": "sentence", "label": "label"},
        _ENTAILMENT,
    ),
    "rte": _Table("RTE", {"index": "idx", **_PAIR, "label": "label"}, _ENTAILMENT),
}

# Name in TFDS → folder → files.
GLUE = {f"glue/{name}": {table.place: ("train.tsv", *table.dev)} for name, table in _TABLES.items()}


def read_glue(name: str, data_dir: Path | None) -> dict[str, dict[str, bytes]]:
    """The train and dev files of one of GLUE's data sets, in GLUE's own tab-separated layout.

    The test splits have no labels and are left out. A tab or a line break inside a sentence becomes
    a space, because the layout has no quoting.

    Args:
        name: One of `GLUE`, for example "glue/cola".
        data_dir: Where TFDS has prepared it; None: where TFDS looks by default, downloading what is
            not there.

    Returns:
        GLUE's folder → file → content.

    Raises:
        ImportError: tensorflow-datasets is not installed.
        ValueError: It is not in `data_dir`, or has other columns than expected.
        ConnectionError: It could not be downloaded.
    """
    table = _TABLES[name.removeprefix("glue/")]
    splits = {"train.tsv": "train", **table.dev}
    files = {
        file: _file(table, _rows(name, split, table, data_dir)) for file, split in splits.items()
    }
    return {table.place: files}


def _rows(name: str, split: str, table: _Table, data_dir: Path | None) -> Iterator[dict[str, Any]]:
    from use_st5.data.tfds_reader import TFDSReader

    keys = {key: key for key in table.columns.values() if key}
    try:
        with _unheard_retries():
            reader = TFDSReader(
                name, split=split, columns=keys, data_dir=data_dir, download=data_dir is None
            )
    except (ImportError, ValueError):
        raise
    except Exception as error:  # each layer of TFDS's downloads has kinds of its own
        reason = (str(error).splitlines() or [""])[0]
        raise ConnectionError(
            f"{name}: TensorFlow Datasets could not download it ({type(error).__name__}: "
            f"{reason}). Prepare it where there is a network, and give the folder with --from."
        ) from error
    return iter(reader)


@contextlib.contextmanager
def _unheard_retries() -> Iterator[None]:
    """Leaves out the warning for each attempt to connect; the last one's error is told."""
    logger = logging.getLogger("urllib3")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _file(table: _Table, rows: Iterator[dict[str, Any]]) -> bytes:
    lines = ["\t".join(table.columns)] if table.header else []
    lines += ("\t".join(_field(table, key, row) for key in table.columns.values()) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _field(table: _Table, key: str, row: dict[str, Any]) -> str:
    if not key:
        return ""
    if key == "label":
        label = row[key]
        if table.classes:
            return table.classes[label]
        # The scores of STS-B are float32 in TFDS; their shortest text is the published number.
        return str(np.float32(label)) if isinstance(label, float) else str(label)
    return _BREAKS.sub(" ", str(row[key]))
