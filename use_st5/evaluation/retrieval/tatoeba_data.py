"""The Tatoeba test set as LASER publishes it."""

from __future__ import annotations

from pathlib import Path

from use_st5.evaluation._text_files import read_lines
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
    foreign, english = map(_sentences, paths)
    if len(foreign) != len(english):
        lines, path, other = min((len(foreign), *paths), (len(english), *reversed(paths)))
        raise ValueError(
            f"{path}:{lines + 1}: expected the translation of this line of {other.name}, received "
            f"the end of the file."
        )
    return ParallelSentences(language, foreign, english)


def _sentences(path: Path) -> list[str]:
    lines = [line.strip() for line in read_lines(path)]
    if "" in lines:
        raise ValueError(f"{path}:{lines.index('') + 1}: expected a sentence, received none.")
    return lines
