"""The files of the sent-bias toolkit, which hold association tests on words and on sentences."""

from __future__ import annotations

from pathlib import Path

import msgspec

from use_st5._records import read_record
from use_st5.bias.weat_test import WEATTest

_LIMIT = 2**24


class _Group(msgspec.Struct):
    category: str
    examples: list[str]


class _Test(msgspec.Struct):
    targ1: _Group
    targ2: _Group
    attr1: _Group
    attr2: _Group


def read_weat(path: str | Path) -> WEATTest:
    """Reads a test in the format of the sent-bias toolkit (May et al.); its name is the file's.

    In spite of its ending, `.jsonl`, a file is one JSON object, over many lines: each of "targ1",
    "targ2", "attr1" and "attr2" → {"category": text, "examples": list of texts}.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not in the format, or `WEATTest` refuses its groups.
    """
    path = Path(path)
    remedy = "Give a file of the sent-bias toolkit."
    test = read_record(path, _Test, remedy=remedy, limit=_LIMIT)
    groups = (test.targ1, test.targ2, test.attr1, test.attr2)
    words = (tuple(group.examples) for group in groups)
    categories = tuple(group.category for group in groups)
    try:
        return WEATTest(path.stem, *words, categories=categories)
    except ValueError as error:
        raise ValueError(f"{path}: {error} {remedy}") from error
