"""Pairs of texts that belong together: questions and answers, sentences and paraphrases."""

from __future__ import annotations

from pathlib import Path

from use_st5.data.table_reader import Column, TableReader


class PairReader(TableReader):
    """Reads `{"anchor": str, "positive": str}` from jsonl, tsv or csv.

    `PairReader("medquad_qa.jsonl", anchor="question", positive="answer")`.

    Args:
        path: A file (gzip or plain) or a list of files of the same layout.
        anchor: Name of the first text's column, or its position from 0 in a file without header.
        positive: The same for the second text.
        file_format: "jsonl", "tsv" or "csv"; by default as the file's suffix says.
        header: Whether there is a header line; by default, whether a name is used.
        strict: Whether the first malformed row is an error.
        max_malformed: The share of malformed rows that is an error, in `[0, 1]`.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: What `TableReader` raises.
    """

    expects = "rows of two texts"

    def __init__(
        self,
        path: str | Path | list[str] | list[Path],
        *,
        anchor: Column = 0,
        positive: Column = 1,
        file_format: str | None = None,
        header: bool | None = None,
        strict: bool = False,
        max_malformed: float = 0.01,
    ) -> None:
        super().__init__(
            path,
            {"anchor": anchor, "positive": positive},
            file_format=file_format,
            header=header,
            strict=strict,
            max_malformed=max_malformed,
        )
