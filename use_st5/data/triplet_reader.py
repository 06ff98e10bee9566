"""Triplets: a text, one that belongs to it, and one that does not."""

from __future__ import annotations

from pathlib import Path

from use_st5.data.table_reader import Column, TableReader


class TripletReader(TableReader):
    """Reads `{"anchor": str, "positive": str, "negative": str}` from jsonl, tsv or csv.

    `TripletReader("nli.csv", anchor="sent0", positive="sent1", negative="hard_neg")`.

    Args:
        path: A file (gzip or plain) or a list of files of the same layout.
        anchor: Name of the column, or its position from 0 in a file without header.
        positive: The same for the text that belongs to the anchor.
        negative: The same for the hard negative.
        file_format: "jsonl", "tsv" or "csv"; by default as the file's suffix says.
        header: Whether there is a header line; by default, whether a name is used.
        strict: Whether the first malformed row is an error.
        max_malformed: The share of malformed rows that is an error, in `[0, 1]`.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: What `TableReader` raises.
    """

    expects = "rows of three texts"

    def __init__(
        self,
        path: str | Path | list[str] | list[Path],
        *,
        anchor: Column = 0,
        positive: Column = 1,
        negative: Column = 2,
        file_format: str | None = None,
        header: bool | None = None,
        strict: bool = False,
        max_malformed: float = 0.01,
    ) -> None:
        super().__init__(
            path,
            {"anchor": anchor, "positive": positive, "negative": negative},
            file_format=file_format,
            header=header,
            strict=strict,
            max_malformed=max_malformed,
        )
