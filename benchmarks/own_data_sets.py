"""The real data of the `own_data` benchmarks: each set as a user's files, and its measures."""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from experiments.corpora import MEDQUAD, inference_triplets
from use_st5.data.data_folder import DataFolder
from use_st5.data.text_reader import split_sentences
from use_st5.evaluation.classification import MR, SICK_E, SST2, TREC
from use_st5.evaluation.labelled_texts import LabelledTexts
from use_st5.evaluation.sts import STSB_DEV, STSB_TEST, STSB_TRAIN, read_sts
from use_st5.io.files import atomic_path
from use_st5.training.rows import add_statistics, read_file, spread, validation_set
from use_st5.training.validation import ValidationSet

Rows = list[dict[str, Any]]
Parts = dict[str, Rows]
Paths = Mapping[str, Path]
_PARTS = ("train", "dev", "test")
_MOST = "8000,1000,2000"
# In the order of SICK's labels.
_INFERENCE = ("contradiction", "neutral", "entailment")


def scored_pairs(data: Path) -> Parts:
    """STS-B: the similarity of two sentences."""
    sets = zip(_PARTS, (STSB_TRAIN, STSB_DEV, STSB_TEST), strict=True)
    return {
        part: [
            {"sentence1": pair.first, "sentence2": pair.second, "score": pair.score}
            for pair in read_sts(DataFolder(data), source).pairs
        ]
        for part, source in sets
    }


def inference(data: Path) -> Parts:
    """SICK: whether one sentence follows from the other."""
    return {
        part: [
            {"premise": premise, "hypothesis": hypothesis, "label": _INFERENCE[label]}
            for premise, hypothesis, label in zip(*texts.columns, texts.labels, strict=True)
        ]
        for part, texts in SICK_E.read(DataFolder(data)).items()
    }


def triplets(data: Path) -> Parts:
    """Premises with an entailed and a contradicting hypothesis, of four inference corpora."""
    return divided(inference_triplets(data), "anchor")


def answers(data: Path) -> Parts:
    """MedQuAD: medical questions and the passages that answer them."""
    return divided(MEDQUAD.examples(data), "anchor")


def domain(data: Path) -> Parts:
    """Sentences of MedQuAD's answers, without a label; measured by its questions and answers."""
    parts = answers(data)
    texts = (text for row in parts["train"] for text in split_sentences(row["positive"]))
    single = [{"text": text} for text in dict.fromkeys(texts) if 4 <= len(text.split()) <= 60]
    return {**parts, "train": single}


def classes(dataset: Any) -> Callable[[Path], Parts]:
    """Sentences with a label."""

    def read(data: Path) -> Parts:
        rows = {part: _labelled(texts) for part, texts in dataset.read(DataFolder(data)).items()}
        if "dev" in rows:
            return rows
        parts = divided(rows["train"], "text")
        if "test" in rows:  # The set has its own test part: this tenth is for training, too.
            return {"train": parts["train"] + parts["test"], "dev": parts["dev"]} | {
                "test": rows["test"]
            }
        return parts

    return read


SETS: Mapping[str, Callable[[Path], Parts]] = {
    "stsb": scored_pairs,
    "sick": inference,
    "nli": triplets,
    "medquad": answers,
    "medquad_text": domain,
    "trec": classes(TREC),
    "sst2": classes(SST2),
    "mr": classes(MR),
}
# The sets that measure forgetting: one of each kind of task.
OTHERS = ("stsb", "sick", "nli", "medquad", "trec")


def divided(rows: Iterable[Mapping[str, Any]], key: str) -> Parts:
    """Splits rows 8 : 1 : 1 by the hashes of a text, so that equal texts stay together."""
    parts: Parts = {part: [] for part in _PARTS}
    for row in rows:
        digest = hashlib.blake2b(row[key].encode(), digest_size=4).digest()
        place = int.from_bytes(digest, "big") % 10
        parts["train" if place < 8 else _PARTS[place - 7]].append(dict(row))
    return parts


def parser_of(description: str | None, names: Iterable[str]) -> argparse.ArgumentParser:
    """The arguments that all these benchmarks share; `files_of` reads them."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder of the unpacked data")
    parser.add_argument("out", type=Path, help="keeps results; another one for each --most")
    parser.add_argument("--sets", default=",".join(names))
    parser.add_argument(
        "--most", default=_MOST, help="rows of the training, development and test parts"
    )
    return parser


def files_of(arguments: argparse.Namespace, names: Iterable[str] = SETS) -> dict[str, Paths]:
    """The sets' files, each with at most the rows of `--most`, spread evenly over the part.

    Raises:
        ValueError: The folder holds results of other numbers of rows.
    """
    folder = arguments.out / "data" / arguments.most
    if other_folders := [
        each.name for each in (arguments.out / "data").glob("*") if each != folder
    ]:
        raise ValueError(
            f"{arguments.out}: expected results of --most {arguments.most}, found {other_folders}."
        )
    limits = dict(zip(_PARTS, map(int, arguments.most.split(",")), strict=True))
    return {name: _write_parts(name, arguments.data, folder, limits) for name in names}


def _write_parts(name: str, data: Path, folder: Path, most: Mapping[str, int]) -> Paths:
    paths = {part: folder / f"{name}_{part}.csv" for part in _PARTS}
    if not all(path.exists() for path in paths.values()):
        folder.mkdir(parents=True, exist_ok=True)
        for part, rows in SETS[name](data).items():
            sample = spread(pa.Table.from_pylist(rows), len(rows), most[part])
            text = io.StringIO(newline="")
            table = csv.DictWriter(text, [*sample[0]])
            table.writeheader()
            table.writerows(sample)
            with atomic_path(paths[part]) as temporary:
                temporary.write_text(text.getvalue(), encoding="utf-8", newline="")
    return paths


def measured(name: str, paths: Paths, part: str) -> ValidationSet:
    """A part as a validation set; with labels, a classifier is fitted to rows of "train"."""
    source = read_file(paths[part])
    if source.task.label is None:
        return ValidationSet(name, source.task, [*source])
    train = read_file(paths["train"])
    return validation_set(add_statistics(train, _Words()), [*source], name)


class _Words:
    """Counts words instead of tokens, because lengths do not matter here."""

    def token_counts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(text.split()) for text in texts])


def main_score(found: ValidationSet, encode: Callable[[list[str]], np.ndarray]) -> float:
    """The main measure of a set, times 100."""
    return 100 * found.scores(encode)[found.metric.name]


def all_scores(
    found: ValidationSet, encode: Callable[[list[str]], np.ndarray], name: str
) -> dict[str, float]:
    """The main measure under `name`, and each measure under `name/measure`, times 100."""
    scores = {measure: 100 * value for measure, value in found.scores(encode).items()}
    main = scores[found.metric.name]
    return {name: main, **{f"{name}/{measure}": value for measure, value in scores.items()}}


def _labelled(texts: LabelledTexts) -> Rows:
    (column,) = texts.columns
    return [
        {"text": text, "label": str(label)}
        for text, label in zip(column, texts.labels.tolist(), strict=True)
    ]
