"""Stored weights: rounding of tables and kernels, and a SavedModel with rounded kernels."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.models.toy_family import TrigramTokenizer
from use_st5.engines.weights import int8_codes
from use_st5.export.encoder_graph import EncoderGraph, padded_graph
from use_st5.export.saved_model import restore_weights, write_graph
from use_st5.export.stored_weights import Int8Weights, rounded_kernel, stored_table
from use_st5.export.web import codes_by_frequency

TEXTS = ["How old are you?", "", "the river bank", "naïve café 😀"]


def test_a_table_by_hand() -> None:
    rows = np.array([[1.27, -0.634, 0.0], [0, 0, 0]], np.float32)
    table = Int8Weights.rounded(rows, axis=1)
    codes, scales = (variable.numpy() for variable in table.variables)
    assert codes.tolist() == [[127, -63, 0], [0, 0, 0]]
    np.testing.assert_allclose(scales, [0.01, 1.0], rtol=1e-6)
    np.testing.assert_allclose(table.lookup([[1, 0]])[0, 1, 0], 1.27, rtol=1e-6)
    np.testing.assert_allclose(table.whole(), [[1.27, -0.63, 0], [0, 0, 0]], rtol=1e-6)


def test_a_kernel_by_hand() -> None:
    columns = np.array([[1.27, 0], [-0.634, 0], [0.01, 0]], np.float32)
    kernel = Int8Weights.rounded(columns, axis=0)
    codes, scales = (variable.numpy() for variable in kernel.variables)
    assert codes.tolist() == [[127, 0], [-63, 0], [1, 0]]
    np.testing.assert_allclose(scales, [[0.01, 1.0]], rtol=1e-6)
    np.testing.assert_allclose(kernel.whole(), [[1.27, 0], [-0.63, 0], [0.01, 0]], rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_no_entry_moves_by_more_than_half_a_scale(axis: int) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 32)) * np.geomspace(1e-6, 1e6, 50)[:, None]
    weights = rows if axis else rows.T
    rounded = Int8Weights.rounded(weights.astype(np.float32), axis=axis)
    moved = np.abs(rounded.whole().numpy() - weights)
    assert (moved <= np.abs(weights).max(axis=axis, keepdims=True) / 254 * 1.0001).all()


def test_what_is_rounded_twice_is_rounded_once() -> None:
    """Rounding a second time changes no bit, for any scales."""
    largest = np.random.default_rng(0).uniform(1, 2, 200_000).astype(np.float32)
    once = Int8Weights.rounded(np.stack([largest, largest * -0.3], axis=1), axis=1)
    twice = Int8Weights.rounded(once.whole().numpy(), axis=1)
    for first, second in zip(once.variables, twice.variables, strict=True):
        np.testing.assert_array_equal(first, second)


class Dropping(keras.Model):
    """A table, dropout and two dense layers, the first of them regularised."""

    dimension = 5

    def __init__(self) -> None:
        super().__init__()
        self.embedding = keras.layers.Embedding(64, 6)
        self.drop = keras.layers.Dropout(0.5, seed=3)
        self.inner = keras.layers.Dense(6, activation="relu", kernel_regularizer="l2")
        self.outer = keras.layers.Dense(5)

    def build(self, _input_shape: Any = None) -> None:
        for layer in (self.embedding, self.inner, self.outer):
            layer.build((None, 6))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.encode_embedded(self.embedding(ids), ids, training=training)

    def encode_embedded(self, embedded: Any, ids: Any, *, training: bool = False) -> Any:
        mask = keras.ops.cast(ids > 0, "float32")[..., None]
        hidden = self.inner(self.drop(keras.ops.sum(embedded * mask, axis=1), training=training))
        return self.outer(hidden)

    def graph(self) -> EncoderGraph:
        return padded_graph(
            self,
            TrigramTokenizer(),
            table=stored_table(self.embedding.embeddings, "int8"),
            kernels=[self.inner.kernel, self.outer.kernel],
        )


def dropping() -> Dropping:
    keras.utils.set_random_seed(0)
    model = Dropping()
    model.build()
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("int8") / "model"
    write_graph(dropping().graph(), path, name="dropping", metadata={})
    return path


def rounded_by_hand(model: Dropping) -> Dropping:
    """Rounds the weights of a model as its SavedModel must have them."""
    for kernel in (model.inner.kernel, model.outer.kernel):
        scales = np.abs(kernel.numpy()).max(axis=0) / 127
        kernel.assign(np.rint(kernel.numpy() / scales) * scales)
    table = model.embedding.embeddings
    scales = np.abs(table.numpy()).max(axis=1, keepdims=True) / 127
    table.assign(np.rint(table.numpy() / scales) * scales)
    return model


def test_a_saved_model_computes_with_what_was_rounded(folder: Path) -> None:
    loaded = tf.saved_model.load(str(folder))
    model = rounded_by_hand(dropping())
    ids = TrigramTokenizer().padded(TEXTS)
    np.testing.assert_allclose(loaded(TEXTS), model(ids), atol=1e-6)
    assert np.abs(loaded(TEXTS) - dropping()(ids)).max() > 1e-5
    kinds = [variable.dtype.name for variable in loaded.variables]
    assert kinds.count("int8") == 3
    # Scales of the table and the kernels, and two biases; the dropout's seed state is no weight.
    shapes = [tuple(variable.shape) for variable in loaded.trainable_variables]
    assert shapes == [(64,), (1, 6), (6,), (1, 5), (5,)]


def test_dropout_goes_on_drawing(folder: Path) -> None:
    loaded = tf.saved_model.load(str(folder))
    draws = [loaded(TEXTS, training=True).numpy() for _ in range(3)]
    assert min(np.abs(draws[0] - draws[1]).max(), np.abs(draws[1] - draws[2]).max()) > 1e-3


def test_each_scale_has_its_gradient(folder: Path) -> None:
    """Moving a scale by a little moves the sum by the gradient."""
    loaded = tf.saved_model.load(str(folder))
    with tf.GradientTape() as tape:
        before = tf.reduce_sum(loaded(TEXTS)[:, 0])
    scales = loaded.trainable_variables[1]
    gradient = tape.gradient(before, scales)
    scales.assign(scales * 1.001)
    expected = tf.reduce_sum(gradient * scales) * (1 - 1 / 1.001)
    np.testing.assert_allclose(tf.reduce_sum(loaded(TEXTS)[:, 0]) - before, expected, rtol=0.02)


def test_a_second_round_trip_keeps_each_bit(folder: Path, tmp_path: Path) -> None:
    loaded = tf.saved_model.load(str(folder))
    model = Dropping()
    model.build()
    restore_weights(model, loaded)
    np.testing.assert_allclose(model(loaded.preprocess(TEXTS)), loaded(TEXTS), atol=1e-6)
    write_graph(model.graph(), tmp_path / "again", name="again", metadata={})
    again = tf.saved_model.load(str(tmp_path / "again"))
    np.testing.assert_array_equal(again(TEXTS), loaded(TEXTS))
    for first, second in zip(loaded.variables, again.variables, strict=True):
        np.testing.assert_array_equal(first, second)


def test_no_float32_copy_of_a_kernel_is_stored(folder: Path) -> None:
    """There is none among the variables, and none among the constants of the graph."""
    reader = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
    dtypes = reader.get_variable_to_dtype_map()
    matrices = [
        name for name, shape in reader.get_variable_to_shape_map().items()
        if dtypes[name] == tf.float32 and len(shape) == 2 and shape[0] > 1
    ]  # fmt: skip
    assert not matrices
    graph = tf.saved_model.load(str(folder)).signatures["ids"].graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    constants = [node.attr["value"].tensor for node in nodes if node.op == "Const"]
    assert max(tf.make_ndarray(each).size for each in constants) < 30


def test_kernels_are_multiplied_out_once_at_load(folder: Path) -> None:
    """Vectors of strings read what the loading made; ids and changed scales do not."""
    loaded, other = (tf.saved_model.load(str(folder)) for _ in range(2))
    with ThreadPoolExecutor(4) as pool:
        first, *rest = pool.map(lambda _: loaded(tf.constant(TEXTS)).numpy(), range(12))
    ids = loaded.preprocess(TEXTS)
    np.testing.assert_allclose(first, loaded.encode_ids(ids), atol=1e-6)
    assert all((each == first).all() for each in rest)
    kernels = loaded.computed_at_load[1].resource_handle
    tf.raw_ops.AssignVariableOp(resource=kernels, value=tf.zeros([66]))
    assert np.abs(loaded(TEXTS) - first).max() > 1e-3
    np.testing.assert_array_equal(other(TEXTS), first)
    scales = loaded.trainable_variables[1]
    scales.assign(scales * 2)
    assert np.abs(loaded(TEXTS) - first).max() > 1e-3
    np.testing.assert_allclose(loaded(TEXTS), loaded.encode_ids(ids), atol=1e-6)


def test_a_signature_outlives_the_loaded_object(folder: Path) -> None:
    expected = tf.saved_model.load(str(folder))(TEXTS)
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    gc.collect()
    vectors = signature(text=tf.constant(TEXTS))["embeddings"]
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def built(dtype: str = "float32") -> keras.layers.Embedding:
    layer = keras.layers.Embedding(5, 3, dtype=dtype)
    layer.build((None, None))
    return layer


def test_another_precision_is_refused() -> None:
    half = built("bfloat16").embeddings
    for store in (rounded_kernel, lambda variable: stored_table(variable, "float32")):
        with pytest.raises(ValueError, match="embeddings: bfloat16 cannot be stored"):
            store(half)


def test_codes_by_frequency_have_finer_steps_for_frequent_rows() -> None:
    # Each row, and so the median row, has the root mean square 2: at rank 4,950 a step is 0.35
    # times 2. At rank 575 it is half as large, since 575 + 50 is an eighth of 5,000.
    row = np.zeros(12, np.float32)
    row[:3] = 4.0, -4.0, 4.0
    codes, scales = codes_by_frequency(np.stack([row, row]), np.array([4950, 575]))
    np.testing.assert_allclose(scales, [[0.7], [0.35]], rtol=1e-6)
    assert codes[:, :4].tolist() == [[6, -6, 6, 0], [11, -11, 11, 0]]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="received NaN or infinity"):
        int8_codes(np.float32([[1.0, 2.0], [value, 0.0]]), axis=0)
