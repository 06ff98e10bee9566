"""A data set of texts as the arrays that a loss reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from use_st5.data.prepared_column import PreparedColumn
from use_st5.io.streams import batched
from use_st5.losses.task_loss import TaskLoss
from use_st5.training.array_data import ArrayData, row_lengths
from use_st5.training.tasks import TASKS

if TYPE_CHECKING:
    from use_st5.trainable_encoder import TrainableEncoder

# A DataFrame, an Arrow table, an iterable of dicts (a Hugging Face `Dataset` is one), a
# `tf.data.Dataset` of dicts, or `ArrayData`.
Dataset = Any
# Tokens of a text that a decoder predicts.
DECODED_TOKENS = 20
# Widths of batches, which hold texts of similar lengths.
_WIDTHS = (16, 32, 64, 128, 256)
_AT_ONCE = 2048


def array_data(
    dataset: Dataset, loss: TaskLoss, encoder: TrainableEncoder, max_length: int, *, name: str
) -> ArrayData:
    """Tokenizes the columns of a data set that a loss reads.

    Args:
        dataset: As in `Trainer`.
        loss: Its `features` say which columns are read.
        encoder: Its tokenizer makes ids of the texts.
        max_length: Largest number of tokens of a text; the rest is cut.
        name: The name of the data set, for messages.

    Raises:
        ValueError: The data set is empty or lacks a column, or a value does not fit its column.
    """
    if isinstance(dataset, ArrayData):
        return dataset
    columns: dict[str, PreparedColumn] = {}
    parts: dict[str, list[np.ndarray]] = {}
    for chunk in batched(_rows(dataset), _AT_ONCE):
        columns = columns or feature_columns(loss, [*chunk[0]], max_length, name=name)
        for feature, column in columns.items():
            try:
                values = [row[column.key or feature] for row in chunk]
                array = column.array(values, encoder.tokenizer)
            except (KeyError, ValueError) as error:
                raise ValueError(f"{name}, column {column.key!r}: {error}") from error
            parts.setdefault(feature, []).append(_trimmed(array))
    if not parts:
        raise ValueError(f"{name}: expected rows, received an empty data set.")
    arrays = {feature: _joined(each) for feature, each in parts.items()}
    return in_buckets(arrays, columns)


def in_buckets(
    arrays: Mapping[str, np.ndarray], columns: Mapping[str, PreparedColumn]
) -> ArrayData:
    """Makes `ArrayData` whose batches hold texts of similar lengths, up to the longest text."""
    if any(column.kind == "token_ids" for column in columns.values()):
        return ArrayData(arrays)  # A decoder reads rows of one width.
    widest = max(each.shape[1] for each in arrays.values() if _holds_ids(each))
    return ArrayData(arrays, buckets=(*(each for each in _WIDTHS if each < widest), widest))


def feature_columns(
    loss: TaskLoss, names: Collection[str], max_length: int, *, name: str
) -> dict[str, PreparedColumn]:
    """Feature of a loss → the column that it is made from; a missing one raises a ValueError."""
    keys = _keys([feature.name for feature in loss.features], names)
    if keys is None:
        expected = ", ".join(feature.name for feature in loss.features)
        raise ValueError(
            f"{name}: {type(loss).__name__} reads the columns {expected}; received the columns "
            f"{', '.join(names)}. Rename them."
        )
    return {
        feature.name: PreparedColumn(
            feature.kind,
            (DECODED_TOKENS if feature.kind == "token_ids" else max_length)
            if feature.of_text
            else None,
            keys[feature.name],
        )
        for feature in loss.features
    }


def _keys(features: Collection[str], names: Collection[str]) -> dict[str, str] | None:
    """Feature → name of its column: the feature's own name, or one that a task of `TASKS` knows."""
    if set(features) <= set(names):
        return {feature: feature for feature in features}
    for task in TASKS.values():
        columns = task.found_in([*names])
        keys = {feature: task.key_of(feature, columns) for feature in features}
        if set(task.needed) <= set(columns) and set(keys.values()) <= set(columns):
            return {feature: columns[key] for feature, key in keys.items()}
    return None


def _rows(dataset: Dataset) -> Iterator[Mapping[str, Any]]:
    if hasattr(dataset, "__arrow_c_stream__"):  # A DataFrame, or an Arrow table.
        dataset = pa.table(dataset)
    if isinstance(dataset, pa.Table):
        for batch in dataset.to_batches(max_chunksize=_AT_ONCE):
            yield from batch.to_pylist()
    elif hasattr(dataset, "as_numpy_iterator"):  # A `tf.data.Dataset`.
        for row in dataset.as_numpy_iterator():
            yield {key: _plain(value) for key, value in row.items()}
    elif isinstance(dataset, Iterable) and not isinstance(dataset, str | Mapping):
        yield from dataset
    else:
        raise ValueError(
            "Expected a data set: a DataFrame, an Arrow table, an iterable of dicts, a "
            f"tf.data.Dataset or ArrayData. Received: {type(dataset).__name__}"
        )


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _holds_ids(array: np.ndarray) -> bool:
    return array.ndim == 2 and array.dtype.kind == "i"


def _trimmed(array: np.ndarray) -> np.ndarray:
    """Ids without the last columns, if these hold only padding; other arrays unchanged."""
    if not _holds_ids(array):
        return array
    return array[:, : max(1, row_lengths(array).max())]


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    if not _holds_ids(parts[0]):
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    return np.concatenate([np.pad(part, [(0, 0), (0, width - part.shape[1])]) for part in parts])
