"""The Tatoeba test set as LASER publishes it."""

from __future__ import annotations

from pathlib import Path

from use_st5.evaluation._text_files import read_side_by_side
from use_st5.evaluation.retrieval.parallel_sentences import ParallelSentences


def read_tatoeba(folder: str | Path, language: str) -> ParallelSentences:
    """Reads `tatoeba.xxx-eng.xxx` and, line for line, `tatoeba.xxx-eng.eng`.

    Args:
        folder: LASER's `data/tatoeba/v1`.
        language: xxx, among `tatoeba_languages.LANGUAGES`.

    Raises:
        FileNotFoundError: One of the files is missing.
        ValueError: They differ in their number of lines, or a line is blank.
    """
    paths = [Path(folder) / f"tatoeba.{language}-eng.{side}" for side in (language, "eng")]
    rows = read_side_by_side(*paths)
    for number, *lines in rows:
        for path, line in zip(paths, lines, strict=True):
            if not line.strip():
                raise ValueError(f"{path}:{number}: expected a sentence, received none.")
    _, foreign, english = zip(*rows, strict=True)
    return ParallelSentences(
        language, *([line.strip() for line in side] for side in (foreign, english))
    )
