"""From a float32 table to an int8 one, at a quarter of the size."""

from __future__ import annotations

import os
from typing import Any

from use_st5._model_manifest import ModelManifest
from use_st5.export.int8_table import Int8Table
from use_st5.export.table_rewrite import rewrite_table


def quantize(name_or_folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> ModelManifest:
    """Writes a USE anew with its embedding table in int8 (see `Int8Table`).

    The vectors change a little: each entry of the table moves by at most half its row's scale.
    Needs the SavedModel alone, not the Python model that it was exported from.

    Args:
        name_or_folder: The model with `storage="float32"`: its folder, or a bundled model's name.
        path: The folder to write; an older model there, and nothing else, is replaced in one step.

    Returns:
        The written description.

    Raises:
        FileNotFoundError: There is no such model.
        FileExistsError: `path` holds anything but a model that use_st5 wrote.
        ValueError: The model is not one of use_st5 with a float32 embedding table.
    """
    return rewrite_table(
        name_or_folder,
        path,
        storage="float32",
        advice="int8 is as small already",
        convert=_int8_table,
    )


def _int8_table(loaded: Any) -> tuple[Int8Table, int]:
    return Int8Table.from_float(loaded.table.numpy()), loaded.table.shape[1]
