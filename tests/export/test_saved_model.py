"""The promises of an exported folder, checked in this process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from use_st5.encode.encoder import SentenceEncoder
from use_st5.export.loading import saved_model_graph
from use_st5.models.family import family_of
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.tokenizers.long_texts import LONG_BYTES
from use_st5.trainable_encoder import TrainableEncoder

TEXTS = [
    "The cat sat on the mat.",
    "How old are you?",
    "",
    "What is your age?",
    "   \t\n",
    "the river bank, the river bank, the river bank",
    "\U0001f600 你好 \u200d",
    b"broken \xff\xfe bytes",
    "unheard-of words everywhere",
]


@pytest.fixture(scope="module", params=["float32", "int8"])
def precision(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def loaded(toy: Any, precision: str) -> Any:
    return tf.saved_model.load(str(toy.folders[precision]))


def test_gives_unit_vectors_for_every_text(loaded: Any) -> None:
    vectors = loaded(TEXTS).numpy()
    assert vectors.shape == (len(TEXTS), 16)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_no_text_gives_no_vector(loaded: Any) -> None:
    assert loaded(tf.constant([], tf.string)).shape == (0, 16)


def test_last_empty_text_keeps_its_row(loaded: Any) -> None:
    vectors = loaded(["the cat", "", ""]).numpy()
    assert vectors.shape == (3, 16)
    np.testing.assert_allclose(vectors[1], vectors[2], rtol=0, atol=1e-6)
    np.testing.assert_allclose(vectors[1:2], loaded([""]).numpy(), atol=1e-6)


def test_flat_path_equals_ids_path(loaded: Any) -> None:
    ids = loaded.preprocess(TEXTS)
    assert ids.dtype == tf.int32
    np.testing.assert_allclose(loaded.encode_ids(ids), loaded(TEXTS), atol=1e-5)


def test_float32_equals_the_keras_model(toy: Any) -> None:
    loaded = tf.saved_model.load(str(toy.folders["float32"]))
    np.testing.assert_allclose(loaded(TEXTS), toy.model(toy.ids(TEXTS)), atol=1e-5)


def written(toy: Any) -> keras.Model:
    """A new model with the configuration of the exported one, without a head."""
    family = family_of(toy.model)
    return family.restore(family.config(toy.model))


def test_int8_equals_the_keras_model_with_what_is_rounded(toy: Any) -> None:
    loaded = tf.saved_model.load(str(toy.folders["int8"]))
    weights, remaining = [], iter(variable.numpy() for variable in loaded.variables)
    for array in remaining:
        scales = next(remaining) if array.dtype == np.int8 else np.float32(1)
        # A table has a scale for each row, a kernel for each column.
        weights.append(array * (scales[:, None] if scales.ndim == 1 else scales))
    rounded = written(toy)
    for variable, array in zip(rounded.variables, weights, strict=True):
        variable.assign(array)
    np.testing.assert_allclose(loaded(TEXTS), rounded(toy.ids(TEXTS)), atol=1e-5)


def test_padding_changes_nothing(loaded: Any) -> None:
    ids = loaded.preprocess(TEXTS)
    for length in (64, 128):
        padded = tf.pad(ids, [[0, 0], [0, length - ids.shape[1]]])
        np.testing.assert_allclose(loaded.encode_ids(padded), loaded(TEXTS), atol=1e-5)


def test_neighbours_and_order_change_nothing(loaded: Any) -> None:
    together = loaded(TEXTS).numpy()
    alone = np.concatenate([loaded([text]).numpy() for text in TEXTS])
    np.testing.assert_allclose(alone, together, atol=1e-5)
    np.testing.assert_allclose(loaded(TEXTS[::-1]).numpy()[::-1], together, atol=1e-5)
    np.testing.assert_allclose(loaded(TEXTS * 7).numpy()[-len(TEXTS) :], together, atol=1e-5)


def test_a_long_text(loaded: Any, toy: Any) -> None:
    known = ["the", "a", "cat", "dog", "sat", "on", "mat", "unknown", "."]
    words = np.random.default_rng(0).choice(known, 10_000)
    text = " ".join(words)
    length = loaded.preprocess([text]).shape[1]
    if toy.max_length is None:
        assert length > 10_000
    else:
        assert length == toy.max_length
        read = length - (int(loaded.token_counts(["the"])[0]) - 1)  # without special tokens
        cut = " ".join(words[:read])
        np.testing.assert_allclose(loaded([text]), loaded([cut]), atol=1e-5)
        assert np.abs(loaded([text]) - loaded([" ".join(words[: read - 1])])).max() > 1e-3
    # The mean of 10,000 random rows is small, and scaling it to length 1 enlarges the rounding.
    np.testing.assert_allclose(
        loaded([text, "a cat"]), loaded.encode_ids(loaded.preprocess([text, "a cat"])), atol=1e-4
    )


def test_one_trace_whatever_is_passed(toy: Any, precision: str) -> None:
    """Without a signature, each list of strings would be traced again, and its trace kept."""
    loaded = tf.saved_model.load(str(toy.folders[precision]))
    for count in range(1, 6):
        texts = [f"the cat {count}"] * count
        for given in (texts, tf.constant(texts), np.array(texts)):
            assert loaded(given, training=count % 2 == 0).shape == (count, 16)
        loaded.encode_ids(loaded.preprocess(texts))
    functions = [loaded.__call__, loaded.encode_ids, loaded.preprocess]
    if toy.max_length is not None:
        loaded.token_counts(["the cat"])
        loaded.token_counts(["the cat", "a"])
        functions.append(loaded.token_counts)
    for function in functions:
        assert function.experimental_get_tracing_count() == 1


def test_training_drops_at_random(loaded: Any) -> None:
    first, second = (loaded(TEXTS, training=True).numpy() for _ in range(2))
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(loaded(TEXTS, training=False), loaded(TEXTS))


def test_every_trainable_variable_gets_a_finite_gradient(
    loaded: Any, toy: Any, precision: str
) -> None:
    rounded = 0
    if precision == "int8":
        rounded = {"use_dan": 1, "use_transformer": 9, "bert": 9}[family_of(toy.model).name]
    assert len(loaded.trainable_variables) == len(written(toy).trainable_variables)
    assert len(loaded.variables) == len(written(toy).variables) + rounded
    target = tf.random.stateless_normal([len(TEXTS), 16], seed=(0, 1))
    for call, inputs, training in (
        (loaded, tf.constant(TEXTS), True),
        (loaded.encode_ids, loaded.preprocess(TEXTS), False),
    ):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(call(inputs, training=training) * target)
        for gradient in tape.gradient(loss, loaded.trainable_variables):
            dense = tf.convert_to_tensor(gradient).numpy()
            assert np.isfinite(dense).all()
            assert np.abs(dense).max() > 0
    assert [v.dtype for v in loaded.variables].count(tf.int8) == rounded


def test_signatures(loaded: Any) -> None:
    text = tf.constant(["the cat", "how old are you"])
    signatures = loaded.signatures
    assert set(signatures) == {"serving_default", "ids", "preprocess"}
    ids = signatures["preprocess"](text=text)["ids"]
    expected = loaded(text).numpy()
    served = signatures["serving_default"](text=text)["embeddings"]
    np.testing.assert_allclose(served, expected, atol=1e-6)
    np.testing.assert_allclose(signatures["ids"](ids=ids)["embeddings"], expected, atol=1e-5)


def test_ids_signature_is_free_of_strings_and_tables(loaded: Any) -> None:
    graph = loaded.signatures["ids"].graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    kinds = {node.op for node in nodes}
    assert "ResourceGather" in kinds
    assert not [kind for kind in kinds if "String" in kind or "Table" in kind or "Regex" in kind]


def test_no_dense_read_of_the_table(loaded: Any, toy: Any, precision: str) -> None:
    """Reading a whole table in each call costs more than all the rest (100 MB: 200 ms)."""
    function = loaded.signatures["serving_default"]
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    gathers = sum(node.op == "ResourceGather" for node in nodes)
    reads = sum(node.op == "ReadVariableOp" for node in nodes)
    ways = 2 if toy.max_length is None else 1  # long texts are read another way
    assert gathers == ways * (2 if precision == "int8" else 1)  # codes and scales, or the table
    # All weights but the table are read once, no dropout states. The gradient reads the codes of an
    # int8 kernel too. What all were multiplied out to at load, with their scales, are two reads.
    table = 2 if precision == "int8" else 1
    weights = sum(variable.dtype in (tf.float32, tf.int8) for variable in loaded.variables)
    kernels = max(0, sum(variable.dtype == tf.int8 for variable in loaded.variables) - 1)
    assert reads == weights - table + (kernels + 2 if kernels else 0)


def test_ids_are_compiled_by_xla(loaded: Any) -> None:
    compiled = tf.function(loaded.encode_ids, jit_compile=True)
    ids = loaded.preprocess(TEXTS)
    np.testing.assert_allclose(compiled(ids), loaded(TEXTS), atol=1e-5)


def test_tokens_are_counted_where_texts_are_cut(loaded: Any, toy: Any) -> None:
    assert hasattr(loaded, "token_counts") == (toy.max_length is not None)
    if toy.max_length is not None:
        counts = loaded.token_counts([*TEXTS, "don't " * 5000])
        assert counts.dtype == tf.int32
        if toy.tokenizer.kind == "wordpiece":
            expected = [9, 7, 2, 7, 2, 13]  # with the special tokens at both ends
        else:
            expected = [7, 5, 1, 5, 1, 11, 3, 3, 3, 10_000]
        assert counts.numpy()[: len(expected)].tolist() == expected
        assert loaded.token_counts(tf.constant([], tf.string)).shape == (0,)


def test_a_replaced_model_leaves_nothing_of_the_older(toy_use_dan: Any, tmp_path: Path) -> None:
    toy = toy_use_dan
    folder = tmp_path / "model"
    TrainableEncoder(toy.model, toy.tokenizer, name="older", card="# Older\n").export(folder)
    assert (folder / "README.md").is_file()
    TrainableEncoder(toy.model, toy.tokenizer, name="new").export(folder)
    assert not (folder / "README.md").exists()
    assert (folder / "saved_model.pb").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_is_no_model_is_not_replaced(toy_use_dan: Any, tmp_path: Path) -> None:
    toy = toy_use_dan
    (tmp_path / "notes").write_text("precious")
    for write in (
        partial(TrainableEncoder(toy.model, toy.tokenizer).export, tmp_path),
        partial(TrainableEncoder.load(toy.folders["int8"]).export, tmp_path, precision="int8"),
    ):
        with pytest.raises(FileExistsError, match=r"Found notes\. Move this away"):
            write()
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_a_limit_of_its_own_below_the_models(toy_use_transformer: Any, tmp_path: Path) -> None:
    model, tokenizer = toy_use_transformer.model, toy_use_transformer.tokenizer
    manifest = TrainableEncoder(model, tokenizer, name="short", max_length=3).export(tmp_path / "m")
    assert manifest.max_length == 3
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    np.testing.assert_allclose(loaded(["the cat sat on"]), loaded(["the cat sat"]), atol=1e-6)
    for limit in (0, 17):
        with pytest.raises(ValueError, match=f"expected 1 to 16 tokens, received {limit}"):
            TrainableEncoder(model, tokenizer, name="x", max_length=limit).export(tmp_path / "n")


def test_refusals(toy: Any, tmp_path: Path) -> None:
    rows = toy.rows

    def export(
        model: Any = toy.model, max_length: int | None = None, precision: str = "float32"
    ) -> None:
        encoder = TrainableEncoder(model, toy.tokenizer, name="x", max_length=max_length)
        encoder.export(tmp_path / "model", precision=precision)

    with pytest.raises(ValueError, match="precision: expected one of .* received 'int4'"):
        export(precision="int4")
    if toy.max_length is None:
        with pytest.raises(ValueError, match="any length"):
            export(max_length=3)
    config = toy.model.get_config()
    field = "num_embeddings" if "num_embeddings" in config["config"] else "vocabulary_size"
    shape = {**config["config"], field: rows - 1}
    with pytest.raises(ValueError, match=f"has {rows} ids, the table {rows - 1} rows"):
        export(type(toy.model).from_config({**config, "config": shape}))
    with pytest.raises(ValueError, match="one of ..float32.,., received 'int8'"):
        export(keras.Sequential(), precision="int8")
    assert not list(tmp_path.iterdir())


class TransposedMean(keras.Model):
    """An encoder of another family: a regularised table, averaged with its padding."""

    dimension = 3

    def __init__(self) -> None:
        super().__init__()
        self.embedding = keras.layers.Embedding(40, 3, embeddings_regularizer="l2")
        self.drop = keras.layers.Dropout(0.5)

    def call(self, ids: Any, training: bool = False) -> Any:
        return keras.ops.mean(self.drop(self.embedding(ids), training=training), axis=1)


def test_any_encoder_over_padded_ids(toy_use_dan: Any, tmp_path: Path) -> None:
    model = TransposedMean()
    model(np.ones((1, 1), np.int32))
    tokenizer = toy_use_dan.tokenizer
    manifest = TrainableEncoder(model, tokenizer, name="mean", max_length=2).export(
        tmp_path / "model"
    )
    assert (manifest.dimension, manifest.max_length) == (3, 2)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    text = tf.constant(["the cat sat on the mat", "a dog"])
    expected = model(tokenizer.padded(text, 2))
    np.testing.assert_allclose(loaded(text), expected, atol=1e-6)
    assert loaded.token_counts(text).numpy().tolist() == [6, 2]
    assert loaded.preprocess(text).shape == (2, 3)
    assert np.abs(loaded(text, training=True) - loaded(text)).max() > 1e-3
    [regularization] = loaded.regularization_losses
    loaded.trainable_variables[0].assign(tf.fill([40, 3], 2.0))
    np.testing.assert_allclose(regularization(), 0.01 * 4 * 120, rtol=1e-5)


def test_a_text_read_in_blocks_has_the_vector_of_its_ids(loaded: Any, toy: Any) -> None:
    """Long texts take another path in the graph, on which gradients reach the table, too."""
    words = np.random.default_rng(0).choice([*"ab.!", "the", "cat", "how", "old"], 100_000)
    texts = tf.constant([" ".join(words), "", "how old are you", " ".join(words[:50_000])])
    assert tf.reduce_sum(tf.strings.length(texts)) > LONG_BYTES
    ids = loaded.preprocess(texts)
    # The path of ids sums up hundreds of thousands of rows in float32; the mean is close to 0.
    np.testing.assert_allclose(loaded(texts), loaded.encode_ids(ids), atol=1e-3)
    np.testing.assert_allclose(loaded(texts)[1:3], loaded(texts[1:3]), atol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded(texts)[:, 0])
    for gradient in tape.gradient(loss, loaded.trainable_variables):
        assert np.abs(tf.convert_to_tensor(gradient)).max() > 0


def test_bytes_that_are_no_utf8_are_read_as_encode_reads_them(toy: Any, precision: str) -> None:
    encoder = SentenceEncoder(toy.folders[precision])
    generator = np.random.default_rng(0)
    texts = [b"caf\xe9", *(generator.bytes(generator.integers(0, 12)) for _ in range(1000))]
    np.testing.assert_allclose(encoder.model(texts), encoder.encode(texts), atol=1e-6)


T5_TEXTS = ["How old are you?", "", "What is your age? " * 50, "😀", "naïve café"]


@pytest.fixture(scope="module")
def exported(toy_t5: Any) -> tuple[Path, np.ndarray]:
    """The folder of a tiny model, and the vectors of that model for the texts."""
    ids = toy_t5.tokenizer.padded(tf.constant(T5_TEXTS), 128)
    return toy_t5.folder, np.asarray(toy_t5.model(ids))


def test_strings_in_vectors_out(exported: tuple[Path, np.ndarray]) -> None:
    folder, expected = exported
    encoder = use_st5.load(folder)
    assert (encoder.dimension, encoder.max_length) == (24, 128)
    with pytest.warns(UserWarning, match="1 of 5 texts is longer than 128 tokens"):
        np.testing.assert_allclose(encoder.encode(T5_TEXTS), expected, atol=1e-5)
    assert encoder.truncated(T5_TEXTS).tolist() == [2]
    vectors = encoder.encode(T5_TEXTS, batch_size=1, on_truncation="ignore")
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_preprocessor_and_encoder_apart(exported: tuple[Path, np.ndarray]) -> None:
    folder, expected = exported
    loaded = tf.saved_model.load(str(folder))
    ids = loaded.preprocess(tf.constant(T5_TEXTS))
    assert ids.shape[1] == 128
    np.testing.assert_allclose(loaded.encode_ids(ids), expected, atol=1e-5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded.encode_ids(ids, training=True)[:, 0])
    counts = loaded.token_counts(T5_TEXTS).numpy()
    np.testing.assert_array_equal(counts.clip(max=128), np.count_nonzero(ids, axis=1))
    assert counts[2] > 250
    gradients = tape.gradient(loss, loaded.trainable_variables)
    assert all(gradient is not None for gradient in gradients)
    ops = {op.type for op in loaded.signatures["ids"].graph.get_operations()}
    assert not any("String" in op or "Sentencepiece" in op for op in ops)


@pytest.mark.end_to_end
@pytest.mark.process
def test_without_tensorflow_text_one_line_says_what_to_install(
    exported: tuple[Path, np.ndarray], fresh_python: Callable[..., str]
) -> None:
    code = (
        "import sys; sys.modules['tensorflow_text'] = None\n"
        "import use_st5\n"
        f"try: use_st5.load({str(exported[0])!r})\n"
        "except ImportError as error: print(error)\n"
    )
    message = fresh_python("-c", code)
    assert 'pip install "tensorflow-text==' in message
    assert message.count("\n") == 1


def test_int8_matrices(toy_t5: Any, tmp_path: Path) -> None:
    """Matrices rounded by hand give the vectors of the int8 export, and of its float32 export."""
    folder = tmp_path / "int8"
    model, tokenizer = toy_t5.model, toy_t5.tokenizer
    TrainableEncoder(model, tokenizer, name="tiny", max_length=128).export(folder, precision="int8")
    rounded = SentenceT5.from_config(model.get_config())
    rounded.build()
    rounded.set_weights(model.get_weights())
    layers = family_of(rounded).lora_layers(rounded).values()
    for matrix, axis in (
        (rounded.embedding.embeddings, 1),
        *((layer.kernel, 0) for layer in (*layers, rounded.projection)),
    ):
        scales = np.abs(matrix.numpy()).max(axis=axis, keepdims=True) / 127
        matrix.assign(np.rint(matrix.numpy() / scales) * scales)
    expected = rounded(tokenizer.padded(tf.constant(T5_TEXTS), 128))
    loaded = tf.saved_model.load(str(folder))
    np.testing.assert_allclose(loaded(tf.constant(T5_TEXTS)), expected, atol=1e-5)
    assert len(loaded.trainable_variables) == len(model.trainable_variables)
    TrainableEncoder.load(folder).export(tmp_path / "float32")
    again = use_st5.load(tmp_path / "float32")
    np.testing.assert_allclose(again.encode(T5_TEXTS, on_truncation="ignore"), expected, atol=1e-5)


def test_int8_is_not_for_a_decoder(tmp_path: Path, toy_t5: Any) -> None:
    config = {**toy_t5.model.get_config(), "pooling": "decoder"}
    model = SentenceT5.from_config(config)
    model.build()
    with pytest.raises(ValueError, match="exported in float32, not int8"):
        TrainableEncoder(model, toy_t5.tokenizer, name="x").export(tmp_path / "m", precision="int8")
    assert not list(tmp_path.iterdir())


def test_the_network_is_held_as_few_times_as_it_differs(tmp_path: Path, toy_t5: Any) -> None:
    """All functions and signatures share it: with padding (ids), without (strings), in dropout."""
    config = dataclasses.replace(toy_t5.model.config, dropout=0.0)
    model = SentenceT5(config, projection_dim=24)
    model.build()
    TrainableEncoder(model, toy_t5.tokenizer).export(tmp_path / "model")
    library = saved_model_graph(tmp_path / "model").meta_graphs[0].graph_def.library.function
    products = sum(node.op == "MatMul" for each in library for node in each.node_def)
    # A block of seven dense layers, and the projection.
    assert products == 2 * 8
    dropping = saved_model_graph(toy_t5.folder).meta_graphs[0].graph_def.library.function
    assert sum(node.op == "MatMul" for each in dropping for node in each.node_def) == 3 * 8
