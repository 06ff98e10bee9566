"""Dialogues as pairs of input and response."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from use_st5.data._reader import MalformedRowError, Reader, SkippedRowError
from use_st5.data._records import records


class DialogueReader(Reader):
    """Reads `{"input": str, "response": str}` from jsonl rows `{"turns": [str, …]}`.

    Every turn but the first is the response to the turns before it (the conversational
    input-response task of the USE paper, section 3.1, after Henderson et al. 2017). A pair in which
    the response or the turn before it is blank is left out.

    Args:
        path: A file (gzip or plain) or a list of files.
        context_turns: The number of turns before the response that make its input, joined by a
            space; fewer at the start of a dialogue.
        strict: Whether the first malformed row is an error.
        max_malformed: The share of malformed rows that is an error, in `[0, 1]`.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: `context_turns` is below 1; during the pass: what `Reader` raises.
    """

    expects = 'JSON objects of the form {"turns": ["…", "…"]}, one per line'

    def __init__(
        self,
        path: str | Path | list[str] | list[Path],
        *,
        context_turns: int = 1,
        strict: bool = False,
        max_malformed: float = 0.01,
    ) -> None:
        super().__init__(path, strict=strict, max_malformed=max_malformed)
        if context_turns < 1:
            raise ValueError(f"context_turns: expected 1 or more, received {context_turns}.")
        self.context_turns = context_turns

    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        return records(path, file_format="jsonl")

    def _examples(self, row: Any) -> list[dict[str, Any]]:
        turns = row.get("turns")
        if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
            raise MalformedRowError("'turns' is no list of texts")
        turns = [turn.strip() for turn in turns]
        pairs = [
            {
                "input": " ".join(filter(None, turns[max(0, i - self.context_turns) : i])),
                "response": turns[i],
            }
            for i in range(1, len(turns))
            if turns[i - 1] and turns[i]
        ]
        if not pairs:
            raise SkippedRowError("fewer than two turns")
        return pairs
