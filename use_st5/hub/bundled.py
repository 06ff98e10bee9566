"""The folders of the bundled models."""

from __future__ import annotations

import re
from pathlib import Path

# A name that a model of Hugging Face's hub may have, with or without its owner.
_HUB_NAME = re.compile(r"(?:([A-Za-z0-9][\w.-]*)/)?([A-Za-z0-9][\w.-]*)")
# A folder with this file is a SavedModel.
SAVED_MODEL_FILE = "saved_model.pb"

_PACKAGE = Path(__file__).resolve().parents[1]


def bundled_names() -> tuple[str, ...]:
    """Returns the names of the bundled models, sorted; empty if there are none."""
    folder = _root()
    if not folder.is_dir():
        return ()
    return tuple(sorted(file.parent.name for file in folder.glob(f"*/{SAVED_MODEL_FILE}")))


def bundled_folder(name: str) -> Path:
    """Returns the folder of a bundled SavedModel.

    Args:
        name: one of `bundled_names()`.

    Raises:
        FileNotFoundError: no model of that name came with this installation.
    """
    names = bundled_names()
    if name not in names:
        choices = ", ".join(names) or "none"
        raise FileNotFoundError(
            f"Expected the name of a bundled model, received {name!r}. Bundled here: {choices}. "
            "For a model of your own give the path of its folder."
        )
    return _root() / name


def download_advice(name: str) -> str:
    """Advises what to write instead of a name that was not found.

    Args:
        name: The name.

    Returns:
        Sentences; "" for a path that cannot be a name of a hub.
    """
    if name in bundled_names():
        return "This is a bundled model. `use-st5 export` writes its folder."
    match = _HUB_NAME.fullmatch(name)
    if match is None:
        return ""
    owner, model = match[1] or "OWNER", match[2]
    return f"If this is a model of Hugging Face's hub, write hf://{owner}/{model}"


def _root() -> Path:
    """Returns the folder of the bundled models: inside an installed wheel, else in a checkout."""
    installed = _PACKAGE / "saved_models"
    return installed if installed.is_dir() else _PACKAGE.parent / "saved_models"
