"""Loads SavedModels that take strings, and refuses to run them where TensorFlow would hang."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from use_st5.hub.model_manifest import SAVED_MODEL_FILE

# The tags of the two fields that a SavedModel can begin with.
_BEGINNINGS = (b"\x08", b"\x12")
_LARGEST = 2**31  # bytes, of any protocol buffer


def load_saved_model(folder: str | os.PathLike[str]) -> Any:
    """Loads a SavedModel; imports tensorflow-text if the model needs its ops."""
    _graph_file(folder)
    try:
        return tf.saved_model.load(os.fspath(folder))
    except Exception as error:  # TensorFlow's own kinds differ between versions
        unknown_op = re.search(r"Op type not registered '([\w>]+)'", str(error))
        if not unknown_op:
            reason = f"TensorFlow {tf.__version__}: {' '.join(str(error).split())[:500]}"
            raise ValueError(f"{folder}: the SavedModel cannot be read by {reason}") from error
        absent = "tensorflow_text" not in sys.modules
        # It registers its ops. A build for another TensorFlow fails with an undefined symbol.
        with contextlib.suppress(Exception):
            import tensorflow_text  # noqa: F401
        if not (absent and "tensorflow_text" in sys.modules):
            package = f"tensorflow-text=={'.'.join(tf.__version__.split('.')[:2])}.*"
            what = f"{folder}: the op {unknown_op[1]!r} is not in TensorFlow"
            raise ImportError(f'{what}. Run: pip install "{package}"') from error
    return load_saved_model(folder)


def check_finite_weights(loaded: Any, folder: str | os.PathLike[str]) -> None:
    """Refuses a SavedModel with NaN among its weights, because its vectors would be NaN too."""
    # A SavedModel that use_st5 did not export may have no `variables`.
    for variable in getattr(loaded, "variables", ()):
        if variable.dtype.is_floating and not tf.reduce_all(tf.math.is_finite(variable)):
            where = f"{Path(folder, 'variables')}: {variable.name}"
            raise ValueError(f"{where} holds NaN or infinity, expected finite weights.")


# The process in which a model was first loaded; a forked child inherits the number.
_started_in: int | None = None


def refuse_after_fork() -> None:
    """Refuses forked processes; call this before TensorFlow loads or runs a model.

    TensorFlow's threads do not exist in a forked child: the first operation there would wait for
    them without end.
    """
    global _started_in
    if _started_in is None:
        _started_in = os.getpid()
    elif _started_in != os.getpid():
        advice = 'Use multiprocessing.get_context("spawn"), or load models after the fork'
        raise RuntimeError(f"TensorFlow would hang in a fork of process {_started_in}. {advice}.")


def refuse_in_graph() -> None:
    """Refuses a call inside of a `tf.function`, which has no values for NumPy."""
    if not tf.executing_eagerly():
        advice = "Inside of a graph (tf.function, Dataset.map), call use_st5.layers.SavedModelLayer"
        raise RuntimeError(f"encode returns a NumPy array. {advice}.")


def text_function(
    loaded: Any, *, training: bool = False, call: Callable[..., Any] | None = None
) -> Any:
    """The concrete function string `[batch]` → floats `[batch, dimension]` of a loaded model.

    It is traced once for all batch sizes. A model that cannot be called, such as those of
    `keras.Model.export`, is run by its signature.

    `call` is called with the strings and `training`; None: `embed_text`.
    """
    text = tf.TensorSpec([None], tf.string, name="text")
    embed = functools.partial(call or functools.partial(embed_text, loaded), training=training)
    try:
        function = tf.function(embed, autograph=False).get_concrete_function(text)
    except (TypeError, ValueError, AttributeError) as error:
        names = ", ".join(getattr(loaded, "signatures", {})) or "none"
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        found = f"{reason} Signatures: {names}"
        raise ValueError(f"Expected a SavedModel that takes strings: {found}.") from error
    output = function.structured_outputs
    is_tensor = isinstance(output, (tf.Tensor, tf.TensorSpec))
    if not is_tensor or output.shape.rank not in (None, 2) or not output.dtype.is_floating:
        expected = "a SavedModel that returns floats [batch, dimension] for strings"
        raise ValueError(f"Expected {expected}, found one that returns {output}.")
    return function


def embed_text(loaded: Any, text: tf.Tensor, *, training: bool, **arguments: Any) -> Any:
    """Calls a loaded model with string `[batch]`, or its signature if the model is not callable."""
    # TensorFlow refuses an argument with either kind of error.
    with contextlib.suppress(TypeError, ValueError):
        return loaded(text, training=training, **arguments)
    try:
        return loaded(text, **arguments)
    except (TypeError, ValueError, AttributeError):
        by_signature = _text_signature(loaded)
        if by_signature is None:
            raise
        return by_signature(text)


def _text_signature(loaded: Any) -> Callable[[tf.Tensor], tf.Tensor] | None:
    """The first signature of one batch of strings → one tensor, `serving_default` before others."""
    signatures = getattr(loaded, "signatures", {})
    for name in sorted(signatures, key=lambda name: name != "serving_default"):
        inputs = signatures[name].structured_input_signature[1]
        outputs = signatures[name].structured_outputs
        if len(inputs) == len(outputs) == 1:
            ((input_name, spec),), (output_name,) = inputs.items(), outputs
            if spec.dtype == tf.string and spec.shape.rank in (None, 1):
                return lambda text: signatures[name](**{input_name: text})[output_name]
    return None


def saved_model_graph(folder: str | os.PathLike[str]) -> saved_model_pb2.SavedModel:
    """The content of a folder's `saved_model.pb`; no graph is built."""
    path = _graph_file(folder)
    try:
        return saved_model_pb2.SavedModel.FromString(path.read_bytes())
    except DecodeError as error:
        raise ValueError(f"{path}: is no graph of a SavedModel. Copy the model again.") from error


def _graph_file(folder: str | os.PathLike[str]) -> Path:
    """The file of the graph, which must begin as a protocol buffer and be of its size."""
    path = Path(folder, SAVED_MODEL_FILE)
    with path.open("rb") as file:
        begin = file.read(1)
    if begin not in _BEGINNINGS or path.stat().st_size > _LARGEST:
        raise ValueError(f"{path}: is no graph of a SavedModel. Copy the model again.")
    return path
