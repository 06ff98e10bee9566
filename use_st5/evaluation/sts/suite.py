"""The usual English STS sets, read from a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.data_source import DataSource
from use_st5.evaluation.sts import sources
from use_st5.evaluation.sts.readers import read_semeval_sts, read_sick, read_stsb
from use_st5.evaluation.sts.sts_set import STSSet

_READERS: dict[DataSource, Callable[..., STSSet]] = {
    sources.STS12: read_semeval_sts,
    sources.STS13: read_semeval_sts,
    sources.STS14: read_semeval_sts,
    sources.STS15: read_semeval_sts,
    sources.STS16: read_semeval_sts,
    sources.STSB_TRAIN: read_stsb,
    sources.STSB_DEV: read_stsb,
    sources.STSB_TEST: read_stsb,
    sources.SICK_TEST: read_sick,
}
# Pairs that models are trained on are no test set.
_SUITE = tuple(source for source in _READERS if source != sources.STSB_TRAIN)


def read_sts(folder: DataFolder, source: DataSource) -> STSSet:
    """Reads one of the usual sets; its name is the source's.

    Raises:
        MissingDataError: The folder has it not.
        FileNotFoundError: It is there in part.
        ValueError: A file is not in its format.
    """
    return _READERS[source](folder.find(source), name=source.name)


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
