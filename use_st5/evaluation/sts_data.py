"""Semantic textual similarity sets in the formats they were published in."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_SEMEVAL_INPUT = re.compile(r"STS\d*\.input\.(.+)\.txt")


@dataclass(frozen=True)
class STSPair:
    """Two sentences and people's mean judgement of their similarity.

    Attributes:
        first: A sentence.
        second: Another.
        score: The gold score: 0 to 5 in STS, 1 to 5 in SICK.
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

    def __len__(self) -> int:
        """Number of pairs in all subsets."""
        return sum(map(len, self.subsets.values()))


def read_semeval_sts(folder: str | Path, *, name: str | None = None) -> STSSet:
    """Reads a year of SemEval STS: `STS.input.X.txt` beside `STS.gs.X.txt` for each subset X.

    Lines without a gold score are skipped: from 2015 on the organisers scored a part of the input.
    Gold files without input (STS13's SMT, withdrawn for its licence) are left out.

    Args:
        folder: The folder of one year.
        name: The set's name; by default the folder's name.

    Raises:
        FileNotFoundError: The folder or a gold file is missing.
        ValueError: Input and gold differ in their number of lines; a line is not in the format.
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
        subsets[subset] = list(_semeval_pairs(path, gold))
    return STSSet(name or folder.name, subsets)


def read_stsb(path: str | Path, *, name: str | None = None) -> STSSet:
    """Reads a file of the STS Benchmark: tab-separated, no quoting, no header.

    Columns: genre, file, year, id, score, first sentence, second sentence; what follows is ignored.
    The subsets are the genres (main-news, main-captions, main-forums).

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: A line is not in the format.
    """
    path = Path(path)
    subsets: dict[str, list[STSPair]] = {}
    for number, line in _lines(path):
        fields = _fields(path, number, line, at_least=7)
        pair = _pair(path, number, fields[5], fields[6], fields[4])
        subsets.setdefault(fields[0], []).append(pair)
    return _named(path, name, subsets)


def read_sick(path: str | Path, *, name: str | None = None) -> STSSet:
    """Reads the relatedness of a SICK file (Marelli et al. 2014): tab-separated with a header.

    Columns used: sentence_A, sentence_B, relatedness_score.

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: A column is missing; a line is not in the format.
    """
    path = Path(path)
    lines = _lines(path)
    header = next(lines, (1, ""))[1].split("\t")
    wanted = ("sentence_A", "sentence_B", "relatedness_score")
    if missing := [column for column in wanted if column not in header]:
        raise ValueError(f"{path}: expected the columns {wanted}, {missing} missing in {header}.")
    places = [header.index(column) for column in wanted]
    pairs = []
    for number, line in lines:
        fields = _fields(path, number, line, at_least=max(places) + 1)
        pairs.append(_pair(path, number, *(fields[place] for place in places)))
    return _named(path, name, {"all": pairs} if pairs else {})


# Name → reader and the places, in any of the usual folders, where the set is looked for.
_SUITE: dict[str, tuple[Callable[..., STSSet], tuple[str, ...]]] = {
    **{
        f"STS{year}": (read_semeval_sts, (f"STS{year}-en-test", f"STS{year}"))
        for year in (12, 13, 14, 15, 16)
    },
    **{
        f"STS-B {part}": (
            read_stsb,
            tuple(f"{folder}/sts-{part}.csv" for folder in ("stsbenchmark", "STSBenchmark")),
        )
        for part in ("dev", "test")
    },
    "SICK-R test": (
        read_sick,
        tuple(f"{folder}/SICK_test_annotated.txt" for folder in ("sick2014", "SICK")),
    ),
}


def sts_suite(data_dir: str | Path) -> tuple[dict[str, STSSet], dict[str, str]]:
    """Reads the usual STS sets that a folder holds.

    Looked for are STS12 to STS16, STS-B dev and test, and SICK-R test, under their published folder
    names (`STS12-en-test`, `stsbenchmark`, `sick2014`; SentEval's `STSBenchmark` and `SICK` too),
    in `data_dir` and in the folders directly in it.

    Args:
        data_dir: The folder to look in.

    Returns:
        Name → set for those found, and name → what was looked for, for the others.

    Raises:
        FileNotFoundError: None was found, or a set is there in part.
        ValueError: A file is not in its format.
    """
    data_dir = Path(data_dir)
    if not data_dir.is_dir():
        raise FileNotFoundError(f"{data_dir}: expected a folder with STS sets, found none.")
    roots = [data_dir, *sorted(path for path in data_dir.iterdir() if path.is_dir())]
    sets: dict[str, STSSet] = {}
    missing: dict[str, str] = {}
    for name, (read, places) in _SUITE.items():
        found = [root / place for root in roots for place in places if (root / place).exists()]
        if found:
            sets[name] = read(found[0], name=name)
        else:
            missing[name] = " or ".join(places)
    if not sets:
        raise FileNotFoundError(
            f"{data_dir}: expected at least one of {', '.join(missing.values())} there or one "
            "folder deeper, found none."
        )
    return sets, missing


def _named(path: Path, name: str | None, subsets: dict[str, list[STSPair]]) -> STSSet:
    if not subsets:
        raise ValueError(f"{path}: expected pairs of sentences, found none.")
    return STSSet(name or path.stem, subsets)


def _semeval_pairs(path: Path, gold: Path) -> Iterator[STSPair]:
    lines, scores = _texts(path), _texts(gold)
    if len(lines) != len(scores):
        raise ValueError(
            f"{path} has {len(lines)} lines, its gold scores {gold.name} have {len(scores)}. "
            "Expected one score, or an empty line, per pair."
        )
    for number, (line, score) in enumerate(zip(lines, scores, strict=True), start=1):
        if score.strip():
            first, second = _fields(path, number, line, at_least=2)[:2]
            yield _pair(path, number, first, second, score)


def _texts(path: Path) -> list[str]:
    """All lines, empty ones too, without the empty piece after the last line feed."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a file, found none.")
    # str.splitlines would also break at U+0085 and U+2028, which are inside some sentences.
    try:
        text = path.read_bytes().decode("utf-8-sig").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8 text ({error}). Convert it first.") from error
    return [line.rstrip("\r") for line in text.split("\n")]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers and lines that are not blank."""
    for number, line in enumerate(_texts(path), start=1):
        if line.strip():
            yield number, line


def _fields(path: Path, number: int, line: str, *, at_least: int) -> list[str]:
    fields = line.split("\t")
    if len(fields) < at_least:
        raise ValueError(
            f"{path}:{number}: expected at least {at_least} tab-separated fields, "
            f"received {len(fields)}: {line[:80]!r}"
        )
    return fields


def _pair(path: Path, number: int, first: str, second: str, score: str) -> STSPair:
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{path}:{number}: expected a score, received {score!r}.")
    return STSPair(first.strip(), second.strip(), value)
