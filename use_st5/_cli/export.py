"""`use-st5 export`: a model's folder, checked, copied and stored as wanted."""

from __future__ import annotations

import shutil
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from use_st5._bundled import SAVED_MODEL_FILE
from use_st5._cli.manual import manual
from use_st5._cli.models import start_tensorflow
from use_st5._cli.output import say, waiting
from use_st5._files import atomic_path
from use_st5._model_folder import model_folder
from use_st5.export.archive import write_archive
from use_st5.export.model_manifest import ModelManifest

HELP = manual(
    """Write a model to a folder or an archive that hub.load, Keras and TensorFlow Serving can use.

    MODEL is a bundled model's name, an exported model's folder, or the output folder of a training
    run, in which the exported model is found. Its files are held against their sha256 first.

    --storage int8 stores the embedding table in a quarter of the space (the vectors change a
    little), float32 lets every embedding be fine-tuned. Without it the storage stays as it is.

    --archive writes one file, which a web server can offer: hub.load takes its URL.

    Folder and archive appear when they are whole; an older model there is replaced only with
    --overwrite.""",
    "use-st5 export use_dan_en --to my_model --storage float32",
    "use-st5 export runs/use_dan_en --to saved_models/use_dan_en --storage int8",
    "use-st5 export use_dan_en --archive use_dan_en.tar.gz",
)


class Storage(StrEnum):
    """The storages that `--storage` takes."""

    FLOAT32 = "float32"
    INT8 = "int8"


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name or a folder.")],
    to: Annotated[Path | None, typer.Option("--to", help="The folder to write.")] = None,
    archive: Annotated[
        Path | None, typer.Option("--archive", help="The .tar.gz to write, for hub.load by URL.")
    ] = None,
    storage: Annotated[Storage | None, typer.Option("--storage", help="Default: as it is.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the folder or archive if it exists.")
    ] = False,
) -> None:
    """Writes a model to a folder or an archive."""
    if to is None and archive is None:
        raise typer.BadParameter("expected --to, --archive or both.", param_hint="--to")
    if archive is not None:
        _check_archive(archive, overwrite=overwrite)
    source = _find(model)
    manifest = ModelManifest.read(source)
    if manifest is not None:
        manifest.check_contents(source)
    if to is not None:
        _export_folder(source, to, storage, overwrite=overwrite)
        source, storage = to, None
    if archive is not None:
        _export_archive(source, archive, storage)


def _export_folder(source: Path, to: Path, storage: Storage | None, *, overwrite: bool) -> None:
    """Writes the folder of `--to`."""
    if to.resolve() == source.resolve():
        raise typer.BadParameter("expected another folder than the model's own.", param_hint="--to")
    replaceable = (to / SAVED_MODEL_FILE).is_file()
    if to.exists() and not (overwrite and replaceable):
        remedy = "give --overwrite" if replaceable else "it holds no model: remove it"
        raise FileExistsError(f"{to} exists; {remedy} or choose another folder")
    if _is_stored_as(source, storage):
        with atomic_path(to) as temporary:
            shutil.copytree(source, temporary)
    else:
        _convert(source, to, storage)
    size = sum(file.stat().st_size for file in to.rglob("*") if file.is_file())
    say(f"{to}: {size / 1e6:.1f} MB, storage {storage or _storage(source)}")


def _check_archive(archive: Path, *, overwrite: bool) -> None:
    """Refuses, before any work, an archive that could not or should not be written."""
    if not archive.name.endswith((".tar.gz", ".tgz")):
        raise typer.BadParameter(
            f"expected a file that ends in .tar.gz or .tgz, received {archive}.",
            param_hint="--archive",
        )
    if archive.is_dir():
        raise IsADirectoryError(f"{archive} is a folder; choose another name for the archive")
    if archive.exists() and not overwrite:
        raise FileExistsError(f"{archive} exists; give --overwrite or choose another name")


def _export_archive(source: Path, archive: Path, storage: Storage | None) -> None:
    """Writes the file of `--archive`."""
    with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
        folder = source
        if not _is_stored_as(source, storage):
            folder = Path(scratch, "model")
            _convert(source, folder, storage)
        with waiting(f"packing {archive.name}"):
            write_archive(folder, archive)
    say(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB; hub.load takes the URL of this file")


def _is_stored_as(source: Path, storage: Storage | None) -> bool:
    return storage is None or storage == _storage(source)


def _storage(source: Path) -> str:
    manifest = ModelManifest.read(source)
    return manifest.storage if manifest else "unknown"


def _convert(source: Path, to: Path, storage: Storage) -> None:
    start_tensorflow()
    with waiting(f"storing as {storage}"):
        if storage is Storage.INT8:
            from use_st5.export.quantize import quantize

            quantize(source, to)
        else:
            from use_st5.export.dequantize import dequantize

            dequantize(source, to)


def _find(model: str) -> Path:
    """The folder of an exported model, which may lie inside a training run's folder."""
    folder = Path(model).expanduser()
    if not folder.is_dir() or (folder / SAVED_MODEL_FILE).is_file():
        return model_folder(model)
    inside = sorted(file.parent for file in folder.glob(f"*/{SAVED_MODEL_FILE}"))
    if len(inside) == 1:
        return inside[0]
    names = ", ".join(entry.name for entry in inside) or "none"
    raise FileNotFoundError(
        f"expected {folder} to be, or to hold, one exported model (a folder with "
        f"{SAVED_MODEL_FILE}); found inside: {names}"
    )
