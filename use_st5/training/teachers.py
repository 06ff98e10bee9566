"""Who teaches beside the files: an encoder, its vectors in a file, or a judge of pairs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from use_st5._remote_files import brought
from use_st5._streams import batched
from use_st5.cross_encoder import CrossEncoder
from use_st5.data._records import format_of, records
from use_st5.data.prepared_column import PreparedColumn
from use_st5.losses.teacher_loss import TeacherLoss
from use_st5.models.family import family_of
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.held_out import training_rows
from use_st5.training.model_loading import batch_widths
from use_st5.training.recipe import Examples, RecipeTask
from use_st5.training.settings import Settings
from use_st5.training.sources import Row
from use_st5.training.survey import Survey
from use_st5.training.validation import DevelopmentSet

# The start's own similarities; and a teacher, as in the recipe `use_dan_en`.
_OWN_WEIGHTS: dict[str, Any] = {"vector_weight": 0.0, "similarity_weight": 1.0}
_TEACHER_WEIGHTS: dict[str, Any] = {
    **{"similarity_weight": 10.0, "ranking_weight": 1.0, "temperature": 0.1}
}
_AT_ONCE = 2048


class VectorFile:
    """Vectors of texts, one a line, as `use-st5 embed -o FILE.jsonl` writes them.

    Args:
        path: A .jsonl or .parquet file with the columns "text" and "embedding".

    Raises:
        ValueError: It holds other columns, or vectors of different lengths.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, int] = {}
        vectors: list[np.ndarray] = []
        for number, record in records(path, file_format=format_of(path)):
            text, vector = self._read(number, record)
            if text not in self._rows:
                self._rows[text] = len(vectors)
                vectors.append(vector)
        lengths = {len(vector) for vector in vectors}
        if len(lengths) != 1:
            raise ValueError(
                f"{path}: expected vectors of one length, received lengths {sorted(lengths)}."
            )
        self._vectors = np.stack(vectors)

    def __contains__(self, text: str) -> bool:
        """Whether the file has a vector of the text."""
        return text in self._rows

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return self._vectors.shape[1]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts that have one, float32 `[texts, dimension]`."""
        return self._vectors[[self._rows[text] for text in texts]]

    def _read(self, number: int, record: Any) -> tuple[str, np.ndarray]:
        try:
            text, vector = record["text"], np.asarray(record["embedding"], np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f'{self._path}, row {number}: expected "text" and "embedding", as `use-st5 embed '
                f"-o FILE.jsonl` writes them, received {_shown(record)}."
            ) from error
        if vector.ndim != 1 or not np.isfinite(vector).all():
            raise ValueError(
                f"{self._path}, row {number}: expected a vector of finite numbers, received one of "
                f"shape {list(vector.shape)}."
            )
        return text, vector


Teacher = TrainableEncoder | VectorFile | CrossEncoder


def open_teacher(given: str) -> Teacher:
    """What `--teacher` names.

    Args:
        given: A bundled model, a folder, a checkpoint, or a file of vectors.

    Raises:
        FileNotFoundError: There is no such thing.
        ValueError: The file holds no vectors.
    """
    path = brought(given)
    if path.is_file():
        return VectorFile(path)
    teacher = TrainableEncoder.load(given)
    return CrossEncoder.of(teacher) if family_of(teacher.model).texts == 2 else teacher


def taught_vectors(
    teacher: TrainableEncoder | VectorFile,
    encoder: TrainableEncoder,
    surveys: Sequence[Survey],
    sets: Collection[DevelopmentSet],
    settings: Settings,
    *,
    name: str,
    limit: int,
    rate: float,
) -> RecipeTask:
    """What a teacher says of the training texts, before the first step.

    Args:
        teacher: Gives the vectors; where it is the learner itself, its similarities are kept.
        encoder: What learns.
        surveys: Whose texts; of a file of vectors those that have one.
        sets: The rows that do not train.
        settings: How.
        name: Of the task.
        limit: Tokens of a text that are read.
        rate: Its weight.

    Raises:
        ValueError: No text has a vector in the file.
    """
    texts = (
        row[key]
        for found in surveys
        for row in training_rows(found, sets)
        for key in found.source.kind.texts
        if key in row
    )
    distinct = [*dict.fromkeys(texts)]
    if isinstance(teacher, VectorFile):
        distinct = _with_vector(distinct, teacher)
    width = min(limit, max(2, *(int(found.lengths.max()) for found in surveys)))

    def read(_data: Path) -> Iterator[Row]:
        for text, vector in zip(distinct, teacher.encode(distinct), strict=True):
            yield {"sentence": text, "teacher": vector}

    weights = _OWN_WEIGHTS if teacher is encoder else _TEACHER_WEIGHTS
    columns = {"sentence": PreparedColumn("ids", width), "teacher": PreparedColumn("vector")}
    return RecipeTask(
        name=name,
        loss=partial(TeacherLoss, teacher_dim=teacher.dimension, **weights),
        data=Examples(read, columns, buckets=batch_widths(encoder, width)),
        batch_size=settings.batch_size,
        rate=rate,
    )


def judged(rows: Iterator[Row], judge: CrossEncoder) -> Iterator[Row]:
    """Rows of two texts with the score that a cross-encoder gives them, in 0 … 1."""
    for chunk in batched(rows, _AT_ONCE):
        scores = judge.predict((row["sentence1"], row["sentence2"]) for row in chunk)
        yield from (row | {"score": float(s)} for row, s in zip(chunk, scores, strict=True))


def _with_vector(texts: Sequence[str], file: VectorFile) -> list[str]:
    known = [text for text in texts if text in file]
    if not known:
        raise ValueError(
            f"teacher: expected vectors of the training texts, found none of {len(texts):,} in the "
            "file. Embed these texts, as they stand in the files: use-st5 embed."
        )
    return known


def _shown(record: Any) -> str:
    if isinstance(record, dict):
        return f"columns {[*record]}"
    return json.dumps(record, default=str)[:80]
