"""The folder of a training: its writer, its request and its result."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from use_st5.hub.bundled import bundled_folder, bundled_names
from use_st5.hub.model_manifest import FILE_NAME, ModelManifest, check_replaceable, describe_files
from use_st5.io.files import LOCK_FILE, file_sha256, sole_writer, write_json
from use_st5.io.records import read_record
from use_st5.io.remote_files import (
    as_written,
    cached_path,
    exists,
    names_in,
    open_local,
    remote_path,
    remove,
)
from use_st5.losses.task_loss import TaskLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import FileArguments
from use_st5.training.sources import Source

# A model TO has its run in the folder TO.run.
RUN = ".run"
_REQUEST = "request.json"
_FORMAT = 1
# Names that a run writes into its folder, except the request; `overwrite` removes these files.
_WRITTEN = re.compile(
    r"checkpoints|prepared|cross_encoder|encoder\.keras|run\.(html|png)"
    r"|(training|history|scores|result)\.json|classifier(_\d+)?\.(keras|json)"
)
# Names of settings in version 0.2 → their names now.
_RENAMED = {
    "batch": "batch_size",
    "micro_batch": "micro_batch_size",
    "rate": "learning_rate",
    "lora": "lora_rank",
    "head": "head_init",
    "matryoshka": "matryoshka_dimensions",
    "max_tokens": "max_length",
    "patience": "early_stopping_patience",
    "storage": "precision",
}
# Hashes in the request, and what they identify; older versions wrote none.
_HASHES = {
    "model_hash": "the content of the model",
    "teacher_hash": "the content of the teacher",
}
_HEADS = {"fitted": "linear-probe", "drawn": "random"}
# The file with the result of a run.
RESULT = "result.json"
# Files that a run continues from, and that are not read after its end: in its folder, and in
# `checkpoints`.
_UNREAD = ("prepared", "encoder.keras")
_CHECKPOINTS = re.compile(r"\.?checkpoint-\d{9}(\..*)?|cycle_\d+|batches")
_ClassifierName = Annotated[str, msgspec.Meta(pattern=r"^classifier(_\d+)?\.keras$")]


class _Request(msgspec.Struct):
    """The request, which marks a run's folder; version 0.2 had no format and no test rows."""

    model: str
    train: list[dict[str, Any]]
    dev: list[dict[str, Any]]
    settings: dict[str, Any]
    test: list[dict[str, Any]] = []
    model_hash: str | None = None
    teacher_hash: str | None = None
    format: int = 0


def request_of(
    model: str | os.PathLike[str] | TrainableEncoder,
    sources: Sequence[Source],
    validation: Sequence[Source],
    test: Sequence[Source],
    settings: FileArguments,
) -> dict[str, Any]:
    """The settings that must be the same to continue a run."""
    if isinstance(model, TrainableEncoder):
        name, content = model.name or "", None
    else:
        name, content = as_written(model), _content_hash(as_written(model))
    request = {
        "model": name,
        "model_hash": content,
        "teacher_hash": _content_hash(settings.teacher) if settings.teacher else None,
        "train": [_described(source) for source in sources],
        "dev": [_described(source) for source in validation],
        "test": [_described(source) for source in test],
        "settings": _plain(settings),
    }
    return json.loads(json.dumps(request, default=list))


def _content_hash(given: str) -> str | None:
    """The hash of a model, a checkpoint or a file; None for a preset, and a name of a hub."""
    path = bundled_folder(given) if given in bundled_names() else Path(given)
    if (known_hash := model_hash(path)) is not None:
        return known_hash
    if not exists(path):
        return None
    path = cached_path(path)
    return file_sha256(path) if path.is_file() else describe_files(path)[1]


def _plain(settings: FileArguments) -> dict[str, Any]:
    """The arguments as JSON values; a loss becomes its class and its own arguments."""
    values: dict[str, Any] = json.loads(json.dumps(vars(settings), default=_as_json))
    return values


def _as_json(value: Any) -> Any:
    if isinstance(value, TaskLoss):
        config = value.get_config()
        config.pop("name", None)  # numbered by process; Keras's own configurations have none
        return {"class": type(value).__name__, **config}
    return getattr(value, "__qualname__", None) or [*value]


def _described(source: Source) -> dict[str, Any]:
    return {
        "name": source.name,
        "content": source.identity(),
        "task": source.kind.name,
        "columns": dict(source.columns),
        "mixing_weight": source.mixing_weight,
    }


def absolute(path: Path) -> Path:
    """A local path made absolute; a remote path unchanged."""
    return path if remote_path(path) else path.absolute()


@contextlib.contextmanager
def run_folder(target: Path, request: Mapping[str, Any], *, overwrite: bool) -> Iterator[Path]:
    """Lets only the block write the model and its run, which is new or has the same request.

    Args:
        target: The model's folder; the run is in `TARGET.run`.
        request: The request, as `request_of` returns it.
        overwrite: Whether a run with another request is replaced (see `begin`).

    Raises:
        FileExistsError: A folder holds no model, no run, or the run of another request.
        ValueError: An input lies in the run's folder, or the target in another run's folder.
    """
    target = absolute(target)
    work = target.with_name(target.name + RUN)
    _check_inputs(work, request)
    _check_outside_runs(target)
    try:
        with sole_writer(target), sole_writer(work, inside=True, remote=True):
            check_replaceable(target)
            saved_request = _begun(work)
            if saved_request is not None and not overwrite:
                _check_same(work, saved_request, request)
            elif saved_request is None and any(name != LOCK_FILE for name in names_in(work)):
                raise FileExistsError(
                    f"{as_written(work)}: expected an empty folder or an earlier run."
                )
            if names_in(target) and saved_request is None and not overwrite:
                raise FileExistsError(
                    f"{as_written(target)} exists; give --overwrite or choose another folder"
                )
            yield work
    finally:
        # A run that was refused before it began leaves no empty folder behind.
        with contextlib.suppress(OSError):
            work.rmdir()


def begin(work: Path, request: Mapping[str, Any], *, overwrite: bool) -> None:
    """Writes the request of the run; with `overwrite`, removes the files of an earlier run.

    Files that no run writes stay.
    """
    if overwrite:
        for name in filter(_WRITTEN.fullmatch, names_in(work)):
            _remove(work / name)
    # Replaced, not removed: without it, the folder would not be recognized as a run.
    write_json(work / _REQUEST, {"format": _FORMAT, **request})


def _begun(work: Path) -> dict[str, Any] | None:
    """The request that the run was started with; None if there is no earlier run.

    Raises:
        FileExistsError: The file with the name of a request is not the request of a run.
        ValueError: A later version wrote it.
    """
    path = work / _REQUEST
    if not exists(path):
        return None
    try:
        record = read_record(path, _Request, remedy="Move it away, or choose another folder.")
    except ValueError as error:
        raise FileExistsError(
            f"{as_written(work)}: expected an empty folder or an earlier run. {error}"
        ) from error
    if record.format > _FORMAT:
        raise ValueError(
            f"{as_written(path)}: $.format: expected up to {_FORMAT}, received {record.format}: a "
            "newer version of use_st5 wrote it. Update use_st5."
        )
    # A setting that an earlier version did not know had its default value.
    defaults = _plain(FileArguments())
    fields: dict[str, Any] = msgspec.to_builtins(record)
    fields["settings"] = defaults | _with_new_names(fields["settings"])
    for source in (*fields["train"], *fields["dev"], *fields["test"]):
        if "rate" in source:  # Its name in version 0.2.
            source["mixing_weight"] = source.pop("rate")
    return {name: value for name, value in fields.items() if name != "format"}


def _with_new_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run, perhaps of version 0.2, by their current names."""
    new_settings = {_RENAMED.get(name, name): value for name, value in settings.items()}
    if new_settings.get("head_init") in _HEADS:
        new_settings["head_init"] = _HEADS[new_settings["head_init"]]
    if "encoder" in (new_settings.get("freeze") or ()):
        other_parts = [part for part in new_settings["freeze"] if part != "encoder"]
        new_settings |= {"freeze": other_parts or None, "train_only": "embedding"}
    return new_settings


def _check_inputs(work: Path, request: Mapping[str, Any]) -> None:
    """Refuses inputs that lie in the folder of the run, because the run writes there."""
    files = [each["name"] for part in ("train", "dev", "test") for each in request[part]]
    for name in (request["model"], *files, request["settings"].get("teacher") or ""):
        if _within(name, work):
            raise ValueError(
                f"{as_written(name)}: expected an input outside {as_written(work)}, because the "
                "run replaces files there. Copy the input to another place, or choose another --to."
            )


def _check_outside_runs(target: Path) -> None:
    """Refuses a target that is the folder of another run, or lies in one."""
    if not remote_path(target):
        target = Path(os.path.realpath(target))
    for folder in (target, *target.parents):
        # Each look at a remote folder costs a request: only folders named like a run are read.
        if remote_path(target) and not folder.name.endswith(RUN):
            continue
        with contextlib.suppress(FileExistsError):
            if _begun(folder) is not None:
                raise ValueError(
                    f"{as_written(target)}: expected a folder outside {as_written(folder)}, the "
                    "folder of another run. Choose another --to."
                )


def _within(given: str, folder: Path) -> bool:
    """Whether an existing path lies in a folder, or is the folder."""
    remote, above = remote_path(given), remote_path(folder)
    if remote or above:
        return bool(remote and above) and f"{remote}/".startswith(f"{above}/")
    if not given or not Path(given).exists():  # The name of a model or of a data set.
        return False
    return Path(os.path.realpath(given)).is_relative_to(os.path.realpath(folder))


def _check_same(work: Path, found: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    names = [name for name in request if found.get(name) != request[name]]
    unknown_hashes = [n for n in _HASHES if None in (found.get(n), request.get(n))]
    names = [_HASHES.get(name, name) for name in names if name not in unknown_hashes]
    if not names:
        return
    if names == ["settings"]:
        old_settings, new_settings = found["settings"], request["settings"]
        names = [name for name in new_settings if old_settings.get(name) != new_settings[name]]
    raise FileExistsError(
        f"{as_written(work)}: expected the arguments of the run in this folder, received others "
        f"({', '.join(names)}). Give the same arguments to continue, --overwrite to start again, "
        "or another folder."
    )


class Result(msgspec.Struct):
    """The result of a run.

    Attributes:
        model_hash: The hash of the exported encoder.
        monitor: The score that the best step was chosen by.
        best_step: The step that was exported.
        steps: Steps that were made.
        validation: "before" and "after" → the scores of the validation rows by name.
        test: The same for the test rows, which chose nothing.
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
    """Writes the result of a run, and removes the files from which it could have continued."""
    write_json(work / RESULT, msgspec.to_builtins(result))
    _remove_unread(work)


def result_of(work: Path, target: Path) -> Result | None:
    """The result of a run, if it is complete and the exported encoder still exists.

    If the encoder is gone, the run starts anew: the files to continue from were removed.
    """
    if not exists(work / RESULT):
        return None
    result = read_record(work / RESULT, Result, remedy="Train again with --overwrite.")
    if model_hash(target) != result.model_hash:
        return None
    _remove_unread(work)  # A removal may have been cut short.
    return result


def forget_result(work: Path) -> None:
    """Marks the run as not complete."""
    _remove(work / RESULT)


def model_hash(target: Path) -> str | None:
    """The hash of an exported encoder; None if there is none, or if files are missing or cut."""
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
