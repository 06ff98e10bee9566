"""The folder of a training on one's own data: who writes it, and what a run goes on with."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from use_st5._files import sole_writer
from use_st5._model_manifest import check_replaceable
from use_st5._records import read_record
from use_st5._remote_files import as_written, exists, names_in, remote_path, remove
from use_st5.own_data.settings import Settings
from use_st5.own_data.sources import Source
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.recipe_run import write_json

# A model TO has its run in the folder TO.run.
RUN = ".run"
_REQUEST = "request.json"


def request_of(
    model: str | os.PathLike[str] | TrainableEncoder,
    sources: Sequence[Source],
    dev: Sequence[Source],
    test: Sequence[Source],
    settings: Settings,
) -> dict[str, Any]:
    """What a run can only be continued with."""
    named = model.name or "" if isinstance(model, TrainableEncoder) else as_written(model)
    request = {
        "model": named,
        "train": [_described(source) for source in sources],
        "dev": [_described(source) for source in dev],
        "test": [_described(source) for source in test],
        "settings": dataclasses.asdict(settings),
    }
    return json.loads(json.dumps(request, default=list))


def _described(source: Source) -> dict[str, Any]:
    return {
        "name": source.name,
        "content": source.identity(),
        "task": source.kind.name,
        "columns": dict(source.columns),
        "rate": source.rate,
    }


def absolute(path: Path) -> Path:
    """A local path from the root on; one elsewhere as it is."""
    return path if remote_path(path) else path.absolute()


@contextlib.contextmanager
def run_folder(target: Path, request: Mapping[str, Any], *, overwrite: bool) -> Iterator[Path]:
    """The block alone writes the model and its run, which is new or was begun in the same way."""
    target = absolute(target)
    work = target.with_name(target.name + RUN)
    try:
        with sole_writer(target), sole_writer(work, inside=True, elsewhere=True):
            check_replaceable(target)
            path = work / _REQUEST
            begun = exists(path)
            if begun and not overwrite:
                found = read_record(path, dict[str, Any], remedy="Give --overwrite to begin anew.")
                _check_same(work, found, request)
            elif not begun and any(name != ".lock" for name in names_in(work)):
                raise FileExistsError(
                    f"{as_written(work)}: expected an empty folder or a run begun before."
                )
            if names_in(target) and not (begun or overwrite):
                raise FileExistsError(
                    f"{as_written(target)} exists; give --overwrite or choose another folder"
                )
            yield work
    finally:
        # What was refused before it began leaves nothing behind.
        with contextlib.suppress(OSError):
            work.rmdir()


def begin(work: Path, request: Mapping[str, Any], *, overwrite: bool) -> None:
    """Notes what the run can be continued with; with `overwrite` what was begun before goes."""
    if overwrite:
        for each in (work / name for name in names_in(work) if name != ".lock"):
            if remote := remote_path(each):
                remove(remote)
            else:
                shutil.rmtree(each) if each.is_dir() else each.unlink()
    write_json(work / _REQUEST, request)


def _check_same(work: Path, found: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    if found == request:
        return
    differ = [name for name in request if found.get(name) != request[name]]
    if differ == ["settings"]:
        theirs, mine = found["settings"], request["settings"]
        differ = [name for name in mine if theirs.get(name) != mine[name]]
    raise FileExistsError(
        f"{as_written(work)} holds a run that was begun with other arguments "
        f"({', '.join(differ)}): it goes on with the same ones. Give --overwrite to begin anew, "
        "or choose another folder."
    )
