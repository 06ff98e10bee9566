"""SavedModels of TensorFlow Hub's layouts: `SavedModelLayer` against `hub.KerasLayer`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from use_st5.layers.saved_model_layer import SavedModelLayer, saved_model_call

TEXTS = ["how old are you", "what is your age", "a train", ""]
TARGETS = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
TEXT = tf.TensorSpec([None], tf.string, name="inputs")


class Words(tf.Module):
    """Words hashed into a table, their mean, a dense layer: the layout of USE v4 on the hub."""

    def __init__(self) -> None:
        super().__init__()
        draw = np.random.default_rng(0)
        self.table = tf.Variable(draw.normal(size=(50, 4)).astype(np.float32), name="Embeddings/0")
        self.kernel = tf.Variable(draw.normal(size=(4, 3)).astype(np.float32), name="DNN/kernel")
        self.offset = tf.Variable(np.ones(3, np.float32), trainable=False, name="DNN/offset")

    def embed(self, inputs: tf.Tensor) -> tf.Tensor:
        words = tf.strings.split(tf.strings.join([inputs, " ."]))
        ids = tf.strings.to_hash_bucket_fast(words.flat_values, 50)
        rows = tf.gather(self.table, ids)
        summed = tf.math.segment_sum(rows, words.value_rowids())
        means = summed / tf.sqrt(tf.cast(words.row_lengths(), tf.float32))[:, None]
        return tf.tanh(means @ self.kernel) + self.offset


def save(folder: Path, call: Any, words: Words, *, of_text: bool = True) -> str:
    root = tf.train.Checkpoint()
    root.__call__ = call
    root.words = words
    root.variables = [words.table, words.kernel, words.offset]
    root.trainable_variables = [words.table, words.kernel]
    root.regularization_losses = []
    if of_text:
        root.regularization_losses = [
            tf.function(lambda: 0.1 * tf.reduce_sum(words.kernel**2), input_signature=[])
        ]
    signatures = {}
    if of_text:
        signature = tf.function(lambda inputs: {"outputs": words.embed(inputs)})
        signatures["serving_default"] = signature.get_concrete_function(TEXT)
    tf.saved_model.save(root, str(folder), signatures=signatures)
    return str(folder)


@pytest.fixture(scope="module")
def use_v4(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A SavedModel that takes only strings, without an argument `training`."""
    words = Words()
    call = tf.function(words.embed, input_signature=[TEXT])
    return save(tmp_path_factory.mktemp("hub") / "use", call, words)


@pytest.fixture(scope="module")
def with_options(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A SavedModel that returns a dict, and takes `training` and `scale`."""
    words = Words()

    @tf.function
    def call(inputs: tf.Tensor, training: bool = False, scale: float = 1.0) -> dict[str, Any]:
        vectors = words.embed(inputs) * scale
        return {
            "default": vectors * (2.0 if training else 1.0),
            "length": tf.strings.length(inputs),
        }

    for training in (False, True):
        for scale in (1.0, 3.0):
            call.get_concrete_function(TEXT, training=training, scale=scale)
    return save(tmp_path_factory.mktemp("hub") / "options", call, words)


@pytest.fixture(scope="module")
def of_numbers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A SavedModel from a dict of ids and mask to a dict of tensors, like BERTs on the hub."""
    words = Words()

    @tf.function
    def call(inputs: dict[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
        mask = tf.cast(inputs["mask"], tf.float32)[..., None]
        tokens = tf.gather(words.table, inputs["ids"]) * mask
        pooled = tf.reduce_sum(tokens, axis=1) @ words.kernel
        return {"pooled_output": pooled * (2.0 if training else 1.0), "tokens": tokens}

    spec = {name: tf.TensorSpec([None, None], tf.int32, name=name) for name in ("ids", "mask")}
    for training in (False, True):
        call.get_concrete_function(spec, training=training)
    return save(tmp_path_factory.mktemp("hub") / "numbers", call, words, of_text=False)


def gradients(layer: Any, inputs: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The outputs, and the gradients of a loss by the trainable weights."""
    with tf.GradientTape() as tape:
        outputs = layer(inputs, training=True)
        loss = tf.reduce_sum((outputs - TARGETS) ** 2) + sum(layer.losses)
    weights = layer.trainable_weights
    variables = [each if isinstance(each, tf.Variable) else each.value for each in weights]
    found = [tf.convert_to_tensor(each).numpy() for each in tape.gradient(loss, variables)]
    return [outputs.numpy(), loss.numpy()], sorted(found, key=lambda each: each.shape)


@pytest.mark.parametrize(
    ("which", "options"),
    [
        ("use_v4", {}),
        ("with_options", {"output_key": "default"}),
        ("with_options", {"output_key": "default", "arguments": {"scale": 3.0}}),
        ("of_numbers", {"output_key": "pooled_output"}),
    ],
)
def test_vectors_losses_and_gradients_of_hub_keras_layer(
    which: str, options: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    hub = pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
    pytest.importorskip("tf_keras", reason="the extra `hub` is not installed")
    folder = request.getfixturevalue(which)
    inputs: Any = tf.constant(TEXTS)
    if which == "of_numbers":
        draw = np.random.default_rng(2)
        inputs = {
            name: tf.constant(draw.integers(0, 2, (4, 5)), tf.int32) for name in ("ids", "mask")
        }
    theirs = gradients(hub.KerasLayer(folder, trainable=True, **options), inputs)
    ours = gradients(SavedModelLayer(folder, trainable=True, **options), inputs)
    for found, expected in zip(ours[0] + ours[1], theirs[0] + theirs[1], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert len(ours[1]) == 2
    frozen = SavedModelLayer(folder, **options)(inputs, training=True)
    np.testing.assert_allclose(frozen, hub.KerasLayer(folder, **options)(inputs), atol=1e-6)


def test_the_line_of_hub_keras_layer_works_as_it_is(use_v4: str) -> None:
    """`input_shape` and `dtype` are those of the tutorials."""
    layer = SavedModelLayer(
        use_v4, input_shape=[], dtype=tf.string, trainable=True, output_shape=[3]
    )
    model = keras.Sequential([layer, keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    model.fit(tf.constant(TEXTS), np.zeros((4, 2)), verbose=0)
    assert model.count_params() == 200 + 12 + 3 + 8
    tuned = layer(TEXTS).numpy()
    assert not np.allclose(tuned, SavedModelLayer(use_v4)(TEXTS))


class Subclassed(keras.Model):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self.embed = SavedModelLayer(folder, output_key="default", trainable=True)
        self.head = keras.layers.Dense(1)

    def call(self, text: Any, training: bool = False) -> Any:
        return self.head(self.embed(text, training=training))


def test_a_subclassed_model_and_mixed_precision(with_options: str) -> None:
    model = Subclassed(with_options)
    model.compile("sgd", "mse")
    model.fit(tf.constant(TEXTS), np.zeros(4), verbose=0)
    layer = SavedModelLayer(with_options, output_key="default", dtype="mixed_float16")
    assert layer(TEXTS).dtype == tf.float16
    assert layer.weights[0].dtype == "float32"


def test_dicts_in_and_out(of_numbers: str, tmp_path: Path) -> None:
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in ("ids", "mask")}
    layer = SavedModelLayer(of_numbers, trainable=True)
    outputs = layer(inputs)
    assert {name: each.shape for name, each in outputs.items()} == {
        "pooled_output": (None, 3),
        "tokens": (None, None, 4),
    }
    model = keras.Model(inputs, keras.layers.Dense(1)(outputs["pooled_output"]))
    model.compile("sgd", "mse")
    data = {name: np.ones((4, 5), np.int32) for name in inputs}
    model.fit(data, np.zeros(4), verbose=0)
    layer.save(tmp_path / "tuned")
    again = SavedModelLayer(str(tmp_path / "tuned"), output_key="pooled_output")
    np.testing.assert_allclose(again(data), layer(data)["pooled_output"], atol=1e-5)


def test_a_signature(use_v4: str) -> None:
    layer = SavedModelLayer(use_v4, signature="serving_default", output_key="outputs")
    np.testing.assert_allclose(layer(TEXTS), use_st5.load(use_v4).encode(TEXTS), atol=1e-6)
    whole = SavedModelLayer(use_v4, signature="serving_default")
    assert [*whole(tf.constant(TEXTS))] == ["outputs"]
    with pytest.raises(ValueError, match="trainable=False with a signature"):
        SavedModelLayer(use_v4, True, signature="serving_default")


def test_what_is_refused(use_v4: str, with_options: str) -> None:
    with pytest.raises(ValueError, match=r"one of \['serving_default'\], received 'other'"):
        SavedModelLayer(use_v4, signature="other")
    for folder, keys in ((use_v4, r"\[\]"), (with_options, r"\['default', 'length'\]")):
        with pytest.raises(ValueError, match=f"one of {keys}"):
            SavedModelLayer(folder, output_key="other")(tf.constant(TEXTS))
    with pytest.raises(ValueError, match="found neither"):
        saved_model_call(tf.train.Checkpoint(), arguments={})
