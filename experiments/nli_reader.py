"""Natural language inference files: SNLI, MultiNLI and the corpora that follow their formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from use_st5.data import MalformedRowError, SkippedRowError, TableReader

NLI_LABELS = ("entailment", "neutral", "contradiction")

NLI_COLUMNS: dict[str, tuple[str, ...]] = {
    "premise": ("premise", "sentence1", "prem"),
    "hypothesis": ("hypothesis", "sentence2", "hyp", "hypo"),
    "label": ("gold_label", "label"),
}
_BY_NAME = {name: number for number, name in enumerate(NLI_LABELS)} | {"e": 0, "n": 1, "c": 2}
# As XNLI's translations of MultiNLI spell it.
_BY_NAME["contradictory"] = 2
# "-": the annotators had no majority (SNLI, MultiNLI). -1: a hidden test label.
_NO_LABEL = ("-", "-1")


class NLIReader(TableReader):
    """Reads `{"premise": str, "hypothesis": str, "label": int}` from NLI files.

    Labels are 0 entailment, 1 neutral, 2 contradiction. Files: the official jsonl and tab-separated
    txt of SNLI (Bowman et al. 2015) and MultiNLI (Williams et al. 2018), GLUE's tsv, and others
    with the columns premise or sentence1 or prem, hypothesis or sentence2 or hyp or hypo,
    gold_label or label. Labels are words, their first letters, or (JSON) the numbers 0, 1, 2 in the
    same order.
    Rows without a gold label (`-`, `-1`) are skipped and counted.

    Args:
        path: A file (gzip or plain) or a list of files.
        strict: Whether the first malformed row is an error.
        max_malformed: The share of malformed rows that is an error, in `[0, 1]`.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: What `TableReader` raises.
    """

    expects = "rows of premise, hypothesis and a label among entailment, neutral, contradiction"

    def __init__(
        self,
        path: str | Path | list[str] | list[Path],
        *,
        strict: bool = False,
        max_malformed: float = 0.01,
    ) -> None:
        super().__init__(path, NLI_COLUMNS, strict=strict, max_malformed=max_malformed)

    def _examples(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        label = nli_label(row.get("label"))
        return [
            {
                "premise": self._text(row, "premise"),
                "hypothesis": self._text(row, "hypothesis"),
                "label": label,
            }
        ]


def nli_label(value: Any) -> int:
    """The number of a label, given as a number or as a word.

    Raises:
        SkippedRowError: The row has no gold label.
        MalformedRowError: The value is not a label.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value in range(len(NLI_LABELS)):
        return value
    word = str(value).strip().casefold()
    if word in _NO_LABEL:
        raise SkippedRowError("no gold label")
    if word not in _BY_NAME:
        raise MalformedRowError(f"label {value!r}")
    return _BY_NAME[word]
