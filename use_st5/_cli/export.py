"""`use-st5 export`: a model's folder, checked, copied and stored as wanted."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from use_st5._bundled import SAVED_MODEL_FILE
from use_st5._cli.destination import sole_model
from use_st5._cli.manual import manual
from use_st5._cli.models import start_tensorflow
from use_st5._cli.output import say, waiting
from use_st5._files import atomic_path
from use_st5._model_folder import model_folder
from use_st5._model_manifest import ModelManifest, copy_model

HELP = manual(
    """Write a model to a folder that hub.load, Keras and TensorFlow Serving can use.

    MODEL is a bundled model's name, an exported model's folder, or the output folder of a training
    run, in which the exported model is found. Its files are held against their sha256 first.

    --storage int8 stores the embedding table in a quarter of the space (the vectors change a
    little), float32 lets every embedding be fine-tuned. Without it the storage stays as it is.

    The folder appears when it is whole. An older model in it is replaced only with --overwrite,
    anything else in it never.""",
    "use-st5 export use_dan_en --to my_model --storage float32",
    "use-st5 export runs/use_dan_en --to saved_models/use_dan_en --storage int8",
)


class Storage(StrEnum):
    """The storages that `--storage` takes."""

    FLOAT32 = "float32"
    INT8 = "int8"


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name or a folder.")],
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    storage: Annotated[Storage | None, typer.Option("--storage", help="Default: as it is.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the model in the folder.")
    ] = False,
) -> None:
    """Writes a model to a folder."""
    source = _find(model)
    manifest = ModelManifest.read(source)
    if manifest is not None:
        manifest.check_contents(source)
    if to.resolve() == source.resolve():
        raise typer.BadParameter("expected another folder than the model's own.", param_hint="--to")
    found = manifest.storage if manifest else "unknown"
    with sole_model(to, overwrite=overwrite):
        if storage is None or storage == found:
            with atomic_path(to) as temporary:
                copy_model(source, temporary, manifest)
        else:
            _convert(source, to, storage)
    size = sum(file.stat().st_size for file in to.rglob("*") if file.is_file())
    say(f"{to}: {size / 1e6:.1f} MB, storage {storage or found}")


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
