"""The names of a classifier's classes, in a file next to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

from use_st5.io.records import parse_record

# Largest size of the file in bytes: a thousand labels of 4,000 letters each. A larger file that is
# damaged JSON could take hundreds of megabytes to read.
LARGEST = 2**22


class ClassRecord(msgspec.Struct):
    """The file's content.

    Attributes:
        labels: The names of the classes, in the order of the classifier's outputs.
        accuracy: Share of each evaluated set's rows that get the right label, by the set's name.
    """

    labels: list[str]
    accuracy: dict[str, float] = {}


def record_text(labels: Sequence[str], accuracy: Mapping[str, float], *, where: str) -> str:
    """Returns the file's text, and checks that it can be read again.

    A text that is too large, or a label that JSON cannot hold, raises a ValueError, whose message
    begins with `where`.
    """
    remedy = "Shorten the labels, or name the right column with --column."
    content = {"labels": [*labels], "accuracy": dict(accuracy)}
    text = json.dumps(content, indent=2) + "\n"
    if len(text) > LARGEST:
        longest_label = max(labels, key=len)
        raise ValueError(
            f"{where}: expected labels with at most {LARGEST:,} bytes in all, received "
            f"{len(labels):,} labels with {len(text):,} bytes; the longest begins with "
            f"{longest_label[:40]!r}. {remedy}"
        )
    parse_record(text, ClassRecord, where=where, remedy=remedy)
    return text
