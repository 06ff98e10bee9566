"""Finding a model's folder, with errors that say what to do.

TensorFlow is imported only to convert a checkpoint that was downloaded.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import use_st5
from use_st5.hub.bundled import SAVED_MODEL_FILE, bundled_folder, bundled_names, download_advice
from use_st5.hub.cache import MODELS, kept_content
from use_st5.hub.model_names import Fetched, fetch, model_name, short_name
from use_st5.io.remote_files import cached_path

_LISTED = 12
# A folder with one of these files may be a checkpoint that `TrainableEncoder.load` reads.
_CHECKPOINT_FILES = ("config.json", "modules.json", "bert_config.json", "checkpoint")


def model_folder(name_or_folder: str | os.PathLike[str]) -> Path:
    """Returns the folder of a SavedModel, given as a folder, a bundled name, or a name of a hub.

    A folder that holds a SavedModel comes first, so that your own model may have the name of a
    bundled one. A checkpoint, in a folder or of a hub (`hf://ORG/NAME`), is converted once, into
    the cache.

    Raises:
        FileNotFoundError: There is no such folder or name, or the folder holds no SavedModel.
        ValueError: A downloaded model is damaged, or of a kind that is not known.
        OSError: A model could not be downloaded.
        ImportError: The package that downloads is not installed.
    """
    if name := model_name(name_or_folder):
        fetched = fetch(name)
        if Path(fetched.folder, SAVED_MODEL_FILE).is_file():
            return Path(fetched.folder).resolve()
        return _of_hub(fetched).resolve()
    folder = cached_path(name_or_folder).expanduser()
    if (folder / SAVED_MODEL_FILE).is_file():
        return folder.resolve()
    if os.fspath(name_or_folder) in bundled_names():
        return bundled_folder(os.fspath(name_or_folder)).resolve()
    if is_checkpoint(folder):
        return _of_checkpoint(folder.resolve()).resolve()
    if folder.is_dir():
        raise FileNotFoundError(
            f"Expected a SavedModel (a folder that holds {SAVED_MODEL_FILE}) in {folder}, found "
            f"{_content(folder)}."
        )
    if folder.is_file():
        raise FileNotFoundError(
            f"Expected the folder of a SavedModel, found a file: {folder}. "
            f"Unpack an archive first, and give the folder that holds {SAVED_MODEL_FILE}."
        )
    raise FileNotFoundError(
        f"Expected the folder of a SavedModel or the name of a bundled model, found neither under "
        f"{os.fspath(name_or_folder)!r}. {_hint(os.fspath(name_or_folder))}"
    )


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder has the files of another library's checkpoint, and no SavedModel."""
    names = {name for name in _CHECKPOINT_FILES if (folder / name).is_file()}
    return bool(names) and not (folder / SAVED_MODEL_FILE).is_file()


def _of_hub(fetched: Fetched) -> Path:
    """Returns the SavedModel of a checkpoint of a hub."""
    # The identity alone does not suffice: for Kaggle it may be a small number.
    metadata = {"source": fetched.exact_name}
    name = short_name(fetched.name)
    return _converted(Path(fetched.folder), name, fetched.exact_name, fetched.exact_name, metadata)


def _of_checkpoint(folder: Path) -> Path:
    """Returns the SavedModel of a user's checkpoint, which is another one after each change."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    states = [(os.fspath(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return _converted(folder, folder.name, repr((os.fspath(folder), states)), os.fspath(folder), {})


def _converted(
    folder: Path, name: str, identity: str, origin: str, metadata: Mapping[str, str]
) -> Path:
    """Returns the SavedModel of a checkpoint, from the cache or converted now."""

    def convert(target: Path) -> None:
        encoder = use_st5.TrainableEncoder.load(folder)
        encoder.name = name
        encoder.metadata.update(metadata)
        encoder.export(target)

    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return kept_content(MODELS, f"{name}-{digest}-{use_st5.__version__}", origin, convert)


def _content(folder: Path) -> str:
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    if not names:
        return "nothing: the folder is empty"
    rest = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + rest


def _hint(name: str) -> str:
    names = bundled_names()
    close = difflib.get_close_matches(name, names, n=1)
    listing = f"Bundled models: {', '.join(names) or 'none'}."
    if close:
        return f"Did you mean {close[0]!r}? {listing}"
    # Names of models on a hub contain one of these characters; such models are checkpoints.
    advice = download_advice(name) if {"/", "-"} & set(name) else ""
    return f"{listing} {advice}" if advice else listing
