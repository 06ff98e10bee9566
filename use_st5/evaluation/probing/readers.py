"""SentEval's probing files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from use_st5.evaluation._text_files import numbered_lines, split_fields

_PARTS = {"tr": "train", "va": "dev", "te": "test"}


PARTS = ("train", "dev", "test")


@dataclass(frozen=True, eq=False)
class ProbingSet:
    """Sentences with the class of a property, in three parts.

    Attributes:
        classes: The names of the classes, sorted, as found in the training part.
        sentences: "train", "dev" and "test" → sentences.
        labels: The same → their class numbers, `[sentences]`.
    """

    classes: tuple[str, ...]
    sentences: dict[str, list[str]]
    labels: dict[str, np.ndarray]


def read_probing(path: str | Path) -> ProbingSet:
    """Reads a file of `data/probing/`: part (tr, va or te), class, …, sentence, between tabs.

    Fields between the second and the last one are ignored, as the format allows more of them.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line has fewer than three fields, an unknown part, or a class that the
            training part has not; a part is empty; there is one class alone.
    """
    path = Path(path)
    rows: dict[str, list[tuple[int, str, str]]] = {part: [] for part in PARTS}
    for number, line in numbered_lines(path):
        code, label, *_, sentence = split_fields(path, number, line, at_least=3)
        if code not in _PARTS:
            raise ValueError(f"{path}:{number}: expected tr, va or te first, received {code!r}.")
        rows[_PARTS[code]].append((number, label, sentence.strip()))
    if empty := [code for code, part in _PARTS.items() if not rows[part]]:
        raise ValueError(f"{path}: expected lines of tr, va and te, found none of {empty}.")
    classes = sorted({label for _, label, _ in rows["train"]})
    if len(classes) < 2:
        raise ValueError(f"{path}: expected two classes or more to train on, found {classes}.")
    return ProbingSet(
        tuple(classes),
        {part: [sentence for *_, sentence in found] for part, found in rows.items()},
        {part: _numbers(path, found, classes) for part, found in rows.items()},
    )


def _numbers(path: Path, rows: list[tuple[int, str, str]], classes: list[str]) -> np.ndarray:
    numbers = {label: number for number, label in enumerate(classes)}
    for line, label, _ in rows:
        if label not in numbers:
            raise ValueError(
                f"{path}:{line}: expected a class of the training part (tr), received {label!r}."
            )
    return np.array([numbers[label] for _, label, _ in rows])
