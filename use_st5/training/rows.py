"""The rows of training files: read once; statistics, duplicates, held-out rows, losses' tables."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from use_st5.data.arrays import rows_of
from use_st5.data.tables import TEXT, ReadReport, Table, column_names, table_of
from use_st5.data.text_hashes import text_hashes
from use_st5.data.text_reader import TextReader, split_sentences
from use_st5.data.tfds_reader import DataSet
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.evaluation.retrieval import (
    RetrievalSet,
    read_retrieval_set,
    retrieval_scores,
    retrieve,
)
from use_st5.hub.model_manifest import describe_files
from use_st5.io.files import as_written, cached_path, file_sha256, remote_path
from use_st5.io.lines import batched, in_threads, read_lines
from use_st5.io.progress import waiting
from use_st5.losses.task_loss import TaskLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.model_loading import VectorFile, scored_by
from use_st5.training.tasks import (
    DEFINITIONS,
    INFERENCE,
    NEIGHBOURS,
    PAIRS,
    SCORED_PAIRS,
    TASKS,
    TEXTS,
    UNSCORED_PAIRS,
    TaskSpec,
    known_columns,
    task_for,
)
from use_st5.training.validation import Encode, Metric, Row, Scores, ValidationSet

Prompts = str | Mapping[str, str]
# A file, the name of a data set, or rows in memory with a name for logs, cards and results.
Given = str | os.PathLike[str] | tuple[str, pa.Table]
Sets = list[ValidationSet]

_TEXT = re.compile(r"\.txt(\.gz)?$", re.IGNORECASE)
_TFDS = re.compile(r"[a-z]\w*(/[\w.-]+)?(:[\d.]+)?(\[.+\])?")
# Rows whose texts tell whether they are running text: this many sentences in each, on average.
_SAMPLE, _RUNNING = 200, 2.0
# Texts whose tokens are counted at once, and texts of a file whose tokens are counted.
_AT_ONCE, _COUNTED = 8192, 100_000
# Any odd number works: different hashes stay different when they are multiplied by it.
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MOST_CLASSES = 1000
_INFERENCE_LABELS = ("entailment", "neutral", "contradiction")
_LINE = 110
# If no files are given for validation and test, a share of the rows is held out, and at most
# `MOST_VALIDATION_ROWS` rows for each of the two.
_SHARE, _SHARE_OF_FEW, _FEW = 0.1, 0.2, 1000
MOST_VALIDATION_ROWS = 1000
# If one of the two parts has fewer rows than this, it says too little, and no rows test.
_FEWEST_TESTED = 20
# Rows that a classifier of labels is fitted to in each measurement.
_FITTED = 2000
# Largest number of rows that are used of a file: with more, an evaluation would take minutes.
_MOST_ROWS = 5 * MOST_VALIDATION_ROWS
# Names of the tasks of `train` that come from no file: the start's similarities, and the teacher.
_RESERVED = ("start", "teacher")
# Narrow ranges first: the first range that holds all scores of a file is used.
_USUAL = ((0.0, 1.0), (-1.0, 1.0), (1.0, 5.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))


def score_range(
    name: str, lowest: float, highest: float, requested: tuple[float, float] | None
) -> tuple[float, float]:
    """The scores of a file that become 0 and 1; (0, 1) if the scores stay, as cosines do.

    Its rows have scores from `lowest` to `highest`. `requested` is the range that the user gave;
    None: the narrowest usual range that holds all scores, or else the range of the rows.
    """
    if requested is None:
        fitting = (ends for ends in _USUAL if ends[0] <= lowest and highest <= ends[1])
        ends = next(fitting, (lowest, highest))
        return ends if ends[0] < -1 or ends[1] > 1 else (0.0, 1.0)
    if lowest < requested[0] or highest > requested[1]:
        text = "expected scores from {:g} to {:g}, found {:g} to {:g}"
        text = text.format(*requested, lowest, highest)
        raise ValueError(f"{name}: {text}. Change --score-range.")
    return requested


@dataclasses.dataclass(eq=False)
class TrainingFile:
    """The rows of a file, of a TensorFlow data set, or of the memory, with their task.

    Attributes:
        name: The name as it was given; it may be remote (gs:// and the like).
        task: Its task.
        columns: Key of a row → name of the column.
        table: The good rows: texts and labels as strings, scores as floats. For running text the
            columns are "previous", "text" and "next".
        report: The report of the reader.
        content: Identifies the rows: the sha256 of a file, or the name of a data set.
        names: The names of all its columns; a text has none.
        flags: The columns of 0 and 1 that are its labels, if these are no column themselves.
        mixing_weight: Its weight in a mixture; None: the number of its examples.
        prompts: Key of a row → the prompt before its text in training. The table has no prompts.
        lengths: Tokens of each text with its prompt, int `[texts]` (`add_statistics`); in a large
            file, of texts that are evenly spread.
        scores: The scores that become 0 and 1; None if the rows have no scores.
        left_out: Number of rows that are validation or test rows (`leave_out`).
        shared: Number of other rows that share a text with these.
        pairs: Number of pairs of texts that few labels are learned from.
        retrieval: The set of a folder in BEIR's layout; the table has its relevant pairs.
    """

    name: str
    task: TaskSpec
    columns: Mapping[str, str]
    table: pa.Table = None
    report: ReadReport = dataclasses.field(default_factory=ReadReport)
    content: str = ""
    names: Sequence[str] = ()
    flags: Sequence[str] = ()
    mixing_weight: float | None = None
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    lengths: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))
    scores: tuple[float, float] | None = None
    left_out: int = 0
    shared: int = 0
    pairs: int = 0
    retrieval: RetrievalSet | None = None

    def __iter__(self) -> Iterator[Row]:
        """The rows of the table one by one."""
        return rows_of(self.table)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.table.num_rows

    @property
    def kept(self) -> int:
        """The number of rows that are trained on."""
        return self.rows - self.left_out

    @property
    def text_keys(self) -> list[str]:
        """The keys of the texts that have a column."""
        return [key for key in self.task.texts if key in self.columns]

    @cached_property
    def hashes(self) -> dict[str, np.ndarray]:
        """Key → the hash of each row's text, uint64 `[rows]`."""
        return {key: text_hashes(self.table[key]) for key in self.text_keys}

    @cached_property
    def pair_keys(self) -> np.ndarray:
        """A key of the texts of each row, int64 `[rows]` (`pair_keys`)."""
        return pair_keys([self.hashes[key] for key in paired_keys(self.task)], self.task)

    @cached_property
    def classes(self) -> Counter[str]:
        """Label → number of rows."""
        if self.task.label is None:
            return Counter()
        labels, counts = pc.value_counts(self.table[self.task.label]).flatten()
        classes = Counter(dict(zip(labels.to_pylist(), counts.to_pylist(), strict=True)))
        if not self.is_multi_label:
            return classes
        names = Counter(dict.fromkeys(self.flags, 0))
        for label, count in classes.items():
            names.update(dict.fromkeys(labels_in(label) or (), count))
        return names

    @cached_property
    def is_multi_label(self) -> bool:
        """Whether each row has a list of labels, which is JSON text in the table."""
        if self.task.label is None:
            return False
        lists = {
            labels_in(label) is not None
            for label in self.table[self.task.label].unique().to_pylist()
        }
        if len(lists) == 2:
            raise ValueError(f"{self.name}: expected lists of labels in all rows, or in none.")
        return lists == {True}

    @cached_property
    def score_limits(self) -> tuple[float, float]:
        """The lowest and the highest score; 0 and 1 without scores."""
        if self.task.score is None:
            return 0.0, 1.0
        limits = pc.min_max(self.table[self.task.score]).as_py()
        return limits["min"], limits["max"]

    def target(self, score: Any) -> Any:
        """The target similarity of two texts with this score."""
        lowest, highest = self.scores or (0.0, 1.0)
        return (score - lowest) / (highest - lowest)

    @cached_property
    def label_numbers(self) -> dict[str, int]:
        """Label → its number: in the usual order for inference, else in alphabetical order."""
        names = {name.casefold(): name for name in self.classes}
        labels = sorted(self.classes)
        if self.task.stands_in_for(INFERENCE) and {*names} == {*_INFERENCE_LABELS}:
            labels = [names[name] for name in _INFERENCE_LABELS]
        return {name: number for number, name in enumerate(labels)}

    @cached_property
    def repetitions(self) -> tuple[int, int]:
        """The number of rows with the same words as an earlier row, and with another target."""
        _, first, group = np.unique(
            _combined([*self.hashes.values()]), return_index=True, return_inverse=True
        )
        repeated, target = len(group) - len(first), self.task.target
        if target is None:
            return repeated, 0
        values = self.table[target].combine_chunks()
        if self.task.label is not None:
            values = values.dictionary_encode().indices
        targets = values.to_numpy(zero_copy_only=False)
        return repeated, int(np.count_nonzero(targets[first[group]] != targets))

    @cached_property
    def false_negatives(self) -> dict[str, np.ndarray]:
        """Key of hard negatives → whether each is a positive of its text in another row, bool."""
        negatives = [key for key in self.task.optional if key in self.hashes]
        if not negatives:
            return {}
        anchor, positive = (self.hashes[key] for key in self.task.needed[:2])
        positives = _combined([anchor, positive])
        return {key: np.isin(_combined([anchor, self.hashes[key]]), positives) for key in negatives}

    def lines(self, limit: int, *, longer: bool = False) -> Iterator[str]:
        """The log lines; training reads `limit` tokens, `longer`: the encoder could read more."""
        task, report = self.task, self.report
        columns = (key if key == name else f"{name} as {key}" for key, name in self.columns.items())
        yield f"{self.name}: {', '.join(columns)} → {task.name} ({task.description})"
        if other := {TEXTS.name: NEIGHBOURS, NEIGHBOURS.name: TEXTS}.get(task.name):
            yield f"  as {other.name} with --task {self.name}={other.name} ({other.description})"
        yield f"  {self.rows:,} rows{self._facts()}"
        yield from (f"    {offence}" for offence in report.offences)
        yield from (f"    {note}: {count:,}" for note, count in report.notes.items())
        if self.prompts:
            text = ", ".join(f"{key} {prompt!r}" for key, prompt in self.prompts.items())
            bare = [key for key in self.text_keys if key not in self.prompts]
            yield f"  prompts: {text}" + "; none before " * bool(bare) + ", ".join(bare)
        if count := sum(map(np.count_nonzero, self.false_negatives.values())):
            yield (
                f"  {count:,} hard negatives are not used, because they are positives of the same "
                "text in other rows"
            )
        yield self._lengths(limit, longer=longer)
        if classes := self.classes:
            counts = ", ".join(f"{name} {count:,}" for name, count in classes.most_common(8))
            yield f"  labels: {counts}" + f", … ({len(classes)} labels)" * (len(classes) > 8)
        if self.pairs:
            yield f"  {self.pairs:,} pairs of texts that share a label"
        if self.scores is not None:
            text = "  scores: {:g} … {:g}, ".format(*self.score_limits)
            scaled = "scaled from {:g} … {:g} to 0 … 1".format(*self.scores)
            if self.scores == self.score_limits and self.scores not in _USUAL:
                scaled += " (not a usual range; --score-range sets another)"
            yield text + (scaled if self.scores != (0, 1) else "not scaled")
        for row in self.table.slice(0, 2).to_pylist():
            yield "  e.g. " + " | ".join(_short(row[key]) for key in row)

    def _facts(self) -> str:
        """The numbers of repeated, contradictory and bad rows."""
        repeated, conflicting = self.repetitions
        facts = f", {repeated:,} of them repeated" if repeated else ""
        if conflicting:
            facts += f" ({conflicting:,} with another {self.task.target} than before)"
        if self.report.malformed_rows:
            facts += f", {self.report.malformed_rows} bad rows left out"
        if skipped := self.report.skipped.total() - self.report.skipped["blank"]:
            facts += f", {skipped} skipped ({', '.join(self.report.skipped)})"
        return facts

    def _lengths(self, limit: int, *, longer: bool) -> str:
        total, counted = self.rows * len(self.text_keys), len(self.lengths)
        median, most = np.median(self.lengths), self.lengths.max()
        text = f"  {total:,} texts of {median:.0f} tokens (median), {most:,} at most"
        text += f", counted in {counted:,} of them" * (counted < total)
        if not (cut := int((self.lengths > limit).sum())):
            return f"{text}; none is cut"
        text += f"; training cuts {cut:,} of them ({cut / counted:.1%}) at {limit:,} tokens"
        return text + (" (--max-length changes this)" if longer else ", the limit of the model")


def labels_in(label: str) -> list[str] | None:
    """The labels of a text that has a list of them as JSON, or as Python writes it; else None."""
    if label.startswith("["):
        for read in (msgspec.json.decode, ast.literal_eval):
            with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return [*map(str, msgspec.convert(read(label), list[str | bool | float | int]))]
    return None


# Reading.


def given_files(argument: str, value: Any) -> list[Given]:
    """The files of an argument of `train` as a list, in which rows in memory are tables."""
    # A list of rows, and what is no list, is one set.
    one = isinstance(value, str | os.PathLike) or not isinstance(value, Sequence)
    is_rows = not one and len(value) > 0 and all(isinstance(row, Mapping) for row in value)
    files: list[Given] = []
    number = 0
    for file in [value] if one or is_rows else value:
        if not isinstance(file, str | os.PathLike):
            number += 1
            name = "rows" if argument == "files" else f"{argument}_rows"
            file = (name + f"_{number}" * (number > 1), _memory_table(file, argument))
        files.append(file)
    return files


def _memory_table(rows: Any, argument: str) -> pa.Table:
    """A DataFrame, an Arrow table, or rows by name of the column, as an Arrow table."""
    try:
        if hasattr(rows, "__arrow_c_stream__") or type(rows).__name__ == "DataFrame":
            return pa.table(rows).replace_schema_metadata()
        rows = [*rows_of(rows)]
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.table({name: [row.get(name) for row in rows] for name in names})
    except (AttributeError, TypeError, ValueError) as error:  # Arrow's errors are among them.
        text = f"expected a DataFrame, an Arrow table, dicts or a tf.data.Dataset ({error!s:.200})"
        raise ValueError(f"{argument}: {text}.") from error


def read_files(
    files: Sequence[Given],
    validation: Sequence[Given],
    test: Sequence[Given],
    *,
    task: str | Mapping[str, str] | None,
    columns: Mapping[str, str | Sequence[str]] | None,
    tasks: Sequence[TaskSpec],
    prompts: Prompts,
) -> tuple[list[TrainingFile], list[TrainingFile], list[TrainingFile]]:
    """Reads the training, validation and test files; the arguments are `train`'s."""
    names = [split_weight(given)[0] for given in files]
    given = (columns or {}).items()
    own_names = {key: name if isinstance(name, str) else ",".join(name) for key, name in given}
    if not files:
        raise ValueError("Expected at least one training file, received none.")
    if isinstance(task, Mapping) and (unknown := set(task) - set(names)):
        text = f"expected names among the training files, {', '.join(names)}"
        raise ValueError(f"task: {text}; received {', '.join(sorted(unknown))}.")
    options: dict[str, Any] = {
        "columns": own_names,
        "tasks": TASKS | {spec.name: spec for spec in tasks},
        "prompts": prompts,
    }
    training = [read_file(given, task=task, **options) for given in files]
    check_prompts(prompts, training)
    if not isinstance(prompts, str):
        # The other files may have other names for the same columns.
        key_prompts = {key: text for file in training for key, text in file.prompts.items()}
        options["prompts"] = key_prompts | dict(prompts)

    def read_evaluation(given: Given, split: str) -> TrainingFile:
        if not isinstance(given, tuple) and (folder := cached_path(as_written(given))).is_dir():
            return _read_folder(as_written(given), folder, split)
        try:
            file = read_file(given, task=task, **options)
        except ValueError:  # The given task does not fit: its columns decide.
            file = read_file(given, **options)
        if file.task.metric is None:
            score = " or ".join(SCORED_PAIRS.columns["score"])
            text = f"a file of {file.task.name} cannot evaluate. Add a column {score} to the pairs."
            raise ValueError(f"{file.name}: {text}")
        return file

    evaluations = [
        [read_evaluation(given, split) for given in part]
        for part, split in ((validation, "dev.tsv"), (test, "test.tsv"))
    ]
    every_file = [*training, *evaluations[0], *evaluations[1]]
    used = {_folded(name) for file in every_file for name in file.columns.values()}
    for key, name in own_names.items():
        if _folded(name) not in used:
            known = dict.fromkeys(name for file in every_file for name in file.names)
            keys = known_columns({file.task.name: file.task for file in every_file if file.names})
            text = f"expected a key of {keys} and a name of {', '.join(known)}"
            raise ValueError(f"columns: {text}; received {key!r} for {name!r}.")
    return training, evaluations[0], evaluations[1]


def _read_folder(name: str, folder: Path, split: str) -> TrainingFile:
    """Reads a retrieval set in BEIR's layout, whose relevant pairs are the rows."""
    dataset = read_retrieval_set(folder, splits=(split, "test.tsv", "dev.tsv", "*.tsv"))
    texts = [
        (dataset.queries[query], dataset.corpus[document])
        for query, grades in dataset.judgements.items()
        for document, grade in grades.items()
        if grade > 0 and query in dataset.queries and document in dataset.corpus
    ]
    if not texts:
        text = "expected judgements above 0 of queries and documents in these files, found none"
        raise ValueError(f"{name}: {text}.")
    return TrainingFile(
        name=name,
        task=PAIRS,
        columns={"anchor": "anchor", "positive": "positive"},
        table=table_of(({"anchor": a, "positive": p} for a, p in texts), ("anchor", "positive")),
        content=describe_files(folder)[1],
        retrieval=dataset,
    )


def read_file(
    given: Given,
    *,
    task: str | Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    tasks: Mapping[str, TaskSpec] = TASKS,
    prompts: Prompts = "",
) -> TrainingFile:
    """Reads a file, a table with its name, or a data set, `NAME[SPLIT]`; `=WEIGHT` may follow.

    Its columns decide its task, unless `task` names it. `columns` is key → the file's own name.
    """
    name, weight = split_weight(given)
    requested = task.get(name) if isinstance(task, Mapping) else task
    name, memory = as_written(name), given[1] if isinstance(given, tuple) else None
    path = Path(name) if memory is not None else cached_path(name)
    flags: list[str] = []
    # Some tables are called .txt too, but have tabs.
    is_text = memory is None and _TEXT.search(path.name) is not None
    is_text = is_text and b"\t" not in next(read_lines(path), (0, b""))[1]
    with waiting(f"reading {path.name}"):
        if is_text:
            names: list[str] = []
            renamed = {"text": "text"}
            spec, table, report = _read_text(name, path, requested, tasks)
            content = file_sha256(path)
        else:
            if memory is not None:
                names = memory.column_names
            elif path.exists():
                names = column_names(path, where=name)
            elif path.suffix or not _TFDS.fullmatch(name):
                raise FileNotFoundError(
                    f"{name}: expected a file (.tsv, .csv, .jsonl, .parquet, .txt) or the name of "
                    "a TensorFlow data set, found neither."
                )
            else:
                names = [*DataSet(name).columns]
            flags = _flags(names, columns or {}, name)
            joined = [columns["label"]] if columns and flags else []
            renamed = _renamed([*names, *joined], columns or {})
            spec = task_for([*renamed], name, requested, tasks)
            reader: Table | DataSet
            own = _own_columns(spec, renamed)
            options: Any = {"label": spec.label, "score": spec.score, "flags": flags}
            if flags:
                del own[spec.label or ""]
                own |= {flag: flag for flag in flags}
            if memory is None and not path.exists():
                reader = DataSet(name, own, **options)
            else:
                reader = Table(path if memory is None else memory, own, name=name, **options)
            table, report, content = reader.read(), reader.report, reader.content
            if spec.stands_in_for(NEIGHBOURS):
                sample = [split_sentences(t) for t in table["text"][:_SAMPLE].to_pylist()]
                if requested is None and sum(map(len, sample)) < _RUNNING * len(sample):
                    spec = task_for([*renamed], name, TEXTS.name, tasks)
                else:
                    rows = (split_sentences(text) for text in table["text"].to_pylist())
                    table = _with_neighbours(rows)
    own = _own_columns(spec, renamed)
    return TrainingFile(
        name=name,
        task=spec,
        columns=own,
        table=table,
        report=report,
        content=content,
        names=names,
        flags=flags,
        mixing_weight=weight,
        prompts=prompts_by_key(prompts, spec, own),
    )


def _flags(names: Sequence[str], columns: Mapping[str, str], where: str) -> list[str]:
    """The columns of 0 and 1 that `columns` gives as the label, such as "joy,anger"; or none."""
    known = {_folded(name): name for name in names}
    given = columns.get("label", "")
    if "," not in given or _folded(given) in known:
        return []
    folded = [_folded(name) for name in given.split(",")]
    if missing := [name for name in folded if name not in known]:
        raise ValueError(f"{where}: expected columns of 0 and 1, has no {', '.join(missing)}.")
    return [known[name] for name in folded]


def _own_columns(spec: TaskSpec, renamed: Mapping[str, str]) -> dict[str, str]:
    """Key of a task → the file's own name of the column."""
    return {key: renamed[name] for key, name in spec.columns_in([*renamed]).items()}


def _read_text(
    name: str, path: Path, requested: str | None, tasks: Mapping[str, TaskSpec]
) -> tuple[TaskSpec, pa.Table, ReadReport]:
    """Reads a plain text, which is running text if a paragraph has several sentences."""
    reader = TextReader(path)
    sentences = [*reader.sentences()]
    runs = len(sentences) >= _RUNNING * max(1, reader.report.rows)
    spec = task_for(["text"], name, requested or (NEIGHBOURS if runs else TEXTS).name, tasks)
    if spec.stands_in_for(NEIGHBOURS):
        return spec, _with_neighbours([sentences]), reader.report
    (key,) = spec.columns_in(["text"])
    return spec, pa.table({key: pa.array(sentences, TEXT)}), reader.report


def _with_neighbours(texts: Iterable[Sequence[str]]) -> pa.Table:
    """The sentences of each text, each with the one before and the one after it."""
    names = ("previous", "text", "next")
    triples = (row for text in texts for row in zip(text, text[1:], text[2:], strict=False))
    return table_of((dict(zip(names, row, strict=True)) for row in triples), names)


def _folded(name: str) -> str:
    return name.strip().casefold()


def _renamed(names: Iterable[str], columns: Mapping[str, str]) -> dict[str, str]:
    """The key or name that a column is used as → its name in the file; keys come first."""
    keys = {_folded(column): key for key, column in columns.items()}
    keyed: dict[str, str] = {}
    for name in names:
        if (key := keys.get(_folded(name))) is not None:
            keyed.setdefault(key, name)
    return keyed | {n: n for n in names if _folded(n) not in keys and n not in keyed}


def split_weight(given: Given) -> tuple[str, float | None]:
    """Splits `given` into the name and the weight after `=`, which is None if there is none."""
    if isinstance(given, tuple):
        return given[0], None
    given = os.fspath(given)
    name, equals, weight = given.rpartition("=")
    if not equals or (not remote_path(given) and Path(given).exists()):
        return given, None
    try:
        value = float(weight)
    except ValueError:
        return given, None
    if not 0 < value < float("inf"):
        raise ValueError(f"{given}: expected a weight above 0 after '=', received {weight}.")
    return name, value


def prompts_by_key(given: Prompts, task: TaskSpec, columns: Mapping[str, str]) -> dict[str, str]:
    """The prompts of a row's texts, by key; `given` has keys or the file's own column names."""
    keys = [key for key in task.texts if key in columns]
    if isinstance(given, str):
        prompts = dict.fromkeys(keys, given)
    else:
        prompts = {key: given.get(key, given.get(columns[key], "")) for key in keys}
    return {key: prompt for key, prompt in prompts.items() if prompt}


def check_prompts(given: Prompts, files: Sequence[TrainingFile]) -> None:
    """Refuses prompts for columns that no training file has."""
    pairs = [(key, file.columns[key]) for file in files for key in file.text_keys]
    names = dict.fromkeys(name for pair in pairs for name in pair)
    if not isinstance(given, str) and (unknown := [name for name in given if name not in names]):
        text = f"expected columns of the training files that hold texts, {', '.join(names)}"
        raise ValueError(f"prompts: {text}; received {', '.join(unknown)}.")


# Statistics.


def add_statistics(
    file: TrainingFile, tokenizer: Any, *, scores: tuple[float, float] | None = None
) -> TrainingFile:
    """Counts the tokens of a file, and finds the range of its scores, if that is not given."""
    check_rows(file)
    interval = math.ceil(file.rows * len(file.text_keys) / _COUNTED)
    table = file.table.take(np.arange(0, file.rows, interval)) if interval > 1 else file.table
    columns = [with_prompt(table[key], file.prompts.get(key)) for key in file.text_keys]
    file.lengths = _token_counts(columns, tokenizer)
    if file.task.score:
        file.scores = score_range(file.name, *file.score_limits, scores)
    return file


def check_rows(file: TrainingFile) -> None:
    """Refuses a file from whose rows, labels or scores nothing can be learned."""
    if not file.rows:
        raise ValueError(f"{file.name}: expected rows, found none that can be used.")
    classes, (lowest, highest) = file.classes, file.score_limits
    if file.is_multi_label and len(file.table[file.task.label].unique()) < 2:
        raise ValueError(f"{file.name}: expected different labels, all rows have the same.")
    least = 1 if file.is_multi_label else 2
    if file.task.label is not None and not least <= len(classes) <= _MOST_CLASSES:
        text = f"expected 2 to {_MOST_CLASSES:,} different labels, found {len(classes):,}"
        raise ValueError(f"{file.name}: {text}: {', '.join([*classes][:3])}.")
    if lowest == highest:
        raise ValueError(f"{file.name}: expected different scores, all of them are {lowest:g}.")


def with_prompt(texts: pa.ChunkedArray, prompt: str | None) -> pa.ChunkedArray:
    """A column of texts with a prompt before each."""
    if not prompt:
        return texts
    return pc.binary_join_element_wise(pa.scalar(prompt, TEXT), texts, pa.scalar("", TEXT))


def _token_counts(columns: Sequence[pa.ChunkedArray], tokenizer: Any) -> np.ndarray:
    """The tokens of each text of some columns, int `[texts]`."""
    count = tokenizer.token_counts
    if len(columns[0]) > _AT_ONCE:  # A graph takes half the time, but a second to be traced.
        count = tf.function(count, input_signature=[tf.TensorSpec([None], tf.string)])
    parts = (
        texts.slice(start, _AT_ONCE)
        for texts in columns
        for start in range(0, len(texts), _AT_ONCE)
    )
    return np.concatenate([*in_threads(lambda part: np.asarray(count(part.to_pylist())), parts)])


def _combined(hashes: Sequence[np.ndarray]) -> np.ndarray:
    """Combines several hashes of each row, in their order, into one; all are uint64 `[rows]`."""
    result = hashes[0]
    for column in hashes[1:]:
        result = result * _ODD + (column ^ (result >> np.uint64(32)))
    return result


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _LINE // 2 else text[: _LINE // 2 - 1] + "…"


def paired_keys(task: TaskSpec) -> list[str]:
    """The keys of the texts that make two rows the same; negatives do not."""
    if task.stands_in_for(NEIGHBOURS):
        return ["text"]
    return [key for key in task.texts if key not in task.optional]


def pair_keys(hashes: Sequence[np.ndarray], task: TaskSpec) -> np.ndarray:
    """A key of each row's texts in any order, int64 `[rows]`; the hashes are those of the texts."""
    if task.stands_in_for(NEIGHBOURS):
        return hashes[0].view(np.int64)
    rows = zip(*np.sort(np.stack(hashes), axis=0).tolist(), strict=True)
    return np.fromiter(map(hash, rows), np.int64, len(hashes[0]))


def _keys_of_rows(rows: Sequence[Row], task: TaskSpec) -> np.ndarray:
    """`pair_keys` of rows that are no table."""
    texts = ([row[key] for row in rows] for key in paired_keys(task))
    return pair_keys([_hashes(column) for column in texts], task)


def _hashes(texts: Sequence[str]) -> np.ndarray:
    return text_hashes(pa.chunked_array([pa.array(texts, TEXT)]))


# Validation and test.


def validation_and_test_sets(
    files: Sequence[TrainingFile],
    validation: Sequence[TrainingFile],
    test: Sequence[TrainingFile],
    prompts: Sequence[str] = ("", ""),
    *,
    held_out: bool = True,
) -> tuple[Sets, Sets]:
    """The validation sets, by which the best step is chosen, and the test sets, used once.

    Without files for both, rows of the training files are held out, half of them for the test if
    there are enough. Without validation files, only the validation rows are held out. `prompts`
    are those of the queries and of the documents of retrieval sets. Without `held_out` no rows are,
    and there may be no validation set.
    """
    if held_out and not (validation or test):
        return _held_out(files, tested=True)
    tests = _sets_from_files(test, files, [], prompts)
    if validation:
        sets = _sets_from_files(validation, files, tests, prompts)
    else:
        sets = _held_out(files, tested=False)[0] if held_out else []
    return [without_rows_of(part, tests) for part in sets], tests


def short_names(files: Sequence[TrainingFile]) -> list[str]:
    """Short and different names, which are valid names of tasks."""
    names: list[str] = []
    for file in files:
        letters = Path(file.name).name.split(".")[0]
        letters = "".join(c if f"a{c}".isidentifier() else " " for c in letters)
        stem = re.sub(r"\W+", "_", letters).strip("_") or "data"
        stem = stem if stem.isidentifier() else f"data_{stem}"
        variants = (f"{stem}_{number}" for number in itertools.count(len(names) + 1))
        used = {*names, *_RESERVED}
        names.append(next(name for name in itertools.chain([stem], variants) if name not in used))
    return names


def _held_out(files: Sequence[TrainingFile], *, tested: bool) -> tuple[Sets, Sets]:
    """Sets of rows of the training files; either all files have test rows, or none has."""
    pairs = zip(files, short_names(files), strict=True)
    named = [(file, name) for file, name in pairs if file.task.metric is not None]
    if not named:
        text = "expected a file with scores or labels: pairs without a score cannot evaluate"
        raise ValueError(f"validation: {text}. Give --validation FILE.")
    parts = [held_out_rows(file, tested=tested) for file, _ in named]
    if not all(test for _, test in parts):
        parts = [([*validation, *test], []) for validation, test in parts]
    sets, tests = [], []
    for (file, name), (validation, test) in zip(named, parts, strict=True):
        sets.append(validation_set(file, validation, name, others=test))
        if test:
            tests.append(validation_set(file, test, name, others=validation))
    return sets, tests


def _sets_from_files(
    evaluated: Sequence[TrainingFile],
    files: Sequence[TrainingFile],
    others: Sets,
    prompts: Sequence[str],
) -> Sets:
    """Sets of rows of files; labels are taught by the training file that has them."""
    sets = []
    for file, name in zip(evaluated, short_names(evaluated), strict=True):
        check_rows(file)
        if file.retrieval is not None:
            task = dataclasses.replace(PAIRS, metric=_ndcg(file.retrieval, *prompts))
            sets.append(ValidationSet(name, task, file.table.to_pylist()))
            continue
        rows = spread(file.table, file.rows, _MOST_ROWS)
        if file.task.label is None:
            sets.append(ValidationSet(name, file.task, rows, prompts=file.prompts))
            continue
        candidates = [each for each in files if each.task.name == file.task.name]
        if not candidates:
            text = f"no training file of the task {file.task.name} teaches its labels"
            raise ValueError(f"{file.name}: {text}. Give one, or evaluate on another file.")
        taught = min(candidates, key=lambda each: len(file.classes.keys() - each.classes))
        if file.is_multi_label != taught.is_multi_label:
            raise ValueError(f"{file.name}: expected lists of labels as in {taught.name}, or none.")
        if labels := file.classes.keys() - taught.classes:
            known, other = (", ".join(sorted(names)[:8]) for names in (taught.classes, labels))
            raise ValueError(f"{file.name}: expected the labels {known}; received others: {other}.")
        same_task = [part for part in others if part.task.name == file.task.name]
        other_rows = [row for part in same_task for row in part.rows]
        sets.append(validation_set(taught, rows, name, others=other_rows))
    return sets


def _ndcg(dataset: RetrievalSet, query_prompt: str, document_prompt: str) -> Metric:
    """Measures an encoder on all of a retrieval set, whatever the rows are."""

    def scores(encode: Encode, rows: Sequence[Row], examples: Sequence[Row]) -> Scores:
        run = retrieve(
            dataset,
            lambda texts: encode([query_prompt + text for text in texts]),
            lambda texts: encode([document_prompt + text for text in texts]),
        )
        return retrieval_scores(dataset.judgements, run)

    sizes = f"{len(dataset.judgements):,} queries among {len(dataset.corpus):,} documents"
    return Metric("ndcg@10", f"nDCG@10 of {sizes}, by cosine", scores)


def held_out_rows(file: TrainingFile, *, tested: bool = True) -> tuple[list[Row], list[Row]]:
    """Chooses validation and test rows by their first texts; no test rows if the rows are few.

    If possible, the first text of a row in one part is that of no row of the other part, and of no
    training row.
    """
    share = _SHARE if file.rows >= _FEW else _SHARE_OF_FEW
    share = min(share, (1 + tested) * MOST_VALIDATION_ROWS / file.rows)
    count, keys = max(2, round(share * file.rows)), file.pair_keys
    if file.task.stands_in_for(NEIGHBOURS):
        # In one piece: rows that are near each other share sentences.
        places = [*range(max(0, file.rows - count), file.rows)]
        groups = [places[: len(places) // 2], places[len(places) // 2 :]]
    else:
        groups = _groups(file.hashes[file.task.texts[0]], count)
        # A few first texts with many rows each cannot be divided: then by all texts of a row.
        groups = groups or _groups(keys, count)
    if not 2 <= sum(map(len, groups)) < file.rows:
        text = f"expected enough rows to hold some out for validation, found {file.rows}"
        raise ValueError(f"{file.name}: {text}. Add rows, or give --validation FILE.")
    parts: list[list[int]] = [[], []]
    for places in groups:  # Whole groups, in two parts with about the same number of rows.
        min(parts, key=len).extend(places)
    test_keys = {*keys[parts[1]].tolist()}
    parts[0] = [place for place in parts[0] if keys[place] not in test_keys]
    if not tested or min(map(len, parts)) < _FEWEST_TESTED:
        parts = [[place for places in groups for place in places], []]
    validation, test = (file.table.take(pa.array(part, pa.int64())).to_pylist() for part in parts)
    return validation, test


def _groups(keys: np.ndarray, wanted: int) -> list[list[int]]:
    """The places of whole groups of rows with equal keys; the groups have about `wanted` rows."""
    chosen: dict[int, list[int]] = {}
    count = 0
    for key, size in zip(
        *(part.tolist() for part in np.unique(keys, return_counts=True)), strict=True
    ):
        if count >= wanted:
            break
        if count + size <= 2 * wanted:
            chosen[key] = []
            count += size
    if count < 2:
        return []
    for place in np.flatnonzero(np.isin(keys, np.array([*chosen], keys.dtype))).tolist():
        chosen[int(keys[place])].append(place)
    return [*chosen.values()]


def validation_set(
    file: TrainingFile, rows: Sequence[Row], name: str, others: Iterable[Row] = ()
) -> ValidationSet:
    """A set of rows; with labels, also training rows for a classifier, but none of `others`."""
    examples: list[Row] = []
    if file.task.label is not None:
        held_keys = _keys_of_rows([*rows, *others], file.task)
        table = file.table.filter(~np.isin(file.pair_keys, held_keys))
        examples = spread(table, table.num_rows, _FITTED)
    return ValidationSet(name, file.task, rows, examples, labels_of=file.name, prompts=file.prompts)


def without_rows_of(one: ValidationSet, others: Sequence[ValidationSet]) -> ValidationSet:
    """The set without the rows of other sets, so that test rows do not choose the best step."""
    held = np.isin(_keys_of_rows(one.rows, one.task), _held_keys(one.task, others))
    rows = [row for row, is_held in zip(one.rows, held, strict=True) if not is_held]
    if len(rows) < 2:
        text = f"expected validation rows that are not test rows too, found {len(rows)}"
        raise ValueError(f"{one.name}: {text}. Give other rows.")
    return dataclasses.replace(one, rows=rows)


def leave_out(file: TrainingFile, sets: Sequence[ValidationSet]) -> TrainingFile:
    """Counts the rows of a file that the sets hold, and others that share their texts."""
    texts = [row[k] for part in sets for row in part.rows for k in part.task.texts if k in row]
    held = np.isin(file.pair_keys, _held_keys(file.task, sets))
    shared = [np.isin(hashes, _hashes(texts)) for hashes in file.hashes.values()]
    file.left_out = int(np.count_nonzero(held))
    file.shared = int(np.count_nonzero(np.any(shared, axis=0) & ~held))
    if not file.kept:
        text = "expected training rows, found only validation or test rows. Give other rows"
        raise ValueError(f"{file.name}: {text}.")
    return file


def _held_keys(task: TaskSpec, sets: Iterable[ValidationSet]) -> np.ndarray:
    """The keys of the rows of all sets of a task."""
    rows = [row for part in sets if part.task.name == task.name for row in part.rows]
    return _keys_of_rows(rows, task)


def spread(table: pa.Table, count: int, most: int) -> list[Row]:
    """At most `most` of about `count` rows, evenly spread, because a file may be sorted."""
    interval = max(1.0, count / most)
    places = np.arange(table.num_rows)
    mask = np.trunc(places / interval) != np.trunc((places - 1) / interval)
    return table.filter(mask).to_pylist()


# What is trained on.


def training_table(file: TrainingFile, sets: Sequence[ValidationSet]) -> pa.Table:
    """The rows of a file, without those of the sets.

    If a hard negative is a positive of the same text in another row, the row's own positive
    replaces it: the loss does not use that as a negative.
    """
    table = file.table
    for key, mask in file.false_negatives.items():
        column = pc.if_else(pa.array(mask), table[file.task.needed[1]], table[key])
        table = table.set_column(table.column_names.index(key), key, column)
    return table.filter(~np.isin(file.pair_keys, _held_keys(file.task, sets)))


def loss_keys(file: TrainingFile, loss: TaskLoss, *, scored: bool) -> dict[str, str]:
    """Feature of the loss of a file → key of a row; `scored`: a cross-encoder scores the rows."""
    features = [feature.name for feature in loss.features if feature.kind != "vector"]
    keys = {feature: file.task.key_for(feature, file.columns) for feature in features}
    row_keys = {*file.table.column_names} | ({"score"} if scored else set())
    if missing := [key for key in keys.values() if key not in row_keys]:
        text = f"the loss reads a column {missing[0]}, found {', '.join(file.columns)}"
        raise ValueError(f"{file.name}: {text}. Add it, or change the loss.")
    return keys


def loss_table(
    file: TrainingFile,
    sets: Sequence[ValidationSet],
    encoder: TrainableEncoder,
    scorer: CrossEncoder | None,
    loss: TaskLoss,
) -> pa.Table:
    """The training rows of a file as a loss reads them: feature → texts with prompts, or numbers.

    For the vector of a guide, the column has the text without its prompt. If the loss predicts the
    defined words, rows whose word is not one token are left out.
    """
    task, table = file.task, training_table(file, sets)
    keys = loss_keys(file, loss, scored=scorer is not None)
    numbers = [keys[f.name] for f in loss.features if f.name in keys and not f.is_text]
    if task.stands_in_for(DEFINITIONS) and "word" in numbers:
        single_ids: Any = encoder.tokenizer.single_ids  # type: ignore[attr-defined]
        parts = batched(table["word"].to_pylist(), _AT_ONCE)
        ids = np.concatenate([np.asarray(single_ids(part)) for part in parts])
        place = table.column_names.index("word")
        table = table.set_column(place, "word", pa.array(ids)).filter(pa.array(ids != 0))
    elif scorer is not None and task.stands_in_for(UNSCORED_PAIRS):
        # A cross-encoder's scores are in 0 … 1.
        table = pa.Table.from_pylist([*scored_by(scorer, rows_of(table))])
    columns: dict[str, Any] = {}
    for feature in loss.features:
        key = keys.get(feature.name.removeprefix("guide_"), "")
        if feature.kind == "vector" and not key:  # Another model gives it.
            continue
        column = table[key]
        if feature.is_text:
            column = with_prompt(column, file.prompts.get(key))
        elif key == task.label:
            column = pc.index_in(column, value_set=pa.array([*file.label_numbers], TEXT))
        elif file.scores:
            column = pa.array(file.target(column.to_numpy()))
        columns[feature.name] = column
    return pa.table(columns)


def guided_rows(
    file: TrainingFile,
    sets: Sequence[ValidationSet],
    encoder: TrainableEncoder,
    guide: TrainableEncoder | VectorFile,
    loss: TaskLoss,
) -> Iterator[dict[str, Any]]:
    """The rows of `loss_table`, with the vectors of the guide."""
    table = loss_table(file, sets, encoder, None, loss)
    names = [feature.name for feature in loss.features if feature.kind == "vector"]
    for start in range(0, len(table), _AT_ONCE):
        part = table.slice(start, _AT_ONCE)
        vectors = [guide.encode(part[name].to_pylist()) for name in names]
        for row, *row_vectors in zip(part.to_pylist(), *vectors, strict=True):
            yield row | dict(zip(names, row_vectors, strict=True))


def teacher_texts(
    teacher: TrainableEncoder | VectorFile,
    encoder: TrainableEncoder,
    files: Sequence[TrainingFile],
    sets: Sequence[ValidationSet],
) -> list[tuple[str, str]]:
    """The texts of the training rows as a teacher reads them, each with its text for the encoder.

    Another teacher than the encoder gets no prompts of the files: it has its own, if any. A file of
    vectors teaches only the texts that are in it.
    """
    pairs: dict[tuple[str, str], None] = {}
    for file in files:
        table = training_table(file, sets)
        columns = []
        for key in file.task.texts:
            if key in table.column_names:
                prompted = with_prompt(table[key], file.prompts.get(key)).to_pylist()
                read = prompted if teacher is encoder else table[key].to_pylist()
                columns.append(zip(read, prompted, strict=True))
        pairs |= dict.fromkeys(itertools.chain.from_iterable(zip(*columns, strict=True)))
    if not isinstance(teacher, VectorFile):
        return [*pairs]
    covered = [pair for pair in pairs if pair[0] in teacher]
    if not covered:
        none = f"found none of {len(pairs):,} texts in the file"
        raise ValueError(f"teacher: {none}. Embed the training texts with use-st5 embed.")
    return covered


def teacher_rows(
    teacher: TrainableEncoder | VectorFile, texts: Sequence[tuple[str, str]]
) -> Iterator[Row]:
    """The rows from which a teacher's vectors are learned, as `TeacherLoss` reads them."""
    for chunk in batched(texts, _AT_ONCE):
        vectors = teacher.encode([text for text, _ in chunk])
        for (_, text), vector in zip(chunk, vectors, strict=True):
            yield {"sentence": text, "teacher": vector}
