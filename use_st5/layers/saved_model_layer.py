"""A text-embedding SavedModel as a layer of Keras 3."""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Any, Literal

import keras
import tensorflow as tf
from keras.src.saving import serialization_lib  # the safe mode has no public name

from use_st5._bundled import bundled_folder, bundled_names
from use_st5._loading import embed_text, load_saved_model, text_function
from use_st5._model_folder import model_folder
from use_st5._model_manifest import ModelManifest
from use_st5._model_writer import count_weights, write_again
from use_st5._other_processes import refuse_after_fork
from use_st5.layers.replicated_strings import allow_replicated_strings


@keras.saving.register_keras_serializable(package="use_st5")
class SavedModelLayer(keras.layers.Layer):
    """A SavedModel as a Keras 3 layer from strings to vectors, frozen or trainable.

    It replaces `hub.KerasLayer`, which is for Keras 2. It takes the SavedModels of use_st5, and
    those of TensorFlow Hub that take strings ("Common SavedModel APIs for Text Tasks"). The layer
    loads its own copy of the SavedModel, so training does not change an encoder that `use_st5.load`
    loaded from the same folder. `save` writes the trained weights as a SavedModel. The layer needs
    the TensorFlow backend of Keras.

    A saved `.keras` file contains the weights and the folder's path (or the bundled name), but not
    the SavedModel. To load the file, keep the folder and import `use_st5.layers` first. A
    SavedModel is a program, and a `.keras` file from an unknown source could name any SavedModel.
    So `keras.models.load_model` loads only bundled models, unless it gets `safe_mode=False`.

    The tables of the bundled models are int8, which training cannot change. With
    `precision="float32"` the layer trains all weights. It then needs four times the memory, and
    `save` writes four times the size.

    Keras's `fit`, `evaluate` and `predict` take strings as `tf.constant([...])` or as a
    `tf.data.Dataset`. They refuse Python lists and NumPy arrays of `str`. A direct call of the
    layer takes these too.

    Args:
        folder: The SavedModel's folder, or the name of a bundled model.
        trainable: Whether training changes the SavedModel's trainable variables.
        precision: "float32" converts the int8 weights of a model that use_st5 exported. None keeps
            the weights as they are stored.

    Call arguments:
        text: string `[batch]`, a tensor, a list or an array; `[batch, 1]` gives a warning.
        training: Whether to apply dropout; a frozen layer never applies it.

    Returns:
        `[batch, dimension]` in the layer's compute dtype, float32 by default.

    Raises:
        FileNotFoundError: The folder or name does not exist, or the folder contains no SavedModel.
        ImportError: The SavedModel needs ops that no installed package has.
        ValueError: The SavedModel does not turn strings into vectors; Keras does not run on
            TensorFlow; `trainable` is True, but the model has no trainable variables; or
            `precision` is "float32", but use_st5 0.2 or later did not export the int8 model.
        RuntimeError: This process was forked after a model was loaded.

    Warns:
        UserWarning: `trainable` is True, but int8 weights cannot be trained.

    Examples:
        >>> model = keras.Sequential([
        ...     keras.Input(shape=(), dtype="string"),
        ...     SavedModelLayer("use_dan_en", trainable=True, precision="float32"),
        ...     keras.layers.Dense(1, activation="sigmoid"),
        ... ])
        >>> model.compile(loss="binary_crossentropy")
        >>> model.fit(texts, labels)
        >>> model.layers[0].save("tuned")
        >>> vectors = use_st5.load("tuned").encode(sentences)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        trainable: bool = False,
        precision: Literal["float32"] | None = None,
        **kwargs: Any,
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                "SavedModelLayer runs inside TensorFlow graphs, but Keras runs on "
                f"{keras.backend.backend()!r}. Start again with KERAS_BACKEND=tensorflow."
            )
        if precision not in (None, "float32"):
            raise ValueError(f"precision: expected None or 'float32', received {precision!r}.")
        super().__init__(**kwargs)
        refuse_after_fork()
        allow_replicated_strings()
        self.folder = os.fspath(folder)
        self.precision = precision
        self._source = model_folder(folder)
        self.supports_jit = False  # XLA does not support strings
        # The encoder that `save` writes, if the layer does not use the folder's SavedModel.
        self._encoder: Any = None
        manifest = ModelManifest.read(self._source)
        if precision == "float32" and manifest is not None and manifest.precision == "int8":
            self._use_encoder(_float32_encoder(self._source))
        else:
            self._use_saved_model()
        if trainable and not self.trainable_weights:
            raise ValueError(
                f"Expected a SavedModel with trainable variables in {self.folder}, found none. "
                "Use trainable=False."
            )
        if trainable and self._encoder is None and (fixed := _fixed_weights(self.model)):
            warnings.warn(_fixed_notice(self.model, fixed), stacklevel=2)
        self.trainable = trainable
        self.built = True

    def _use_saved_model(self) -> None:
        self.model = load_saved_model(self._source)
        self._infer = text_function(self.model, training=False)
        self._train = text_function(self.model, training=True)
        static = self._infer.structured_outputs.shape[1]
        self.dimension: int = static or int(self._infer(tf.constant([""])).shape[1])
        self.adopted_weights = _adopted(self.model)

    def _use_encoder(self, encoder: Any) -> None:
        """Uses a Keras model, whose weights become weights of this layer."""
        self._encoder = encoder
        self._tokenizer = encoder.tokenizer  # tracked here, so that its tables are exported
        self.model = encoder.model
        self.dimension = encoder.dimension

    def _embed(self, text: tf.Tensor, training: bool) -> tf.Tensor:
        """Strings `[batch]` to vectors `[batch, dimension]`."""
        if self._encoder is not None:
            ids = self._tokenizer.padded(text, self._encoder.max_length)
            return self.model(ids, training=training)
        if tf.distribute.has_strategy():
            # A function traced outside of the replicas would read only the first replica's weights.
            return embed_text(self.model, text, training=training)
        return (self._train if training else self._infer)(text)

    @property
    def compute_dtype(self) -> str:
        """The dtype of the input. Sequential models without `keras.Input` need it."""
        return "string"

    @property
    def variable_dtype(self) -> str:
        """The dtype "string", as in Keras's own string layers, so that inputs are not cast."""
        return "string"

    def __call__(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        """Also takes lists and arrays of strings, like `hub.KerasLayer`."""
        if not keras.backend.is_keras_tensor(text):
            text = tf.convert_to_tensor(text)
        return super().__call__(text, *args, **kwargs)

    def call(self, text: Any, training: bool = False) -> Any:
        refuse_after_fork()
        text = tf.convert_to_tensor(text)
        _check_shape(tuple(text.shape))
        if text.shape.rank > 1:
            text = tf.squeeze(text, axis=1)
        if self.trainable and self._encoder is None:
            for loss in getattr(self.model, "regularization_losses", ()):
                self.add_loss(loss())
        vectors = self._embed(text, training=training and self.trainable)
        return tf.cast(vectors, self.dtype_policy.compute_dtype)

    def compute_output_spec(self, text: Any, training: bool = False) -> keras.KerasTensor:
        _check_shape(text.shape)
        dtype = self.dtype_policy.compute_dtype
        return keras.KerasTensor((text.shape[0], self.dimension), dtype=dtype)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the SavedModel with the layer's weights and the model card.

        `use_st5.load`, `hub.load` and this layer can load the folder.

        Args:
            path: The folder to write. An existing model of use_st5 there is replaced in one step.

        Raises:
            FileExistsError: `path` exists and is not a model of use_st5.
            BlockingIOError: Another process is writing `path`.
        """
        if self._encoder is not None:
            self._encoder.export(path)
        else:
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
        return {
            **super().get_config(),
            "folder": self.folder,
            "trainable": self.trainable,
            "precision": self.precision,
        }


def _is_bundled(folder: str) -> bool:
    """Whether this is the name of a bundled model, and no local folder has the same name."""
    return folder in bundled_names() and model_folder(folder) == bundled_folder(folder).resolve()


def _float32_encoder(folder: os.PathLike[str]) -> Any:
    """Loads the model of a folder as a `TrainableEncoder` with float32 weights."""
    # Imported by name: `layers` must not import modules that use layers.
    return importlib.import_module("use_st5.trainable_encoder").TrainableEncoder.load(folder)


def _fixed_weights(model: Any) -> int:
    """The number of int8 weights of a SavedModel, which training cannot change."""
    coded = [each for each in getattr(model, "variables", ()) if each.dtype == tf.int8]
    return count_weights(coded)


def _fixed_notice(model: Any, fixed: int) -> str:
    trained = count_weights(model.trainable_variables)
    return (
        f"trainable=True trains {trained:,} weights; {fixed:,} are int8 and stay as they are. "
        'Use precision="float32" to train them too.'
    )


def _adopted(model: Any) -> list[keras.Variable]:
    """Keras variables that share their values with the SavedModel's variables."""
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
    """Warns about `[batch, 1]` and refuses all shapes except this one and `[batch]`."""
    if len(shape) == 2 and shape[1] in (None, 1):
        warnings.warn(
            f"Expected strings [batch], received {list(shape)}: the second axis is removed. "
            'Use keras.Input(shape=(), dtype="string").',
            stacklevel=3,
        )
    elif len(shape) != 1:
        raise ValueError(f"Expected strings [batch], received a tensor {list(shape)}.")
