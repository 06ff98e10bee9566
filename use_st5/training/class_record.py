"""The names of a classifier's classes, in a file beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

from use_st5._records import parse_record

# Bytes of the file that are written and read: a thousand labels of 4,000 letters each. JSON of
# more, damaged, could take hundreds of megabytes to read.
LARGEST = 2**22


class ClassRecord(msgspec.Struct):
    """The file's content.

    Attributes:
        labels: What the classes are called, in the order of the classifier's outputs.
        accuracy: Share of each validation set's rows that are named right, by the set's name.
    """

    labels: list[str]
    accuracy: dict[str, float] = {}


def record_text(labels: Sequence[str], accuracy: Mapping[str, float], *, where: str) -> str:
    """The file's text, which can be read again.

    A ValueError, which begins with `where`, says that it would be too large, or that a label is no
    text that JSON holds.
    """
    remedy = "Shorten the labels, or name the right column with --column."
    content = {"labels": [*labels], "accuracy": dict(accuracy)}
    text = json.dumps(content, indent=2) + "\n"
    if len(text) > LARGEST:
        longest = max(labels, key=len)
        raise ValueError(
            f"{where}: expected labels with at most {LARGEST:,} bytes in all, received "
            f"{len(labels):,} labels with {len(text):,} bytes; the longest begins with "
            f"{longest[:40]!r}. {remedy}"
        )
    parse_record(text, ClassRecord, where=where, remedy=remedy)
    return text
