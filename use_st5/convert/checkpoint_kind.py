"""Which of the known kinds a checkpoint is."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from use_st5.convert import sentence_transformers_t5, t5x_source
from use_st5.convert.mesh_tensorflow_t5 import TABLE, open_mesh_tensorflow_t5
from use_st5.convert.model_garden_t5 import NORM, VALUE, open_model_garden_t5
from use_st5.convert.t5_checkpoint import T5Checkpoint
from use_st5.convert.t5x_t5 import open_t5x_t5
from use_st5.convert.tensorflow_source import TensorFlowSource, is_tensorflow_checkpoint

# A map of up to 15 entries, or a longer one: how T5X's files begin, and TensorFlow's never.
_MAPS = {*range(0x80, 0x90), 0xDE, 0xDF}


class CheckpointKind(Enum):
    """The kinds, each with its name in words."""

    SENTENCE_TRANSFORMERS = "sentence-transformers"
    HUGGING_FACE = "Hugging Face"
    T5X = "T5X"
    MESH_TENSORFLOW = "Mesh TensorFlow"
    MODEL_GARDEN = "TensorFlow Model Garden"


OPENERS: dict[CheckpointKind, Callable[[Path], T5Checkpoint]] = {
    CheckpointKind.T5X: open_t5x_t5,
    CheckpointKind.MESH_TENSORFLOW: open_mesh_tensorflow_t5,
    CheckpointKind.MODEL_GARDEN: open_model_garden_t5,
}


def checkpoint_kind(path: str | os.PathLike[str]) -> CheckpointKind:
    """Looks at the files of a checkpoint, and at the names in TensorFlow's.

    Args:
        path: A folder, a file, or the prefix of a TensorFlow checkpoint.

    Raises:
        FileNotFoundError: There is nothing.
        ValueError: It is of no kind that is known.
    """
    path = Path(path)
    if (path / sentence_transformers_t5.MODULES).is_file():
        return CheckpointKind.SENTENCE_TRANSFORMERS
    if (path / "config.json").is_file():
        return CheckpointKind.HUGGING_FACE
    if _begins_as_map(path / t5x_source.INDEX) or _begins_as_map(path):
        return CheckpointKind.T5X
    if is_tensorflow_checkpoint(path):
        return _of_tensorflow(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: expected a checkpoint, found nothing of this name.")
    raise ValueError(
        f"{path}: expected a folder of Hugging Face or sentence-transformers (config.json, "
        "modules.json), a T5X checkpoint (a folder checkpoint_N or one file), or a TensorFlow "
        "checkpoint of Mesh TensorFlow or the Model Garden (model.ckpt-N)."
    )


def _begins_as_map(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return (file.read(1) or b"\0")[0] in _MAPS


def _of_tensorflow(path: Path) -> CheckpointKind:
    source = TensorFlowSource(path)
    names = source.shapes()
    if TABLE in names:
        return CheckpointKind.MESH_TENSORFLOW
    if any(name.endswith(NORM + VALUE) for name in names):
        return CheckpointKind.MODEL_GARDEN
    raise ValueError(
        f"{source.where}: expected a T5 of Mesh TensorFlow or of the Model Garden, found neither "
        f"{TABLE} nor {NORM}."
    )
