"""Finding and loading SavedModels that take strings, with errors that say what to do."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any

import tensorflow as tf

from use_st5._bundled import bundled_folder, bundled_names

_MARK = "saved_model.pb"
_LISTED = 12


def model_folder(name_or_folder: str | os.PathLike[str]) -> Path:
    """The folder of a model, given as a folder or as the name of a bundled model.

    A folder that holds a SavedModel comes first, so that a model of one's own may be called like
    a bundled one.

    Raises:
        FileNotFoundError: There is no such folder or name, or the folder holds no SavedModel.
    """
    folder = Path(name_or_folder).expanduser()
    if (folder / _MARK).is_file():
        return folder.resolve()
    if os.fspath(name_or_folder) in bundled_names():
        return bundled_folder(os.fspath(name_or_folder)).resolve()
    if folder.is_dir():
        raise FileNotFoundError(
            f"Expected a SavedModel (a folder that holds {_MARK}) in {folder}, found "
            f"{_content(folder)}."
        )
    if folder.is_file():
        raise FileNotFoundError(
            f"Expected the folder of a SavedModel, found a file: {folder}. "
            "Unpack an archive first, and give the folder that holds saved_model.pb."
        )
    raise FileNotFoundError(
        f"Expected the folder of a SavedModel or the name of a bundled model, found neither under "
        f"{os.fspath(name_or_folder)!r}. {_hint(os.fspath(name_or_folder))}"
    )


def load_saved_model(folder: str | os.PathLike[str]) -> Any:
    """Loads a SavedModel; brings in tensorflow-text where the model needs its ops.

    Raises:
        ImportError: The model needs ops that no installed package has.
        ValueError: The folder's SavedModel cannot be read.
    """
    try:
        return _load(folder)
    except _UnknownOpError as error:
        if not _tensorflow_text_loads():
            raise ImportError(_missing_text(folder, error.op)) from error
    try:
        return _load(folder)
    except _UnknownOpError as error:
        raise ImportError(
            f"The SavedModel in {folder} needs the TensorFlow op {error.op!r}, which neither "
            f"tensorflow {tf.__version__} nor tensorflow-text has. Import the package that "
            "registers it first."
        ) from error


def text_function(loaded: Any, *, training: bool = False) -> Any:
    """The concrete function string `[batch]` → float32 `[batch, dimension]` of a loaded model.

    Traced once, for every batch size. Calling the loaded object itself traces, and keeps, one more
    graph for each new batch size, and for each list of strings, unless it was written with a
    signature (as by `use_st5.export`).

    Raises:
        ValueError: The model cannot be called with strings, or does not give float32 vectors.
    """

    def embed(text: tf.Tensor) -> tf.Tensor:
        try:
            return loaded(text, training=training)
        except (TypeError, ValueError):  # TensorFlow's ways to refuse an argument
            return loaded(text)

    text = tf.TensorSpec([None], tf.string, name="text")
    try:
        function = tf.function(embed).get_concrete_function(text)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            "Expected a SavedModel that can be called with a batch of strings, as those of "
            "use_st5 and TensorFlow Hub's text embeddings can; this one refuses them: "
            f"{_first_line(error)} Its signatures: {_signatures(loaded)}."
        ) from error
    output = function.structured_outputs
    if not isinstance(output, (tf.Tensor, tf.TensorSpec)) or output.shape.rank not in (None, 2):
        raise ValueError(
            "Expected a SavedModel that gives one tensor [batch, dimension] for a batch of "
            f"strings, found one that gives {output}."
        )
    return function


class _UnknownOpError(Exception):
    def __init__(self, op: str) -> None:
        super().__init__(op)
        self.op = op


def _load(folder: str | os.PathLike[str]) -> Any:
    try:
        return tf.saved_model.load(os.fspath(folder))
    except Exception as error:  # TensorFlow's own kinds differ between versions
        unknown = re.search(r"Op type not registered '([\w>]+)'", str(error))
        if unknown:
            raise _UnknownOpError(unknown[1]) from error
        raise ValueError(
            f"Expected a SavedModel in {folder} that TensorFlow {tf.__version__} can read; it "
            f"says: {_first_line(error)} Copy or export the model again."
        ) from error


def _tensorflow_text_loads() -> bool:
    """Imports tensorflow-text, which registers its ops; False where it is missing or unfit."""
    try:
        import tensorflow_text  # noqa: F401
    except Exception:  # a build for another TensorFlow fails with an undefined symbol
        return False
    return True


def _missing_text(folder: str | os.PathLike[str], op: str) -> str:
    minor = ".".join(tf.__version__.split(".")[:2])
    return (
        f"The SavedModel in {folder} needs the op {op!r}, which TensorFlow lacks; it is probably "
        f'one of tensorflow-text. Run: pip install "tensorflow-text=={minor}.*"'
    )


def _signatures(loaded: Any) -> str:
    return ", ".join(getattr(loaded, "signatures", {})) or "none"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


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
    return f"Did you mean {close[0]!r}? {there}" if close else there
