"""A SavedModel as a layer of Keras 3."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import keras
import tensorflow as tf
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer  # it has no public name
from keras.src.saving import serialization_lib  # the safe mode has no public name

import use_st5
from use_st5.export.loading import embed_text, load_saved_model, refuse_after_fork, text_function
from use_st5.hub.model_manifest import ModelManifest, check_replaceable, count_weights, write_again
from use_st5.hub.model_names import bundled_folder, bundled_names, model_folder
from use_st5.io.files import atomic_path


def _allow_replicated_strings() -> None:
    """Makes Keras's `fit` build a model from the batch of one replica.

    Before the first step, Keras computes the mean of a batch over all replicas, but TensorFlow has
    no mean of strings: `Value for attr 'T' of string … AddN`. Keras reads only the shapes and
    dtypes of the mean, which are those of one replica's batch.
    """
    original = getattr(TensorFlowTrainer, "_maybe_symbolic_build", None)
    if original is None or hasattr(original, "__wrapped__") or not tf.distribute.has_strategy():
        return

    def of_one_replica(value: Any) -> Any:
        replicated = isinstance(value, tf.distribute.DistributedValues)
        return value.values[0] if replicated else value

    @functools.wraps(original)
    def build_from_one_replica(self: Any, iterator: Any = None, data_batch: Any = None) -> None:
        if self._distribute_strategy is not None and iterator is not None:
            _, _, batches = next(iter(iterator))
            data_batch = tf.nest.map_structure(of_one_replica, next(batches))
        original(self, iterator=None, data_batch=data_batch)

    TensorFlowTrainer._maybe_symbolic_build = build_from_one_replica


def saved_model_call(
    model: Any,
    *,
    arguments: Mapping[str, Any],
    signature: str | None = None,
    output_key: str | None = None,
) -> Callable[..., Any]:
    """The call of a loaded SavedModel with the conventions of `hub.KerasLayer`."""
    names = [*getattr(model, "signatures", {})]
    if signature is not None and signature not in names:
        raise ValueError(f"signature: expected one of {names}, received {signature!r}.")
    if signature is None and not callable(model) and not names:
        raise ValueError("Expected a SavedModel with a call or a signature, found neither.")

    def call(inputs: Any, *, training: bool) -> Any:
        if signature is None:
            outputs = embed_text(model, inputs, training=training, **arguments)
        else:
            function = model.signatures[signature]
            if not isinstance(inputs, Mapping):
                free = {*function.structured_input_signature[1]} - {*arguments}
                if len(free) != 1:
                    raise ValueError(f"Expected a dict of {sorted(free)}, received one tensor.")
                inputs = dict.fromkeys(free, inputs)
            outputs = function(**inputs, **arguments)
        if output_key is None:
            return outputs
        keys = sorted(outputs) if isinstance(outputs, Mapping) else []
        if output_key not in keys:
            raise ValueError(f"output_key: expected one of {keys}, received {output_key!r}.")
        return outputs[output_key]

    return call


@keras.saving.register_keras_serializable(package="use_st5")
class SavedModelLayer(keras.layers.Layer):
    """A SavedModel as a Keras 3 layer, frozen or trainable.

    It replaces `hub.KerasLayer`, which is for Keras 2, and takes its arguments. It takes every
    reusable SavedModel: those of use_st5, those of TensorFlow Hub from strings to vectors, and
    others with tensors or dicts as inputs and outputs. The layer loads its own copy of the
    SavedModel, so training does not change an encoder that `use_st5.load` loaded from the same
    folder. `save` writes the trained weights as a SavedModel. The layer needs the TensorFlow
    backend of Keras.

    A saved `.keras` file contains the weights and the folder's path (or the bundled name), but not
    the SavedModel. To load the file, keep the folder and import `use_st5.layers` first. A
    SavedModel is a program, and a `.keras` file from an unknown source could name any SavedModel.
    So `keras.models.load_model` loads only bundled models, unless it gets `safe_mode=False`.

    The tables of the bundled models are int8, which training cannot change. With
    `precision="float32"` the layer trains all weights. It then needs four times the memory, `save`
    writes four times the size, and with the table of `use_dan_en` an epoch takes about eight times
    the time.

    Keras's `fit`, `evaluate` and `predict` take strings as `tf.constant([...])` or as a
    `tf.data.Dataset`. They refuse Python lists and NumPy arrays of `str`. A direct call of the
    layer takes these too.

    Args:
        handle: The SavedModel: a bundled name, a folder, or a name that is downloaded once, such as
            "kaggle://…", "hf://ORG/NAME", or the URL of an archive.
        trainable: Whether training changes the SavedModel's trainable variables.
        arguments: Further arguments of the SavedModel's call, by name. A `.keras` file keeps them
            as JSON.
        signature: The signature to call, frozen; None: the SavedModel itself.
        output_key: Which output to return if the SavedModel returns a dict. None: all outputs.
        output_shape: The output shape without the batch axis, such as `[512]`, if the SavedModel
            does not state it.
        input_shape: Accepted because `hub.KerasLayer` needs it; `[]` for strings.
        dtype: A Keras dtype policy. `tf.string`, which `hub.KerasLayer` needs, changes nothing.
        precision: "float32" converts the int8 weights of a model that use_st5 exported. None keeps
            the weights as they are stored.

    Call arguments:
        inputs: string `[batch]`, a tensor, a list or an array; or `[batch, texts]`, such as the
            sentences of a document; `[batch, 1]` is read as `[batch]`, with a warning. For other
            SavedModels the tensor, or the dict of tensors, that they take.
        training: Whether to apply dropout; a frozen layer never applies it.

    Returns:
        `[batch, dimension]`, or `[batch, texts, dimension]`, in the layer's compute dtype, float32
        by default. For other SavedModels their outputs, with floats in the compute dtype.

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

    # The dimension of the vectors, an int; None: the SavedModel is not a text embedding.
    dimension: Any = None

    def __init__(
        self,
        handle: str | os.PathLike[str],
        trainable: bool = False,
        arguments: Mapping[str, Any] | None = None,
        *,
        signature: str | None = None,
        output_key: str | None = None,
        output_shape: Any = None,
        input_shape: Sequence[int | None] | None = None,
        dtype: Any = None,
        precision: Literal["float32"] | None = None,
        **kwargs: Any,
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise ValueError("SavedModelLayer needs Keras on TensorFlow: KERAS_BACKEND=tensorflow.")
        if precision not in (None, "float32"):
            raise ValueError(f"precision: expected None or 'float32', received {precision!r}.")
        if trainable and signature is not None:
            raise ValueError("Expected trainable=False with a signature: it has no gradients.")
        # hub.KerasLayer's dtype is that of the input.
        super().__init__(dtype=None if dtype in (tf.string, "string") else dtype, **kwargs)
        refuse_after_fork()
        _allow_replicated_strings()
        self.handle = os.fspath(handle)
        self.arguments = dict(arguments or {})
        self.signature = signature
        self.output_key = output_key
        self.output_shape = _as_lists(output_shape)
        self.precision = precision
        self._source = model_folder(handle)
        self.supports_jit = False  # XLA does not support strings
        # The encoder that `save` writes, if the layer does not use the folder's SavedModel.
        self._encoder: Any = None
        manifest = ModelManifest.read(self._source)
        if precision == "float32" and manifest is not None and manifest.precision == "int8":
            # A Keras model, whose weights become weights of this layer.
            encoder = self._encoder = use_st5.TrainableEncoder.load(self._source)
            self._tokenizer = encoder.tokenizer  # tracked here, so that its tables are exported
            self.model, self.dimension = encoder.model, encoder.dimension
        else:
            self._use_saved_model()
        if input_shape is not None and not self._embeds_text:
            self._input_shape_arg = tuple(input_shape)  # Sequential reads it.
        if trainable and not self.trainable_weights:
            raise ValueError(f"Expected trainable variables in {self.handle}, found none.")
        if trainable and self._encoder is None:
            fixed = count_weights([each for each in self.model.variables if each.dtype == tf.int8])
            trained = count_weights(self.model.trainable_variables)
            if fixed:
                numbers = f"{trained:,} weights; {fixed:,} are int8 and stay as they are"
                advice = 'Use precision="float32" to train them too.'
                warnings.warn(f"trainable=True trains {numbers}. {advice}", stacklevel=2)
        self.trainable = trainable
        self.built = True

    def _use_saved_model(self) -> None:
        self.model = load_saved_model(self._source)
        self._call = saved_model_call(
            self.model,
            arguments=self.arguments,
            signature=self.signature,
            output_key=self.output_key,
        )
        # Keras variables that share their values with the SavedModel's variables.
        trainable_ids = {id(each) for each in getattr(self.model, "trainable_variables", ())}
        self.adopted_weights = [
            keras.Variable(
                initializer=variable,
                trainable=id(variable) in trainable_ids,
                dtype=variable.dtype.name,
                name=variable.name.split(":")[0].replace("/", "_"),
            )
            for variable in getattr(self.model, "variables", ())
        ]
        try:
            self._infer = text_function(self.model, training=False, call=self._call)
            self._train = text_function(self.model, training=True, call=self._call)
        except ValueError:
            self._infer = self._train = None  # Not a text embedding: other inputs or outputs.
            return
        shape = self._infer.structured_outputs.shape
        dimension = shape[1] if shape.rank else None
        self.dimension = dimension or int(self._infer(tf.constant([""])).shape[1])

    @property
    def _embeds_text(self) -> bool:
        return self.dimension is not None

    def vectors(self, text: tf.Tensor, training: bool) -> tf.Tensor:
        """Strings `[batch]` → float32 `[batch, dimension]`, for use in your own graph."""
        if self._encoder is not None:
            ids = self._tokenizer.padded(text, self._encoder.max_length)
            return self.model(ids, training=training)
        if tf.distribute.has_strategy():
            # A function traced outside of the replicas would read only the first replica's weights.
            return self._call(text, training=training)
        return (self._train if training else self._infer)(text)

    @property
    def compute_dtype(self) -> str:
        """The dtype of the input. Sequential models without `keras.Input` need it."""
        return "string" if self._embeds_text else self.dtype_policy.compute_dtype

    @property
    def variable_dtype(self) -> str:
        """The dtype "string", as in Keras's own string layers, so that inputs are not cast."""
        return "string"

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Also takes lists and arrays of strings, like `hub.KerasLayer`."""
        if self._embeds_text:
            if not keras.backend.is_keras_tensor(inputs):
                inputs = tf.convert_to_tensor(inputs)
                if inputs.shape == [0]:  # TensorFlow takes an empty list for floats.
                    inputs = tf.constant([], tf.string)
            _check_texts(inputs)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any, training: bool = False) -> Any:
        refuse_after_fork()
        inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
        if self.trainable and self._encoder is None:
            for loss in getattr(self.model, "regularization_losses", ()):
                self.add_loss(loss())
        training = training and self.trainable
        dtype = self.dtype_policy.compute_dtype
        if self._embeds_text:
            vectors = self.vectors(tf.reshape(inputs, [-1]), training=training)
            if not _is_column(inputs.shape):
                vectors = tf.reshape(vectors, [*tf.unstack(tf.shape(inputs)), self.dimension])
                vectors.set_shape([*inputs.shape, self.dimension])
            return tf.cast(vectors, dtype)
        outputs = self._call(inputs, training=training)
        if self.output_shape is not None:
            outputs = _with_shapes(outputs, self.output_shape)
        return tf.nest.map_structure(
            lambda output: tf.cast(output, dtype) if output.dtype.is_floating else output, outputs
        )

    def compute_output_spec(self, inputs: Any, training: bool = False) -> Any:
        if not self._embeds_text:
            # That of a layer without `compute_output_shape`.
            return super(keras.layers.Layer, self).compute_output_spec(inputs, training=training)
        dtype = self.dtype_policy.compute_dtype
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype=dtype)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """The shape of the vectors of strings; `TimeDistributed` needs it."""
        shape = input_shape[:1] if _is_column(input_shape) else input_shape
        return (*shape, self.dimension)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the SavedModel with the layer's weights and the model card.

        `use_st5.load`, `hub.load` and this layer can load the folder.

        Args:
            path: The folder to write. An existing model of use_st5 there is replaced in one step.
        """
        if self._encoder is not None:
            self._encoder.export(path)
        elif self.dimension is not None:
            write_again(self.model, self._source, path, dimension=self.dimension)
        else:
            with atomic_path(path) as temporary:
                check_replaceable(path)
                tf.saved_model.save(self.model, str(temporary), signatures=self.model.signatures)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SavedModelLayer:
        handle = config["handle"]
        # A local folder with the name of a bundled model takes precedence over it.
        bundled = handle in bundled_names() and bundled_folder(handle).resolve()
        trusted = bundled and bundled == model_folder(handle)
        if serialization_lib.in_safe_mode() and not trusted:
            raise ValueError(f"If you trust {handle!r} and this file, load with safe_mode=False.")
        return cls(**config)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "handle": self.handle,
            "trainable": self.trainable,
            "arguments": dict(self.arguments),
            "signature": self.signature,
            "output_key": self.output_key,
            "output_shape": self.output_shape,
            "precision": self.precision,
        }


def _as_lists(shape: Any) -> Any:
    """A shape without its batch axis, or a dict of these, as JSON has them."""
    if shape is None or isinstance(shape, Mapping):
        return shape and {name: _as_lists(each) for name, each in shape.items()}
    return [None if each is None else int(each) for each in shape]


def _with_shapes(outputs: Any, shapes: Any) -> Any:
    """Outputs with the shapes that the user states, without the batch axis."""
    if isinstance(outputs, Mapping):
        stated = {name: tf.ensure_shape(outputs[name], [None, *shapes[name]]) for name in shapes}
        return {**outputs, **stated}
    return tf.ensure_shape(outputs, [None, *shapes])


def _is_column(shape: Any) -> bool:
    """Whether the second axis of strings is only a column, as in `hub.KerasLayer`'s inputs."""
    return len(shape) == 2 and shape[1] == 1


def _check_texts(text: Any) -> None:
    """Refuses what is no batch of strings, which Keras would cast; warns about `[batch, 1]`."""
    dtype, shape = keras.backend.standardize_dtype(text.dtype), list(text.shape)
    if dtype != "string" or len(shape) not in (1, 2):
        usual = 'keras.Input(shape=(), dtype="string")'
        raise TypeError(f"Expected strings [batch], received {dtype} {shape}. Write {usual}.")
    if _is_column(shape):
        warnings.warn(
            f"Expected strings [batch], received {shape}: the second axis is removed. "
            'Use keras.Input(shape=(), dtype="string").',
            stacklevel=3,
        )
