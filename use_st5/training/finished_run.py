"""A run that is done: what a later call of the same kind answers with, and what nobody reads."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from use_st5._files import write_json
from use_st5._model_manifest import FILE_NAME, ModelManifest
from use_st5._records import read_record
from use_st5._remote_files import exists, names_in, open_local, remote_path, remove

RESULT = "result.json"
# What a run goes on from, and nothing reads when it is done: in its folder, and in `checkpoints`.
_UNREAD = ("prepared", "encoder.keras")
_CHECKPOINTS = re.compile(r"\.?checkpoint-\d{9}(\..*)?|cycle_\d+|batches")
_ClassifierName = Annotated[str, msgspec.Meta(pattern=r"^classifier(_\d+)?\.keras$")]


class Result(msgspec.Struct):
    """What came of a run.

    Attributes:
        model_hash: Of the exported encoder.
        monitor: The score that the best step was chosen by.
        best_step: The step that was exported.
        steps: Steps that were made.
        validation: "before" and "after", scores by name.
        test: The same of the rows that chose nothing.
        classifiers: The names of the classifiers' files.
    """

    model_hash: str
    monitor: str
    best_step: int
    steps: int
    validation: Mapping[str, Mapping[str, float]]
    test: Mapping[str, Mapping[str, float]]
    classifiers: Sequence[_ClassifierName] = ()
    format: int = 1


def write_result(work: Path, result: Result) -> None:
    """Notes what came of a run, and removes what it would have gone on from."""
    write_json(work / RESULT, msgspec.to_builtins(result))
    _remove_unread(work)


def result_of(work: Path, target: Path) -> Result | None:
    """What came of the run, if it is done and the encoder is still there as it was exported.

    Where it is not, the run begins anew: what it could go on from is no longer there.
    """
    if not exists(work / RESULT):
        return None
    result = read_record(work / RESULT, Result, remedy="Train again with --overwrite.")
    if _model_hash(target) != result.model_hash:
        return None
    _remove_unread(work)  # A removal may have been cut short.
    return result


def forget_result(work: Path) -> None:
    """Says that the run is not done: from here on it trains."""
    _remove(work / RESULT)


def model_hash(target: Path) -> str:
    """That of an exported encoder.

    Raises:
        FileNotFoundError: There is none.
    """
    if (found := _model_hash(target)) is None:
        raise FileNotFoundError(f"{target}: expected the encoder that was exported, found none.")
    return found


def _model_hash(target: Path) -> str | None:
    path = target / FILE_NAME
    if not exists(path):
        return None
    with open_local(path) as local:
        manifest = ModelManifest.read(local.parent)
    if manifest is None:
        return None
    with contextlib.suppress(ValueError):
        if not remote_path(target):
            manifest.check_sizes(target)
        return manifest.model_hash
    return None  # Files are missing or cut.


def _remove_unread(work: Path) -> None:
    folder = work / "checkpoints"
    checkpoints = [folder / name for name in names_in(folder) if _CHECKPOINTS.fullmatch(name)]
    for path in (*checkpoints, *(work / name for name in _UNREAD)):
        _remove(path)


def _remove(path: Path) -> None:
    if remote := remote_path(path):
        if exists(remote):
            remove(remote)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
