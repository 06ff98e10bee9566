"""Finding a model's folder, with errors that say what to do; imports no TensorFlow."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from use_st5._bundled import SAVED_MODEL_FILE, bundled_folder, bundled_names, download_advice
from use_st5._remote_files import cached_path

_LISTED = 12


def model_folder(name_or_folder: str | os.PathLike[str]) -> Path:
    """The folder of a model, given as a folder or as the name of a bundled model.

    A folder that holds a SavedModel comes first, so that a model of one's own may be called like
    a bundled one.

    Raises:
        FileNotFoundError: There is no such folder or name, or the folder holds no SavedModel.
    """
    folder = cached_path(name_or_folder).expanduser()
    if (folder / SAVED_MODEL_FILE).is_file():
        return folder.resolve()
    if os.fspath(name_or_folder) in bundled_names():
        return bundled_folder(os.fspath(name_or_folder)).resolve()
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


def _content(folder: Path) -> str:
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    if not names:
        return "nothing: the folder is empty"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _hint(name: str) -> str:
    if "://" in name:
        return "use_st5 downloads nothing: fetch and unpack the model, then give its folder."
    names = bundled_names()
    close = difflib.get_close_matches(name, names, n=1)
    there = f"Bundled models: {', '.join(names) or 'none'}."
    if close:
        return f"Did you mean {close[0]!r}? {there}"
    # Names of a hub have one of these; what lies there is a checkpoint.
    advice = download_advice(name) if {"/", "-"} & set(name) else ""
    return f"{there} {advice}, and use-st5 convert makes a model of it." if advice else there
