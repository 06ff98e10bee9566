"""The words and the pieces of words of a vocabulary in BERT's format."""

from __future__ import annotations

import re
from pathlib import Path

from use_st5.text.ngram_vocabulary import PIECE_MARK


def read_wordpieces(path: Path) -> tuple[list[str], list[str]]:
    """Reads a `vocab.txt`, one term a line.

    Terms of other scripts are left out, since they would take the places of English words, and so
    are "[CLS]" and its like.

    Returns:
        The words, and the pieces with their mark.

    Raises:
        FileNotFoundError: There is no such file.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"Expected a vocabulary in BERT's format at {path}, found none. Put vocab.txt of "
            "bert-base-uncased there (Apache-2.0)."
        )
    terms = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.isascii() and not re.fullmatch(r"\[.+\]", line)
    ]
    pieces = [term for term in terms if term.startswith(PIECE_MARK) and term != PIECE_MARK]
    return [term for term in terms if PIECE_MARK not in term], pieces
