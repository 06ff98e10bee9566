"""Dialogues as pairs of input and response."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from use_st5.data import MalformedRowError, Reader, SkippedRowError, records


class DialogueReader(Reader):
    """Reads `{"input": str, "response": str}` from jsonl rows `{"turns": [str, …]}`.

    Every turn but the first is the response to the turn before it (the conversational
    input-response task of the USE paper, section 3.1, after Henderson et al. 2017). A pair in which
    the response or the turn before it is blank is left out.

    Args:
        path: A file (gzip or plain) or a list of files.
        strict: Whether the first malformed row is an error.
        max_malformed: The share of malformed rows that is an error, in `[0, 1]`.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: What `Reader` raises.
    """

    expects = 'JSON objects of the form {"turns": ["…", "…"]}, one per line'

    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        return records(path, file_format="jsonl")

    def _examples(self, row: Any) -> list[dict[str, Any]]:
        turns = row.get("turns")
        if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
            raise MalformedRowError("'turns' is no list of texts")
        turns = [turn.strip() for turn in turns]
        pairs = [
            {"input": before, "response": turn}
            for before, turn in itertools.pairwise(turns)
            if before and turn
        ]
        if not pairs:
            raise SkippedRowError("fewer than two turns")
        return pairs
