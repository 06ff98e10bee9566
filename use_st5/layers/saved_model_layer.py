"""Any text-embedding SavedModel as a layer of Keras 3."""

from __future__ import annotations

import os
import warnings
from typing import Any

import keras
import tensorflow as tf
from keras.src.saving import serialization_lib  # the safe mode has no public name

from use_st5._bundled import bundled_folder, bundled_names
from use_st5._loading import load_saved_model, text_function
from use_st5._model_folder import model_folder
from use_st5._model_writer import write_again
from use_st5._other_processes import refuse_after_fork


@keras.saving.register_keras_serializable(package="use_st5")
class SavedModelLayer(keras.layers.Layer):
    """Strings to vectors inside a Keras 3 model, by a SavedModel, frozen or trained along.

    What `hub.KerasLayer` is to Keras 2: it takes the SavedModels of use_st5 and those of TensorFlow
    Hub that can be called with strings ("Common SavedModel APIs for Text Tasks"). The layer's
    weights are the variables of a SavedModel that it has loaded for itself. `save` writes them, as
    they were trained, as a SavedModel again; `use_st5.load` of the same folder knows nothing of
    them. Runs on Keras's TensorFlow backend.

    A saved `.keras` file holds the weights and the folder's path (or the bundled name), not the
    SavedModel: the folder must still be there when the file is loaded. A SavedModel is a program,
    and a `.keras` file of unknown origin could name any; so `keras.models.load_model` loads bundled
    models alone unless it is given `safe_mode=False`.

    Args:
        folder: The SavedModel's folder, or the name of a bundled model.
        trainable: Whether training changes the SavedModel's trainable variables.

    Call arguments:
        text: string `[batch]`; `[batch, 1]` is taken too, with a warning.
        training: Whether dropout acts; it never does where the layer is frozen.

    Returns:
        `[batch, dimension]` in the layer's compute dtype, float32 by default.

    Raises:
        FileNotFoundError: There is no such folder or name, or the folder holds no SavedModel.
        ImportError: The SavedModel needs ops that no installed package has.
        ValueError: It does not turn strings into vectors, Keras runs on another backend than
            TensorFlow, or `trainable` is asked of a model without trainable variables.
        RuntimeError: The process was forked from one that had loaded a model.

    Example:
        >>> model = keras.Sequential([
        ...     keras.Input(shape=(), dtype="string"),
        ...     SavedModelLayer("use_dan_en", trainable=True),
        ...     keras.layers.Dense(1, activation="sigmoid"),
        ... ])
        >>> model.compile(loss="binary_crossentropy")
        >>> model.fit(texts, labels)
        >>> model.layers[0].save("tuned")
        >>> vectors = use_st5.load("tuned").encode(sentences)
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, trainable: bool = False, **kwargs: Any
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                "SavedModelLayer runs inside TensorFlow graphs, but Keras runs on "
                f"{keras.backend.backend()!r}. Start again with KERAS_BACKEND=tensorflow."
            )
        super().__init__(**kwargs)
        refuse_after_fork()
        self.folder = os.fspath(folder)
        self._source = model_folder(folder)
        self.model = load_saved_model(self._source)
        self.supports_jit = False  # XLA knows no strings
        self._infer = text_function(self.model, training=False)
        self._train = text_function(self.model, training=True)
        static = self._infer.structured_outputs.shape[1]
        self.dimension: int = static or int(self._infer(tf.constant([""])).shape[1])
        self.adopted_weights = _adopted(self.model)
        if trainable and not self.trainable_weights:
            raise ValueError(
                f"Expected a SavedModel with trainable variables in {self.folder}, found none. "
                "Use trainable=False."
            )
        self.trainable = trainable
        self.built = True

    def call(self, text: Any, training: bool = False) -> Any:
        refuse_after_fork()
        text = tf.convert_to_tensor(text)
        _check_shape(tuple(text.shape))
        if text.shape.rank > 1:
            text = tf.squeeze(text, axis=1)
        embed = self._train if training and self.trainable else self._infer
        if self.trainable:
            for loss in getattr(self.model, "regularization_losses", ()):
                self.add_loss(loss())
        return tf.cast(embed(text), self.compute_dtype)

    def compute_output_spec(self, text: Any, training: bool = False) -> keras.KerasTensor:
        _check_shape(text.shape)
        return keras.KerasTensor((text.shape[0], self.dimension), dtype=self.compute_dtype)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the SavedModel with the layer's weights, its card and its other facts.

        `use_st5.load`, `hub.load` and this layer take the folder and give the tuned vectors.

        Args:
            path: The folder to write; an older model there, and nothing else, is replaced in one
                step.

        Raises:
            FileExistsError: `path` holds anything but a model that use_st5 wrote.
            BlockingIOError: Another process is writing `path`.
        """
        write_again(self.model, self._source, path, dimension=self.dimension)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SavedModelLayer:
        if serialization_lib.in_safe_mode() and not _is_bundled(config["folder"]):
            raise ValueError(
                f"This file names the SavedModel in {config['folder']!r}. If you trust both, load "
                "it with safe_mode=False."
            )
        return cls(**config)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "folder": self.folder, "trainable": self.trainable}


def _is_bundled(folder: str) -> bool:
    """Whether it is a bundled model's name that no folder of that name stands in front of."""
    return folder in bundled_names() and model_folder(folder) == bundled_folder(folder).resolve()


def _adopted(model: Any) -> list[keras.Variable]:
    """Keras variables around the SavedModel's own: assigning to one is assigning to the other."""
    trainable = {id(variable) for variable in getattr(model, "trainable_variables", ())}
    return [
        keras.Variable(
            initializer=variable,
            trainable=id(variable) in trainable,
            dtype=variable.dtype.name,
            name=variable.name.split(":")[0].replace("/", "_"),
        )
        for variable in getattr(model, "variables", ())
    ]


def _check_shape(shape: tuple[int | None, ...]) -> None:
    """Warns of `[batch, 1]` and refuses what is neither that nor `[batch]`."""
    if len(shape) == 2 and shape[1] in (None, 1):
        warnings.warn(
            f"Expected strings [batch], received {list(shape)}: the second axis is removed. "
            'Use keras.Input(shape=(), dtype="string").',
            stacklevel=3,
        )
    elif len(shape) != 1:
        raise ValueError(f"Expected strings [batch], received a tensor {list(shape)}.")
