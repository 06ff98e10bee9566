"""Loading SavedModels that take strings, with errors that say what to do."""

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
    _check_begin(Path(folder, SAVED_MODEL_FILE))
    try:
        return tf.saved_model.load(os.fspath(folder))
    except Exception as error:  # TensorFlow's own kinds differ between versions
        unknown_op = re.search(r"Op type not registered '([\w>]+)'", str(error))
        if not unknown_op:
            raise ValueError(
                f"Expected a SavedModel in {folder} that TensorFlow {tf.__version__} can read: "
                f"{' '.join(str(error).split())[:500]} Copy or export the model again."
            ) from error
        if "tensorflow_text" in sys.modules or not _tensorflow_text_loads():
            minor = ".".join(tf.__version__.split(".")[:2])
            raise ImportError(
                f"The SavedModel in {folder} needs the op {unknown_op[1]!r}, which is not in "
                "TensorFlow, but probably in tensorflow-text. Run: pip install "
                f'"tensorflow-text=={minor}.*"'
            ) from error
    return load_saved_model(folder)


def check_finite_weights(loaded: Any, folder: str | os.PathLike[str]) -> None:
    """Refuses a SavedModel with NaN among its weights, because its vectors would be NaN too."""
    # A SavedModel that use_st5 did not export may have no `variables`.
    for variable in getattr(loaded, "variables", ()):
        if variable.dtype.is_floating and not tf.reduce_all(tf.math.is_finite(variable)):
            raise ValueError(
                f"{Path(folder, 'variables')}: expected finite weights, {variable.name} holds NaN "
                "or infinity. Copy the model again, or train it again with a smaller learning rate."
            )


def refuse_in_graph() -> None:
    """Refuses a call inside of a `tf.function`, which has no values for NumPy."""
    if not tf.executing_eagerly():
        raise RuntimeError(
            "Expected a call of encode outside of a TensorFlow graph (tf.function, Dataset.map), "
            "because it returns a NumPy array. Inside of a graph, call "
            "use_st5.layers.SavedModelLayer, which takes and returns tensors."
        )


def text_function(
    loaded: Any, *, training: bool = False, call: Callable[..., Any] | None = None
) -> Any:
    """The concrete function string `[batch]` → floats `[batch, dimension]` of a loaded model.

    It is traced once for all batch sizes. A call of the loaded object itself traces a graph for
    each new batch size, unless the model was written with a signature (as by `use_st5.export`).

    A model that cannot be called, such as those of `keras.Model.export`, is run by its signature.

    Args:
        loaded: The SavedModel.
        training: Whether dropout acts.
        call: The function that is called with the strings and `training`; None: `embed_text`.
    """
    text = tf.TensorSpec([None], tf.string, name="text")
    embed = functools.partial(call or functools.partial(embed_text, loaded), training=training)
    try:
        function = tf.function(embed, autograph=False).get_concrete_function(text)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            "Expected a SavedModel that takes a batch of strings, such as a text embedding of "
            f"TensorFlow Hub. This one does not: {_first_line(error)} Its signatures: "
            f"{', '.join(getattr(loaded, 'signatures', {})) or 'none'}."
        ) from error
    output = function.structured_outputs
    if (
        not isinstance(output, (tf.Tensor, tf.TensorSpec))
        or output.shape.rank not in (None, 2)
        or not output.dtype.is_floating
    ):
        raise ValueError(
            "Expected a SavedModel that returns one tensor [batch, dimension] of floats for a "
            f"batch of strings, found one that returns {output}."
        )
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
    path = Path(folder, SAVED_MODEL_FILE)
    _check_begin(path)
    try:
        graph = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    except DecodeError as error:
        raise ValueError(
            f"{path}: expected the graph of a SavedModel, received {path.stat().st_size:,} bytes "
            "of another format. Copy or export the model again."
        ) from error
    return graph


def _check_begin(path: Path) -> None:
    """Refuses a file that is not a protocol buffer, or is too large for one."""
    with path.open("rb") as file:
        begin = file.read(1)
    if begin not in _BEGINNINGS or path.stat().st_size > _LARGEST:
        raise ValueError(
            f"{path}: expected the graph of a SavedModel, received {path.stat().st_size:,} bytes "
            f"that begin with {begin!r}. Copy or export the model again."
        )


def _tensorflow_text_loads() -> bool:
    """Imports tensorflow-text, which registers its ops; False if it is missing or unfit."""
    try:
        import tensorflow_text  # noqa: F401
    except Exception:  # a build for another TensorFlow fails with an undefined symbol
        return False
    return True


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
