"""GLUE's data sets in its published tsv files, and where the same rows are published elsewhere.

Columns and the order of the classes are those of GLUE's files and of TensorFlow Datasets' `glue`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation._text_files import numbered_lines, parse_score, split_fields
from use_st5.evaluation.sts.readers import STSB_DEV, STSB_TRAIN
from use_st5.vector_store import VectorCache

_ORIGIN = (
    "https://gluebenchmark.com/tasks, or `use-st5 data`, which writes this layout from TensorFlow "
    "Datasets (glue)"
)


@dataclass(frozen=True)
class LabelledTexts:
    """The rows of one split.

    Attributes:
        columns: The first sentences and, where the task is about pairs, the second ones.
        labels: `[rows]`: class numbers (int64), or scores (float64).
        broken_lines: How many lines of the file were left out because fields were missing.

    Raises:
        ValueError: No rows, or columns of different lengths.
    """

    columns: tuple[list[str], ...]
    labels: np.ndarray
    broken_lines: int = 0

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.columns}
        if lengths != {len(self.labels)} or not len(self.labels):
            raise ValueError(
                "Expected as many labels as sentences in each column, and at least one; received "
                f"{len(self.labels)} labels and columns of {sorted(lengths)} sentences."
            )

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def rows(self, chosen: np.ndarray) -> LabelledTexts:
        """The rows with these numbers, in this order."""
        columns = tuple([column[row] for row in chosen] for column in self.columns)
        return LabelledTexts(columns, self.labels[chosen], self.broken_lines)

    def embedded(self, embed: VectorCache) -> list[np.ndarray]:
        """The embeddings `[rows, dim]` of each column.

        A sentence without text, as some of QQP's are, is embedded as ".", as in SentEval's
        examples: not every encoder has a vector for nothing.
        """
        return [embed([sentence or "." for sentence in column]) for column in self.columns]


@dataclass(frozen=True)
class TableLayout:
    """The columns of a tab-separated table without quoting, as all of GLUE's are.

    Attributes:
        texts: The columns of the sentences: names in the header, or numbers, from 0, where the
            table has no header.
        label: The column of the label, in the same way.
        classes: The names of the classes in the order of their numbers; labels are written as
            either. Empty where the label is a score.
        most_broken: A table with at most so many lines of more or fewer fields than its header is
            read without them; with more it is not in its format.
    """

    texts: tuple[str, ...] | tuple[int, ...]
    label: str | int
    classes: tuple[str, ...] = ()
    most_broken: int = 0

    def read(self, *paths: str | Path) -> LabelledTexts:
        """Reads files, one after the other.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: A column is missing in a header, a line has too few or too many fields, a
                label is unknown; there are no rows.
        """
        columns: tuple[list[str], ...] = tuple([] for _ in self.texts)
        labels: list[float] = []
        broken = 0
        for path in map(Path, paths):
            before = len(labels)
            for number, fields in self._rows(path):
                if fields is None:
                    broken += 1
                    continue
                labels.append(self._label(path, number, fields[-1]))
                for column, text in zip(columns, fields[:-1], strict=True):
                    column.append(text.strip())
            if len(labels) == before:
                raise ValueError(f"{path}: expected rows with sentences and labels, found none.")
        kind = np.int64 if self.classes else np.float64
        return LabelledTexts(columns, np.array(labels, kind), broken)

    def _rows(self, path: Path) -> Iterator[tuple[int, list[str] | None]]:
        """Line numbers and their sentences and label; None for a line that is left out."""
        lines = numbered_lines(path)
        if self._has_header:
            header = next(lines, (1, ""))[1].split("\t")
            places, least, most = self._places(path, header), len(header), len(header)
        else:
            places, least, most = self._numbers, max(self._numbers) + 1, None
        broken = 0
        for number, line in lines:
            try:
                fields = split_fields(path, number, line, at_least=least, at_most=most)
            except ValueError as error:
                broken += 1
                if broken > self.most_broken:
                    limit = f" At most {self.most_broken} such lines are left out."
                    raise ValueError(f"{error}{limit * bool(self.most_broken)}") from error
                yield number, None
            else:
                yield number, [fields[place] for place in places]

    @property
    def _has_header(self) -> bool:
        return isinstance(self.label, str)

    @property
    def _numbers(self) -> list[int]:
        return [int(column) for column in (*self.texts, self.label)]

    def _places(self, path: Path, names: list[str]) -> list[int]:
        wanted = [str(column) for column in (*self.texts, self.label)]
        if missing := [column for column in wanted if column not in names]:
            raise ValueError(
                f"{path}:1: expected the columns {', '.join(wanted)}; {', '.join(missing)} missing "
                f"in the header {names}."
            )
        return [names.index(column) for column in wanted]

    def _label(self, path: Path, number: int, text: str) -> float:
        if not self.classes:
            return parse_score(path, number, text)
        if text in self.classes:
            return self.classes.index(text)
        if text in map(str, range(len(self.classes))):
            return int(text)
        known = ", ".join(f"{name} or {index}" for index, name in enumerate(self.classes))
        hint = " GLUE's test files have no labels: take its dev file." if text == "-1" else ""
        raise ValueError(f"{path}:{number}: expected a label ({known}), received {text!r}.{hint}")


@dataclass(frozen=True)
class GlueDataset:
    """The train and dev splits of a task; its test split has no labels.

    Attributes:
        name: GLUE's name of it, for example "SST-2".
        train: The file as GLUE publishes it, and a layout → further files that hold the same rows.
        dev: The same of the dev split. A place that is a folder stands for `parts` in it.
        layouts: Of each place.
        origin: Where to get it.
        parts: The files of a dev split that is a folder.
    """

    name: str
    train: tuple[str, ...]
    dev: tuple[str, ...]
    layouts: tuple[TableLayout, ...]
    origin: str = _ORIGIN
    parts: tuple[str, ...] = ()

    @property
    def train_source(self) -> DataSource:
        """The train split."""
        return DataSource(f"GLUE {self.name} train", self.train, self.origin)

    @property
    def dev_source(self) -> DataSource:
        """The dev split."""
        return DataSource(f"GLUE {self.name} dev", self.dev, self.origin)

    def read_train(self, data: DataFolder) -> LabelledTexts:
        """The train split of a data folder.

        Raises:
            MissingDataError: It is not there.
            ValueError: A file is not in its layout.
        """
        return self._read(data, self.train_source)

    def read_dev(self, data: DataFolder) -> LabelledTexts:
        """The dev split; see `read_train`."""
        return self._read(data, self.dev_source)

    def _read(self, data: DataFolder, source: DataSource) -> LabelledTexts:
        path = data.find(source)
        layouts = zip(source.places, self.layouts, strict=True)
        layout = next(layout for place, layout in layouts if path.match(place))
        if path.is_dir():
            return layout.read(*(path / part for part in self.parts))
        return layout.read(path)


_ENTAILMENT = ("entailment", "not_entailment")
_NLI = ("entailment", "neutral", "contradiction")
_DUPLICATE = ("not_duplicate", "duplicate")
_EQUIVALENT = ("not_equivalent", "equivalent")
_SENTIMENT = ("negative", "positive")
# Source, judgement, the author's own mark, sentence; no header, in GLUE and as published first.
_COLA = TableLayout((3,), 1, ("unacceptable", "acceptable"))
_STSB = TableLayout((5, 6), 4)
_MNLI = TableLayout(("sentence1", "sentence2"), "gold_label", _NLI)
# Some of its questions hold line feeds, so GLUE's train file has about a dozen broken lines, which
# TensorFlow Datasets leaves out too.
_QQP = TableLayout(("question1", "question2"), "is_duplicate", _DUPLICATE, most_broken=50)

COLA = GlueDataset(
    "CoLA",
    ("CoLA/train.tsv", "cola_public/raw/in_domain_train.tsv"),
    ("CoLA/dev.tsv", "cola_public/raw"),
    (_COLA, _COLA),
    # GLUE's dev split is both of them in this order.
    parts=("in_domain_dev.tsv", "out_of_domain_dev.tsv"),
)
SST2 = GlueDataset(
    "SST-2",
    ("SST-2/train.tsv", "SST/binary/sentiment-train"),  # the second is SentEval's
    ("SST-2/dev.tsv", "SST/binary/sentiment-dev"),
    (TableLayout(("sentence",), "label", _SENTIMENT), TableLayout((0,), 1, _SENTIMENT)),
)
MRPC = GlueDataset(
    "MRPC",
    ("MRPC/train.tsv",),
    ("MRPC/dev.tsv",),
    (TableLayout(("#1 String", "#2 String"), "Quality", _EQUIVALENT),),
)
STSB = GlueDataset(
    "STS-B",
    ("STS-B/train.tsv", *STSB_TRAIN.places),
    ("STS-B/dev.tsv", *STSB_DEV.places),
    (TableLayout(("sentence1", "sentence2"), "score"), _STSB, _STSB),
)
QQP = GlueDataset("QQP", ("QQP/train.tsv",), ("QQP/dev.tsv",), (_QQP,))
MNLI_MATCHED = GlueDataset("MNLI-m", ("MNLI/train.tsv",), ("MNLI/dev_matched.tsv",), (_MNLI,))
MNLI_MISMATCHED = GlueDataset(
    "MNLI-mm", ("MNLI/train.tsv",), ("MNLI/dev_mismatched.tsv",), (_MNLI,)
)
QNLI = GlueDataset(
    "QNLI",
    ("QNLI/train.tsv",),
    ("QNLI/dev.tsv",),
    (TableLayout(("question", "sentence"), "label", _ENTAILMENT),),
)
RTE = GlueDataset(
    "RTE",
    ("RTE/train.tsv",),
    ("RTE/dev.tsv",),
    (TableLayout(("sentence1", "sentence2"), "label", _ENTAILMENT),),
)
