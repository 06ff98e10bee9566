"""The weights of an exported encoder: as they were trained, or int8 codes with float32 scales."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf

from use_st5.engines.weights import int8_codes


class Float32Table:
    """A trainable table of embeddings, float32 `[rows, dim]`, stored as it was trained."""

    precision = "float32"

    def __init__(self, table: tf.Variable) -> None:
        self.variables = [table]
        self.trainable_variables = [table]
        self._table = table

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Gathers rows: int32 `[...]` → float32 `[..., dim]`, no dense read of the table."""
        return tf.gather(self._table, ids)

    def tracked(self) -> dict[str, tf.Variable]:
        """The variables by the names under which the SavedModel's root holds them."""
        return {"table": self._table}


class Int8Weights:
    """A matrix of weights as int8 codes with float32 scales: `weight = scale · code`.

    It takes a quarter of the space. The codes are fixed. The scales are trainable, so that
    fine-tuning still reaches these weights. It changes how much each term of a table weighs (in a
    USE-DAN's average, in a Transformer's input), and how much each output of a kernel weighs, but
    not their directions. To train directions too, load the model by
    `use_st5.TrainableEncoder.load`, which converts it to float32.

    Weights that are rounded, multiplied out and rounded again have the same codes and scales, bit
    for bit: if 127 times a scale is rounded to float32 and divided by 127, the result is the scale.

    Args:
        codes: int8 `[rows, columns]`, not trainable.
        scales: float32, `[rows]`, or `[1, columns]`.
    """

    precision = "int8"

    def __init__(self, codes: tf.Variable, scales: tf.Variable) -> None:
        self.variables = [codes, scales]
        self.trainable_variables = [scales]
        self._codes = codes
        self._scales = scales

    @classmethod
    def rounded(cls, weights: np.ndarray, *, axis: int, name: str = "weights") -> Self:
        """Rounds a table `[rows, dim]` (axis 1) or a kernel `[inputs, outputs]` (axis 0), float32.

        Codes are in −127 … 127, with a scale for each row of a table, or each output of a kernel.
        An entry moves by at most half its scale, `max |row| / 254`. A row of zeros stays so.
        """
        codes, scales = int8_codes(weights, axis=axis)
        return cls(
            tf.Variable(codes, trainable=False, name=f"{name}_codes"),
            tf.Variable(scales[:, 0] if axis else scales, name=f"{name}_scales"),
        )

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Gathers and scales rows of a table: int32 `[...]` → float32 `[..., dim]`."""
        codes = tf.cast(tf.gather(self._codes, ids), tf.float32)
        return codes * tf.expand_dims(tf.gather(self._scales, ids), -1)

    @property
    def shape(self) -> tf.TensorShape:
        """Rows and columns."""
        return self._codes.shape

    @property
    def scales(self) -> tf.Tensor:
        """The scales as they are now, with an axis of length 1: `[rows, 1]` or `[1, columns]`."""
        return self._scales if len(self._scales.shape) > 1 else self._scales[:, None]

    def whole(self, scales: tf.Tensor | None = None) -> tf.Tensor:
        """All weights, by default with the scales as they are now: float32 `[rows, columns]`."""
        scales = self.scales if scales is None else scales
        return tf.cast(self._codes, tf.float32) * scales

    @property
    def codes(self) -> tf.Tensor:
        """The codes, int8 `[rows, columns]`."""
        return tf.convert_to_tensor(self._codes)

    def tracked(self) -> dict[str, tf.Variable]:
        """The variables of a table by the names under which the SavedModel's root holds them."""
        return {"table_codes": self._codes, "table_scales": self._scales}


_numbers = itertools.count()


class ComputedAtLoad(tf.saved_model.experimental.TrackableResource):
    """A float32 tensor that is not stored: whoever loads the SavedModel computes it once.

    It lives as long as the loaded model; `tf.saved_model.load`, servers and the command line all
    run its initializer, after they have restored the variables.

    Args:
        compute: A function of the SavedModel's variables; it runs in the loading process alone.
        shape: The shape of its result.
    """

    def __init__(self, compute: Callable[[], tf.Tensor], shape: Sequence[int]) -> None:
        super().__init__()
        self._compute = compute
        self._shape = tf.TensorShape(shape)
        # Unique in this process and in the SavedModel; the loader appends a number of its own.
        self._name = f"computed_at_load_{next(_numbers)}"
        _ = self.resource_handle  # made here, because functions capture it

    def _create_resource(self) -> tf.Tensor:
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=self._shape, shared_name=self._name)

    def _initialize(self) -> None:
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=self._compute())

    def _destroy_resource(self) -> None:
        tf.raw_ops.DestroyResourceOp(resource=self.resource_handle, ignore_lookup_error=True)

    def exists(self) -> tf.Tensor:
        """Whether the process has computed it: bool `[]`."""
        return tf.raw_ops.VarIsInitializedOp(resource=self.resource_handle)

    def read(self) -> tf.Tensor:
        """The tensor, without a copy."""
        value = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=tf.float32)
        return tf.ensure_shape(value, self._shape)


class MultipliedOut:
    """Kernels that are multiplied out once, when the SavedModel is loaded.

    Where the scales are no longer those of that time, because training or a checkpoint has changed
    them, each call multiplies the kernels out. Gradients reach the scales in both cases.
    """

    def __init__(self, kernels: Sequence[Int8Weights]) -> None:
        self._kernels = kernels
        self._ends = [*itertools.accumulate(kernel.shape.num_elements() for kernel in kernels)]
        # In one tensor, because a loader makes functions for each resource.
        self._weights = ComputedAtLoad(
            lambda: tf.concat([tf.reshape(kernel.whole(), [-1]) for kernel in kernels], axis=0),
            self._ends[-1:],
        )
        columns = sum(kernel.shape[1] for kernel in kernels)
        self._scales = ComputedAtLoad(
            lambda: tf.concat([kernel.scales for kernel in kernels], axis=1), [1, columns]
        )
        self.resources = [self._scales, self._weights]
        # A graph of its own, because a SavedModel's custom gradients fail directly in a branch.
        self.read = tf.function(self._read, autograph=False).get_concrete_function()

    def _read(self) -> list[tf.Tensor]:
        """All kernels, float32 `[inputs, outputs]`."""
        # Read out here, because a SavedModel's gradient can capture tensors but no variables.
        codes = [kernel.codes for kernel in self._kernels]

        @tf.custom_gradient
        def kernels(*scales: tf.Tensor) -> Any:
            values = tf.cond(
                self._is_current(scales),
                self._slices,
                lambda: [k.whole(s) for k, s in zip(self._kernels, scales, strict=True)],
            )
            return values, lambda *gradients: [
                tf.reduce_sum(gradient * tf.cast(code, tf.float32), axis=0, keepdims=True)
                for code, gradient in zip(codes, gradients, strict=True)
            ]

        return kernels(*(tf.convert_to_tensor(kernel.scales) for kernel in self._kernels))

    def _slices(self) -> list[tf.Tensor]:
        """The kernels of the load; TensorFlow does not copy aligned slices of the first axis."""
        weights, starts = self._weights.read(), [0, *self._ends]
        return [
            tf.reshape(weights[start:end], kernel.shape)
            for start, end, kernel in zip(starts, self._ends, self._kernels, strict=False)
        ]

    def _is_current(self, scales: Sequence[tf.Tensor]) -> tf.Tensor:
        return tf.cond(
            self._scales.exists(),
            lambda: tf.reduce_all(tf.equal(tf.concat(scales, axis=1), self._scales.read())),
            lambda: tf.constant(value=False),
        )


EmbeddingTable = Float32Table | Int8Weights


def stored_table(embeddings: keras.Variable, precision: str) -> EmbeddingTable:
    """A trained table float32 `[rows, dim]`: the variable itself, or with "int8" rounded."""
    if precision == "int8":
        return Int8Weights.rounded(_float32(embeddings), axis=1, name="embedding")
    _float32(embeddings)
    return Float32Table(*raw_variables([embeddings]))


def rounded_kernel(kernel: keras.Variable) -> Int8Weights:
    """A trained matrix float32 `[inputs, outputs]` as codes with a scale for each output."""
    return Int8Weights.rounded(_float32(kernel), axis=0, name=kernel.path)


def _float32(variable: keras.Variable) -> np.ndarray:
    if variable.dtype != "float32":
        where = f"{variable.path}: {variable.dtype}"
        raise ValueError(f'{where} cannot be stored so. Build the model in "float32".')
    return variable.numpy()


def raw_variables(variables: Sequence[keras.Variable]) -> list[tf.Variable]:
    """The `tf.Variable` inside each Keras variable: SavedModels can hold no others."""
    if keras.backend.backend() != "tensorflow":
        advice = "Save the weights, and export them with KERAS_BACKEND=tensorflow"
        raise ValueError(f"Keras runs on {keras.backend.backend()}, not TensorFlow. {advice}.")
    return [variable.value for variable in variables]


@contextlib.contextmanager
def computing_with(
    values: Sequence[tuple[keras.Variable, tf.Tensor]], model: keras.Model
) -> Iterator[None]:
    """Within this context, a model computes with other values of some of its variables."""
    if not values:
        yield
        return
    replaced_ids = {id(variable) for variable, _ in values}
    with keras.StatelessScope(state_mapping=values) as scope:
        yield
    # The scope does not pass on what is assigned within it: the states of seed generators.
    for variable in model.variables:
        value = scope.get_current_value(variable)
        if value is not None and id(variable) not in replaced_ids:
            variable.assign(value)


def stored_weights(variables: Sequence[tf.Variable]) -> list[tf.Variable | Int8Weights]:
    """The weights of a SavedModel; codes and the scales after them become one entry."""
    remaining = iter(variables)
    return [
        Int8Weights(variable, next(remaining)) if variable.dtype == tf.int8 else variable
        for variable in remaining
    ]
