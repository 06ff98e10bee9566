"""Teachers: an encoder, its vectors in a file, or a cross-encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.data.formats import records
from use_st5.data.reader import SkippedRowError
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.io.remote_files import cached_path
from use_st5.io.streams import batched
from use_st5.models.family import family_of
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.validation import Row

_AT_ONCE = 2048


class VectorFile:
    """Vectors of texts, one on each line, as `use-st5 embed -o FILE.jsonl` writes them.

    Args:
        path: A .jsonl or .parquet file with the columns "text" and "embedding".

    Raises:
        ValueError: The file has other columns, or vectors of different lengths.
    """

    def __init__(self, path: Path) -> None:
        self._rows: dict[str, int] = {}
        vectors: list[np.ndarray] = []
        record: Any
        for number, record in records(path):
            if isinstance(record, SkippedRowError):  # A blank line.
                continue
            try:
                text, vector = record["text"], np.asarray(record["embedding"], np.float32)
            except (KeyError, TypeError, ValueError) as error:
                columns = [*record] if isinstance(record, dict) else record
                raise ValueError(
                    f'{path}, row {number}: expected "text" and "embedding", as `use-st5 embed '
                    f"-o FILE.jsonl` writes them, received {columns!s:.80}."
                ) from error
            if text not in self._rows:
                self._rows[text] = len(vectors)
                vectors.append(vector)
        shapes = {vector.shape for vector in vectors}
        if len(shapes) != 1 or len(vectors[0].shape) != 1:
            raise ValueError(
                f"{path}: expected vectors of one length, received shapes {sorted(shapes)}."
            )
        self._vectors = np.stack(vectors)
        if not np.isfinite(self._vectors).all():
            raise ValueError(f"{path}: expected vectors of finite numbers.")

    def __contains__(self, text: str) -> bool:
        """Whether the file has a vector of the text."""
        return text in self._rows

    @property
    def dimension(self) -> int:
        """The number of values in a vector."""
        return self._vectors.shape[1]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts, which must be in the file, float32 `[texts, dimension]`."""
        return self._vectors[[self._rows[text] for text in texts]]


Teacher = TrainableEncoder | VectorFile | CrossEncoder


def open_teacher(given: str) -> Teacher:
    """Opens the teacher of `--teacher`: a model, a folder, a checkpoint, or a file of vectors."""
    path = cached_path(given)
    if path.is_file():
        return VectorFile(path)
    teacher = TrainableEncoder.load(given)
    return CrossEncoder.of(teacher) if family_of(teacher.model).inputs == 2 else teacher


def scored_by(scorer: CrossEncoder, rows: Iterator[Row]) -> Iterator[Row]:
    """Adds to rows of two texts the score that a cross-encoder gives them, in 0 … 1."""
    for chunk in batched(rows, _AT_ONCE):
        scores = scorer.predict((row["sentence1"], row["sentence2"]) for row in chunk)
        yield from (row | {"score": float(s)} for row, s in zip(chunk, scores, strict=True))


def texts_with_vectors(texts: Sequence[str], file: VectorFile) -> list[str]:
    """The texts that have a vector in a file; if there are none, it is a ValueError."""
    embedded_texts = [text for text in texts if text in file]
    if not embedded_texts:
        raise ValueError(
            f"teacher: expected vectors of the training texts, found none of {len(texts):,} texts "
            "in the file. Embed the texts of the training files with use-st5 embed."
        )
    return embedded_texts
