"""English sets of semantic textual similarity: the files as published, and where they come from."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation._text_files import (
    check_new_id,
    numbered_lines,
    parse_score,
    read_columns,
    read_side_by_side,
    split_fields,
)

_SEMEVAL_INPUT = re.compile(r"STS\d*\.input\.(.+)\.txt")
_STSB_FIELDS = (7, 9)


@dataclass(frozen=True)
class STSPair:
    """Two sentences and people's mean judgement of their similarity.

    Attributes:
        first: A sentence.
        second: Another.
        score: The gold score: 0 to 5 in STS, 1 to 5 in SICK; NaN where none was given.
    """

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class STSSet:
    """A named test set.

    Attributes:
        name: For example "STS12".
        subsets: Name of a part (the source of its sentences) → its pairs.
    """

    name: str
    subsets: dict[str, list[STSPair]]

    @property
    def pairs(self) -> list[STSPair]:
        """The pairs of all subsets, in order."""
        return [pair for subset in self.subsets.values() for pair in subset]

    def __len__(self) -> int:
        """Number of pairs in all subsets."""
        return sum(map(len, self.subsets.values()))


def read_semeval_sts(
    folder: str | Path, *, name: str | None = None, unscored: bool = False
) -> STSSet:
    """Reads a year of SemEval STS: `STS.input.X.txt` beside `STS.gs.X.txt` for each subset X.

    Lines without a gold score are skipped: from 2015 on the organisers scored a part of the input.
    Gold files without input (STS13's SMT, withdrawn for its licence) are left out.

    Args:
        folder: The folder of one year.
        name: The set's name; by default the folder's name.
        unscored: Whether lines without a gold score are read, too.

    Raises:
        FileNotFoundError: The folder or a gold file is missing.
        ValueError: Input and gold differ in their number of lines; a line is not in the format; a
            subset has no pairs.
    """
    folder = Path(folder)
    inputs = {
        match[1]: path
        for path in sorted(folder.glob("STS*.input.*.txt"))
        if (match := _SEMEVAL_INPUT.fullmatch(path.name))
    }
    if not inputs:
        raise FileNotFoundError(f"{folder}: expected files STS.input.*.txt, found none.")
    subsets = {}
    for subset, path in inputs.items():
        gold = path.with_name(path.name.replace(".input.", ".gs.", 1))
        if not gold.exists():
            raise FileNotFoundError(f"{gold}: expected the gold scores of {path.name}.")
        subsets[subset] = list(_semeval_pairs(path, gold, unscored))
        if not subsets[subset]:
            raise ValueError(f"{path}: expected pairs that {gold.name} has scores of, found none.")
    return STSSet(name or folder.name, subsets)


def read_stsb(path: str | Path, *, name: str | None = None) -> STSSet:
    """Reads a file of the STS Benchmark: tab-separated, no quoting, no header.

    Columns: genre, file, year, id, score, first sentence, second sentence; in some lines a source
    for each sentence, which is ignored.
    The subsets are the genres (main-news, main-captions, main-forums).

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: A line is not in the format.
    """
    path = Path(path)
    subsets: dict[str, list[STSPair]] = {}
    for number, line in numbered_lines(path):
        fields = split_fields(path, number, line, at_least=7)
        if len(fields) not in _STSB_FIELDS:
            raise ValueError(
                f"{path}:{number}: expected 7 tab-separated fields, or 9 with sources, "
                f"received {len(fields)}: {line[:80]!r}"
            )
        pair = checked_pair(path, number, fields[5:7], parse_score(path, number, fields[4]))
        subsets.setdefault(fields[0], []).append(pair)
    return _named(path, name, subsets)


def read_sick(path: str | Path, *, name: str | None = None) -> STSSet:
    """Reads the relatedness of a SICK file (Marelli et al. 2014): tab-separated with a header.

    Columns used: pair_ID, sentence_A, sentence_B, relatedness_score.

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: A column is missing; a line is not in the format; an id stands twice.
    """
    path = Path(path)
    columns = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score")
    pairs: dict[str, STSPair] = {}
    for number, (one, *sentences, score) in read_columns(path, columns):
        check_new_id(path, number, one, pairs)
        pairs[one] = checked_pair(path, number, sentences, parse_score(path, number, score))
    return _named(path, name, {"all": [*pairs.values()]} if pairs else {})


def _named(path: Path, name: str | None, subsets: dict[str, list[STSPair]]) -> STSSet:
    if not subsets:
        raise ValueError(f"{path}: expected pairs of sentences, found none.")
    return STSSet(name or path.stem, subsets)


def _semeval_pairs(path: Path, gold: Path, unscored: bool) -> Iterator[STSPair]:
    for number, line, score in read_side_by_side(path, gold):
        scored = bool(score.strip())
        if scored or unscored:
            sentences = split_fields(path, number, line, at_least=2)[:2]
            value = parse_score(gold, number, score) if scored else math.nan
            yield checked_pair(path, number, sentences, value)


def checked_pair(path: Path, number: int, sentences: Sequence[str], score: float) -> STSPair:
    """The pair of line `number` of `path`, its sentences without white space at their ends.

    Raises:
        ValueError: There are not two sentences, or one is blank.
    """
    stripped = [sentence.strip() for sentence in sentences]
    if len(stripped) != 2 or not all(stripped):
        raise ValueError(f"{path}:{number}: expected two sentences, received {stripped}.")
    return STSPair(stripped[0], stripped[1], score)


_LICENCE = "scores CC BY-SA 4.0; each source of sentences has its own, see the set's readme"
_STSB_LICENCE = "scores CC BY-SA 4.0; each source of sentences has its own, see its LICENSE.txt"
# Year → the task, and the folder in its archive, which SentEval renames to STS{year}-en-test.
_SEMEVAL = {
    "12": ("SemEval-2012 task 6", "test-gold"),
    "13": ("the *SEM 2013 shared task", "test-gs"),
    "14": ("SemEval-2014 task 10", "sts-en-test-gs-2014"),
    "15": ("SemEval-2015 task 2", "test_evaluation_task2a"),
    "16": ("SemEval-2016 task 1", "sts2016-english-with-gs-v1.0"),
}


def _semeval(year: str) -> DataSource:
    task, archived = _SEMEVAL[year]
    folders = (f"STS{year}-en-test", f"STS{year}", archived)
    return DataSource(
        f"STS{year}",
        tuple(f"{folder}/STS*.txt" for folder in folders),
        f"{task}: its test data with gold scores, http://ixa2.si.ehu.eus/stswiki, or "
        "SentEval's data/downstream/get_transfer_data.bash",
        _LICENCE,
    )


def _stsb(part: str) -> DataSource:
    return DataSource(
        f"STS-B {part}",
        (f"stsbenchmark/sts-{part}.csv", f"STSBenchmark/sts-{part}.csv"),
        "the STS Benchmark of SemEval-2017 task 1, http://ixa2.si.ehu.eus/stswiki (the original, "
        "with seven tab-separated columns; GLUE's copy has others)",
        _STSB_LICENCE,
    )


def _sick(part: str) -> DataSource:
    file = "SICK_test_annotated.txt" if part == "test" else f"SICK_{part}.txt"
    return DataSource(
        f"SICK-R {part}",
        (f"sick2014/{file}", f"SICK/{file}"),
        "SemEval-2014 task 1, http://marcobaroni.org/composes/sick.html",
        "CC BY-NC-SA 3.0",
    )


STS12, STS13, STS14, STS15, STS16 = map(_semeval, _SEMEVAL)
STSB_TRAIN, STSB_DEV, STSB_TEST = map(_stsb, ("train", "dev", "test"))
SICK_TRAIN, SICK_TRIAL, SICK_TEST = map(_sick, ("train", "trial", "test"))

_READERS: dict[DataSource, Callable[..., STSSet]] = {
    STS12: read_semeval_sts,
    STS13: read_semeval_sts,
    STS14: read_semeval_sts,
    STS15: read_semeval_sts,
    STS16: read_semeval_sts,
    STSB_TRAIN: read_stsb,
    STSB_DEV: read_stsb,
    STSB_TEST: read_stsb,
    SICK_TRAIN: read_sick,
    SICK_TRIAL: read_sick,
    SICK_TEST: read_sick,
}
# Pairs that models are trained on are no test set.
_SUITE = tuple(source for source in _READERS if source not in (STSB_TRAIN, SICK_TRAIN, SICK_TRIAL))


def read_sts(folder: DataFolder, source: DataSource, *, unscored: bool = False) -> STSSet:
    """Reads one of the usual sets; its name is the source's.

    Args:
        folder: Where to look.
        source: Which set.
        unscored: Whether pairs of SemEval's years without a gold score are read, too.

    Raises:
        MissingDataError: The folder has it not.
        FileNotFoundError: It is there in part.
        ValueError: A file is not in its format.
    """
    reader = _READERS[source]
    options = {"unscored": unscored} if reader is read_semeval_sts else {}
    return reader(folder.find(source), name=source.name, **options)


def sts_suite(data_dir: str | Path) -> tuple[dict[str, STSSet], dict[str, str]]:
    """Reads the usual STS sets that a folder holds.

    Looked for are STS12 to STS16, STS-B dev and test, and SICK-R test, under their published folder
    names (`STS12-en-test`, `stsbenchmark`, `sick2014`; SentEval's `STSBenchmark` and `SICK` too),
    in `data_dir` and up to two folders deeper.

    Args:
        data_dir: The folder to look in.

    Returns:
        Name → set for those found, and name → what was looked for, for the others.

    Raises:
        FileNotFoundError: None was found, or a set is there in part.
        ValueError: A file is not in its format.
    """
    folder = DataFolder(data_dir)
    sets: dict[str, STSSet] = {}
    missing: dict[str, str] = {}
    for source in _SUITE:
        if folder.has(source):
            sets[source.name] = read_sts(folder, source)
        else:
            missing[source.name] = " or ".join(source.places)
    if not sets:
        raise FileNotFoundError(
            f"{folder.path}: expected at least one of {', '.join(missing.values())} there or up to "
            "two folders deeper, found none."
        )
    return sets, missing
