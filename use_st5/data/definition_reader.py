"""Dictionary definitions: a word, its part of speech, what it means."""

from __future__ import annotations

from pathlib import Path

from use_st5.data.table_reader import TableReader


class DefinitionReader(TableReader):
    """Reads definitions from a tsv without header: word, part of speech, definition[, example].

    Gives `{"word": str, "part_of_speech": str, "definition": str, "example": str}`; the example is
    "" where the file has none.

    Args:
        path: A file (gzip or plain) or a list of files.
        strict: Whether the first malformed row is an error.
        max_malformed: The share of malformed rows that is an error, in `[0, 1]`.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: What `TableReader` raises.
    """

    expects = "tab-separated word, part of speech, definition and perhaps an example"

    def __init__(
        self,
        path: str | Path | list[str] | list[Path],
        *,
        strict: bool = False,
        max_malformed: float = 0.01,
    ) -> None:
        super().__init__(
            path,
            {"word": 0, "part_of_speech": 1, "definition": 2, "example": 3},
            optional=("part_of_speech", "example"),
            file_format="tsv",
            strict=strict,
            max_malformed=max_malformed,
        )
