"""A run: its folder, what it was begun with, and its result."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import msgspec

from use_st5.hub.model_manifest import FILE_NAME, ModelManifest, check_replaceable, describe_files
from use_st5.hub.model_names import bundled_folder, bundled_names
from use_st5.io.files import (
    LOCK_FILE,
    as_written,
    atomic_path,
    cached_path,
    exists,
    file_sha256,
    names_in,
    open_local,
    remote_path,
    remove,
    sole_writer,
    write_json,
)
from use_st5.io.records import read_record
from use_st5.losses.task_loss import TaskLoss
from use_st5.training.arguments import FileArguments, TrainingArguments
from use_st5.training.checkpoints import fingerprint, frozen_weights
from use_st5.training.task import Task

if TYPE_CHECKING:
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.rows import TrainingFile

# A model TO has its run in the folder TO.run.
RUN = ".run"
_REQUEST, RESULT, _CONFIG = "request.json", "result.json", "run.toml"
_FORMAT = 1
# What a run writes into its folder, except the request, and into `checkpoints`. `overwrite` removes
# all of it; the end of a run removes what it would have continued from.
_WRITTEN = re.compile(
    r"prepared|cross_encoder|run\.(png|toml)|(history|result)\.json|classifier(_\d+)?\.(keras|json)"
    r"|trial_\d{3,}|study\.sqlite(-journal)?|sweep\.(csv|svg)"
)
_CHECKPOINTS = re.compile(r"\.?checkpoint-\d{9}(\..*)?|cycle_\d+|batches|settings\.json")
_FOREIGN = "expected an empty folder or an earlier run"


def request_of(
    model: str | os.PathLike[str] | TrainableEncoder,
    files: Sequence[TrainingFile],
    validation: Sequence[TrainingFile],
    test: Sequence[TrainingFile],
    settings: FileArguments,
) -> dict[str, Any]:
    """The settings that must be the same to continue a run."""
    if isinstance(model, str | os.PathLike):
        name, content = as_written(model), _content_hash(as_written(model))
    else:
        name, content = model.name or "", None
    request: dict[str, Any] = {
        "model": name,
        "model_hash": content,
        "teacher_hash": _content_hash(settings.teacher) if settings.teacher else None,
        "settings": plain_arguments(settings),
    }
    if settings.guide:
        request["guide_hash"] = _content_hash(settings.guide)
    for use, part in (("train", files), ("dev", validation), ("test", test)):
        request[use] = [
            {
                "name": file.name,
                "content": file.content,
                "task": file.task.name,
                "columns": dict(file.columns),
                "mixing_weight": file.mixing_weight,
            }
            for file in part
        ]
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


def plain_arguments(settings: FileArguments) -> dict[str, Any]:
    """The arguments as JSON values; a loss becomes its class and its own arguments."""

    def as_json(value: Any) -> Any:
        if isinstance(value, TaskLoss):
            return _loss(value)
        return getattr(value, "__qualname__", None) or [*value]

    values: dict[str, Any] = json.loads(json.dumps(vars(settings), default=as_json))
    return values


def _loss(loss: TaskLoss) -> dict[str, Any]:
    config = loss.get_config()
    config.pop("name", None)  # numbered by process; Keras's own configurations have none
    return {"class": type(loss).__name__, **config}


def absolute(path: Path) -> Path:
    """A local path made absolute; a remote path unchanged."""
    return path if remote_path(path) else path.absolute()


@contextlib.contextmanager
def run_folder(target: Path, request: Mapping[str, Any], *, overwrite: bool) -> Iterator[Path]:
    """Lets only the block write the model and its run, which is new or has the same request."""
    target = absolute(target)
    work = target.with_name(target.name + RUN)
    place = as_written(work)
    files = [file["name"] for use in ("train", "dev", "test") for file in request[use]]
    others = [request["settings"].get(name) or "" for name in ("teacher", "guide")]
    for name in (request["model"], *files, *others):
        if _within(name, work):
            raise ValueError(f"{as_written(name)}: copy it; the run replaces files in {place}.")
    try:
        with sole_writer(target), sole_writer(work, inside=True, remote=True):
            check_replaceable(target)
            begun = _begun(work)
            if begun is None and any(name != LOCK_FILE for name in names_in(work)):
                raise FileExistsError(f"{place}: {_FOREIGN}.")
            if begun is None and names_in(target) and not overwrite:
                to = as_written(target)
                raise FileExistsError(f"{to} exists; give --overwrite or choose another folder")
            if begun is not None and not overwrite and (names := _changed(begun, request)):
                was = f"{place}: this run was begun with another {', '.join(names)}"
                raise FileExistsError(f"{was}. Give the same, --overwrite, or another folder.")
            yield work
    finally:
        # A run that was refused before it began leaves no empty folder behind.
        with contextlib.suppress(OSError):
            work.rmdir()


def write_config(work: Path, options: Mapping[str, Any]) -> None:
    """Writes a training as TOML for `--from-config`, unless it has objects of Python."""
    given = {name: value for name, value in options.items() if value is not None}
    with contextlib.suppress(TypeError):
        text = msgspec.toml.encode(given, enc_hook=as_written)
        with atomic_path(work / _CONFIG) as temporary:
            temporary.write_bytes(text)


def begin(work: Path, request: Mapping[str, Any], *, overwrite: bool) -> None:
    """Writes the request of the run; with `overwrite`, removes what an earlier run wrote."""
    if overwrite:
        _remove_unread(work)
        _remove(work / "checkpoints" / "logs")
        for name in filter(_WRITTEN.fullmatch, names_in(work)):
            _remove(work / name)
    # Replaced, not removed: without it, the folder would not be recognized as a run.
    write_json(work / _REQUEST, {"format": _FORMAT, **request})


def _begun(work: Path) -> dict[str, Any] | None:
    """The request that the run was started with; None if there is no earlier run."""
    path = work / _REQUEST
    if not exists(path):
        return None
    try:
        remedy = "Choose another folder."
        begun = read_record(path, dict[str, Any], version=_FORMAT, remedy=remedy)
        settings = dict(begun["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise FileExistsError(f"{as_written(work)}: {_FOREIGN}. {error}") from error
    # A setting that an earlier version did not know had its default value.
    return {**begun, "settings": plain_arguments(FileArguments()) | settings}


def _changed(begun: Mapping[str, Any], request: Mapping[str, Any]) -> list[str]:
    """The names of the parts of a request, and of its settings, that differ."""
    old, new = begun["settings"], request["settings"]
    names = {**request, **begun}.keys() - {"settings", "format"}
    parts = sorted(name for name in names if begun.get(name) != request.get(name))
    return [*parts, *(name for name in new if old.get(name) != new[name])]


def _within(given: str, folder: Path) -> bool:
    """Whether an existing path lies in a folder, or is the folder."""
    remote, above = remote_path(given), remote_path(folder)
    if remote or above:
        return bool(remote and above) and f"{remote}/".startswith(f"{above}/")
    if not given or not Path(given).exists():  # The name of a model or of a data set.
        return False
    return Path(os.path.realpath(given)).is_relative_to(os.path.realpath(folder))


def run_configuration(
    encoder: keras.Model,
    tasks: Sequence[Task],
    optimizer: keras.optimizers.Optimizer,
    args: TrainingArguments,
) -> dict[str, str]:
    """Describes a run by everything that its steps depend on: JSON text by dotted name.

    One such name is `tasks.nli.batch_size`. Encoder and heads must be built. The number of replicas
    is not part of the description, because any number of them shares a batch.
    """
    serialized = keras.saving.serialize_keras_object(optimizer)
    serialized["config"].pop("name", None)  # numbered by process
    layers = [encoder, *(task.loss for task in tasks)]
    frozen = [variable for layer in layers for variable in frozen_weights(layer)]
    names = ("seed", "steps_per_execution", "gradient_accumulation_steps")
    configuration = {
        **{name: getattr(args, name) for name in names},
        **({"frozen": fingerprint(frozen)} if frozen else {}),
        **({"order": args.task_order} if args.task_order != "drawn" else {}),
        "encoder": {
            # By position: Keras numbers names by process, so that a name proves nothing.
            # Integers are the states of seeds; their type depends on the backend.
            str(i): f"{'integers' if 'int' in v.dtype else v.dtype} {list(v.shape)}"
            for i, v in enumerate(encoder.variables)
        },
        "optimizer": serialized,
        "tasks": {
            task.name: {
                **({"buckets": task.data.buckets} if task.data.buckets else {}),
                "mixing_weight": task.mixing_weight,
                "batch_size": task.batch_size,
                "examples": len(task.data),
                "loss": _loss(task.loss),
            }
            for task in tasks
        },
    }
    return dict(_flat(configuration, ""))


def check_same(saved: Mapping[str, str], current: Mapping[str, str], where: Path) -> None:
    """Refuses settings that differ from those that a run was begun with; lists each difference."""
    none = "nothing"
    lines = [
        f"{name}: begun with {saved.get(name, none)}, now {current.get(name, none)}"
        for name in sorted({*saved, *current})
        if saved.get(name) != current.get(name)
    ]
    # The draw of tasks and the optimizer's variables depend on the tasks' positions.
    orders = [[name for name in each if name.startswith("tasks.")] for each in (saved, current)]
    if not lines and orders[0] != orders[1]:
        lines = ["the order of the tasks"]
    if lines:
        changed = "\n  ".join(["this run was begun with other settings:", *lines])
        raise ValueError(f"{as_written(where)}: {changed}\nUse them, or another folder.")


def check_unchanged(path: Path, facts: Mapping[str, Any]) -> None:
    """Refuses facts that differ from those in the JSON file of a run; lists each difference."""
    record = read_record(path, dict[str, Any], remedy="Give another folder.")
    check_same(dict(_flat(record, "")), dict(_flat(facts, "")), path)


def _flat(value: Any, name: str) -> list[tuple[str, str]]:
    """The leaves of nested mappings, each with its dotted name, as JSON text."""
    if isinstance(value, Mapping) and value:
        return [
            leaf
            for key, item in value.items()
            for leaf in _flat(item, f"{name}.{key}" if name else str(key))
        ]
    return [(name, json.dumps(value, default=str))]


def write_result(record: Mapping[str, Any], work: Path, target: Path) -> None:
    """Writes the result of a run, and removes the files from which it could have continued."""
    facts = {"format": _FORMAT, "model_hash": model_hash(target) or ""}
    write_json(work / RESULT, {**facts, **record})
    _remove_unread(work)


def result_of(work: Path, target: Path) -> dict[str, Any] | None:
    """The record of a complete run, if its encoder still exists; if not, it starts anew."""
    if not exists(work / RESULT):
        return None
    remedy = "Train again with --overwrite."
    record = read_record(work / RESULT, dict[str, Any], version=_FORMAT, remedy=remedy)
    if model_hash(target) != record["model_hash"]:
        return None
    _remove_unread(work)  # A removal may have been cut short.
    return record


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
    """Removes what a run continues from."""
    folder = work / "checkpoints"
    for name in filter(_CHECKPOINTS.fullmatch, names_in(folder)):
        _remove(folder / name)
    _remove(work / "prepared")


def _remove(path: Path) -> None:
    if remote := remote_path(path):
        if exists(remote):
            remove(remote)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
