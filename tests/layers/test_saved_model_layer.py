"""SavedModels of TensorFlow Hub's layouts: `SavedModelLayer` against `hub.KerasLayer`."""

from __future__ import annotations

import dataclasses
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.toy_encoders import Toy
from use_st5.hub.model_manifest import ModelManifest
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


STRINGS = tf.constant(["a", "abc", "", "abcdef"])
LABELS = np.array([0.0, 1.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of `length · weights + offset`, doubled by `training`; the offset is fixed."""
    root = tf.train.Checkpoint()
    weights = tf.Variable([1.0, -1.0, 0.5], name="scope/weights")
    offset = tf.Variable([0.0, 0.0, 1.0], trainable=False, name="offset")

    @tf.function
    def call(text: tf.Tensor, training: bool = False) -> tf.Tensor:
        lengths = tf.cast(tf.strings.length(text), tf.float32)
        return (lengths[:, None] * weights + offset) * (2.0 if training else 1.0)

    for training in (False, True):
        call.get_concrete_function(tf.TensorSpec([None], tf.string), training=training)
    root.__call__ = call
    root.variables, root.trainable_variables = [weights, offset], [weights]
    penalty = tf.function(lambda: tf.reduce_sum(weights**2), input_signature=[])
    root.regularization_losses = [penalty]
    path = tmp_path_factory.mktemp("models") / "lengths"
    tf.saved_model.save(root, str(path))
    return str(path)


def test_training_reaches_the_saved_models_own_variables(folder: str) -> None:
    layer = SavedModelLayer(folder, trainable=True)
    model = keras.Sequential([keras.Input(shape=(), dtype="string"), layer, keras.layers.Dense(1)])
    assert [weight.shape for weight in layer.trainable_weights] == [(3,)]
    assert [weight.shape for weight in layer.non_trainable_weights] == [(3,)]
    before = layer.model.variables[0].numpy()
    model.compile(keras.optimizers.Adam(0.01), "mse")
    model.fit(STRINGS, LABELS, epochs=1, verbose=0)
    after = layer.model.variables[0].numpy()
    assert (after != before).all()
    np.testing.assert_array_equal(layer.trainable_weights[0], after)
    np.testing.assert_allclose(layer(STRINGS), layer.model(STRINGS), atol=1e-6)


def test_regularisation_is_collected(folder: str) -> None:
    layer = SavedModelLayer(folder, trainable=True)
    layer(STRINGS)
    np.testing.assert_allclose(layer.losses, [2.25])
    frozen = SavedModelLayer(folder)
    frozen(STRINGS)
    assert not frozen.losses


def test_frozen_layers_neither_learn_nor_drop(folder: str) -> None:
    frozen, trained = SavedModelLayer(folder), SavedModelLayer(folder, trainable=True)
    assert not frozen.trainable_weights
    assert len(frozen.non_trainable_weights) == 2
    np.testing.assert_array_equal(frozen(STRINGS, training=True), frozen(STRINGS))
    np.testing.assert_array_equal(trained(STRINGS, training=True), 2 * frozen(STRINGS))
    frozen.trainable = True
    assert len(frozen.trainable_weights) == 1


def test_functional_model_and_keras_file(folder: str, tmp_path: Path) -> None:
    text = keras.Input(shape=(), dtype="string")
    vectors = SavedModelLayer(folder, trainable=True, name="encoder")(text)
    assert vectors.shape == (None, 3)
    model = keras.Model(text, keras.layers.Dense(1)(vectors))
    model.get_layer("encoder").trainable_weights[0].assign([5.0, 6.0, 7.0])
    model.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="safe_mode=False"):
        keras.models.load_model(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras", safe_mode=False)
    np.testing.assert_allclose(again(STRINGS), model(STRINGS), atol=1e-6)
    encoder = again.get_layer("encoder")
    assert encoder.trainable
    np.testing.assert_array_equal(encoder.model.variables[0], [5.0, 6.0, 7.0])


def test_safe_mode_loads_bundled_models_alone(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder, tmp_path / "bundled" / "lengths")
    monkeypatch.setattr("use_st5.hub.model_names._root", lambda: tmp_path / "bundled")
    (tmp_path / "unpacked").mkdir()
    monkeypatch.chdir(tmp_path / "unpacked")
    text = keras.Input(shape=(), dtype="string")
    keras.Model(text, SavedModelLayer("lengths")(text)).save("model.keras")
    assert keras.models.load_model("model.keras")(STRINGS).shape == (4, 3)
    # A user's folder of that name takes precedence over the bundled model, and is not trusted.
    shutil.copytree(folder, "lengths")
    with pytest.raises(ValueError, match="safe_mode=False"):
        keras.models.load_model("model.keras")


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of use_st5 that cuts texts; its folder has everything that a save must keep."""
    from use_st5.hub.model_manifest import write_folder

    root = tf.train.Checkpoint()
    weights = tf.Variable([1.0, -1.0, 0.5], name="weights")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def call(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"embeddings": tf.cast(tf.strings.length(text), tf.float32)[:, None] * weights}

    root.__call__ = tf.function(
        lambda text, training=False: call(text)["embeddings"],
        input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.bool)],
    )
    root.variables = root.trainable_variables = [weights]
    facts = {"name": "toy", "dimension": 3, "max_length": 7, "precision": "int8", "parameters": 3}
    facts |= {"trainable_parameters": 3, "metadata": {"license": "Apache-2.0"}}
    path = tmp_path_factory.mktemp("models") / "toy"
    write_folder(root, {"serving_default": call}, path, facts=facts, card="# Toy\n")
    return str(path)


def tuned_model(folder: str) -> keras.Sequential:
    """A model around the layer, fine-tuned a few steps."""
    model = keras.Sequential(
        [
            keras.Input(shape=(), dtype="string"),
            SavedModelLayer(folder, trainable=True),
            keras.layers.Dense(2),
        ]
    )
    model.compile(keras.optimizers.Adam(0.1), "mse")
    model.fit(STRINGS, np.stack([LABELS, -LABELS], axis=1), epochs=3, verbose=0)
    return model


def test_from_fine_tuning_to_hub_load(bundled: str, tmp_path: Path) -> None:
    hub = pytest.importorskip("tensorflow_hub", reason="needs the extra hub")
    before = use_st5.load(bundled).encode(["abc"])
    layer = tuned_model(bundled).layers[0]
    layer.save(tmp_path / "tuned")
    expected = layer(STRINGS).numpy()
    assert np.abs(expected[1] - before[0]).max() > 0.01
    np.testing.assert_allclose(hub.load(str(tmp_path / "tuned"))(STRINGS), expected, atol=1e-6)
    again = SavedModelLayer(tmp_path / "tuned")
    np.testing.assert_allclose(again(STRINGS), expected, atol=1e-6)
    tuned = use_st5.load(tmp_path / "tuned")
    np.testing.assert_allclose(tuned.encode(STRINGS), expected, atol=1e-6)
    was = ModelManifest.read(Path(bundled))
    assert tuned.card == "# Toy\n"
    assert dataclasses.replace(tuned.manifest, files=was.files, model_hash=was.model_hash) == was
    # The object that `load` gives for the same folder has weights of its own.
    np.testing.assert_array_equal(use_st5.load(bundled).encode(["abc"]), before)


def test_a_tuned_layer_replaces_a_model_and_nothing_else(bundled: str, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    with pytest.raises(FileExistsError, match=r"thesis\.txt"):
        SavedModelLayer(bundled, trainable=True).save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years"


def test_load_of_what_keras_exports(bundled: str, tmp_path: Path) -> None:
    model = tuned_model(bundled)
    model.export(tmp_path / "exported", verbose=False)
    expected = model.predict(STRINGS, verbose=0)
    encoder = use_st5.load(tmp_path / "exported")
    assert (encoder.dimension, encoder.max_length) == (2, None)
    np.testing.assert_allclose(encoder.encode(STRINGS), expected, atol=1e-6)
    np.testing.assert_allclose(SavedModelLayer(tmp_path / "exported")(STRINGS), expected, atol=1e-6)
    encoder.save(tmp_path / "saved")
    np.testing.assert_allclose(
        use_st5.load(tmp_path / "saved").encode(STRINGS), expected, atol=1e-6
    )


def test_column_of_texts_is_squeezed_with_a_warning(folder: str) -> None:
    layer = SavedModelLayer(folder)
    with pytest.warns(UserWarning, match=r"Expected strings \[batch\], received \[4, 1\]"):
        vectors = layer(STRINGS[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(vectors, layer(STRINGS))
    with pytest.warns(UserWarning, match="the second axis is removed"):
        assert layer(keras.Input(shape=(1,), dtype="string")).shape == (None, 3)
    for bad in (tf.constant([[["a", "b"]]]), keras.Input(shape=(2, 2), dtype="string")):
        with pytest.raises(TypeError, match=r"Expected strings \[batch\], received string"):
            layer(bad)


def test_nothing_to_train(tmp_path: Path) -> None:
    root = tf.train.Checkpoint()
    root.__call__ = tf.function(lambda text: tf.cast(tf.strings.length(text), tf.float32)[:, None])
    root.__call__.get_concrete_function(tf.TensorSpec([None], tf.string))
    tf.saved_model.save(root, str(tmp_path))
    assert SavedModelLayer(tmp_path)(STRINGS).shape == (4, 1)
    with pytest.raises(ValueError, match="trainable variables in"):
        SavedModelLayer(tmp_path, trainable=True)
    with pytest.raises(FileNotFoundError, match="neither"):
        SavedModelLayer("absent")


def test_float32_trains_what_int8_holds_fixed(toy_use_dan: Toy, tmp_path: Path) -> None:
    folder = toy_use_dan.folders["int8"]
    with pytest.warns(UserWarning, match=r"trains \d+ weights; 216 are int8 .*precision=\"float32"):
        SavedModelLayer(folder, trainable=True)
    layer = SavedModelLayer(folder, trainable=True, precision="float32")
    assert (27, 8) in [tuple(weight.shape) for weight in layer.trainable_weights]
    stored = use_st5.load(folder).encode(["the cat", "how old"])
    np.testing.assert_allclose(layer(["the cat", "how old"]), stored, atol=1e-6)
    model = keras.Sequential([layer, keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(tf.constant(["the cat", "how old"]), np.array([0.0, 1.0]), verbose=0)
    tuned = layer(["the cat", "how old"]).numpy()
    assert np.abs(tuned - stored).max() > 1e-4
    layer.save(tmp_path / "tuned")
    again = use_st5.load(tmp_path / "tuned")
    assert again.manifest.precision == "float32"
    np.testing.assert_allclose(again.encode(["the cat", "how old"]), tuned, atol=1e-6)
    model.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served"))
    texts = tf.constant(["a dog", ""])
    np.testing.assert_allclose(served.serve(texts), model(texts), atol=1e-6)
    config = layer.get_config()
    assert config["precision"] == "float32"
    with pytest.raises(ValueError, match="precision: expected None or 'float32'"):
        SavedModelLayer(folder, precision="int4")


def test_a_sequential_without_an_input(folder: str) -> None:
    model = keras.Sequential([SavedModelLayer(folder), keras.layers.Dense(1)])
    assert model.predict(STRINGS, verbose=0).shape == (4, 1)
    objects = np.array(["a", "b"], dtype=object)
    assert model.predict(objects, verbose=0).shape == (2, 1)


def test_no_strings_at_all(folder: str) -> None:
    layer = SavedModelLayer(folder)
    for empty in ([], np.array([]), np.array([], object)):
        assert layer(empty).shape == (0, 3)


@pytest.mark.parametrize("sentences", [2, None])
def test_an_axis_of_texts(folder: str, sentences: int | None) -> None:
    """The sentences of documents, in the layer itself and in Keras's wrapper for a third axis."""
    layer = SavedModelLayer(folder)
    texts = tf.reshape(STRINGS, [2, 2])
    expected = np.reshape(layer(STRINGS), [2, 2, 3])
    np.testing.assert_allclose(layer(texts), expected, atol=1e-6)
    inputs = keras.Input(shape=(sentences,), dtype="string")
    vectors = layer(inputs)
    assert vectors.shape == (None, sentences, 3)
    np.testing.assert_allclose(keras.Model(inputs, vectors)(texts), expected, atol=1e-6)
    if sentences is not None:  # Without a number of steps Keras maps the layer, also over strings.
        inputs = keras.Input(shape=(sentences, 1), dtype="string")
        model = keras.Model(inputs, keras.layers.TimeDistributed(layer)(inputs))
        np.testing.assert_allclose(model(texts[..., None]), expected, atol=1e-6)


@pytest.mark.parametrize(
    "given", [[1.5], tf.constant([1]), ["a", 1.5], None, keras.Input(shape=(), dtype="float32")]
)
def test_everything_else_than_strings_is_refused(folder: str, given: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        SavedModelLayer(folder)(given)


@pytest.mark.process
@pytest.mark.end_to_end
def test_fit_on_two_replicas(folder: str, fresh_python: Callable[..., str]) -> None:
    script = Path(__file__).with_name("replicated_layer_run.py")
    assert float(fresh_python(script, folder).splitlines()[-1]) < 1e-6


@pytest.mark.process
@pytest.mark.end_to_end
def test_a_keras_file_loads_after_one_import(
    fresh_python: Callable[..., str], tmp_path: Path
) -> None:
    text = keras.Input(shape=(), dtype="string")
    keras.Model(text, SavedModelLayer("use_dan_en")(text)).save(tmp_path / "model.keras")
    code = (
        "import keras, use_st5.layers; print(keras.models.load_model('model.keras').count_params())"
    )
    assert int(fresh_python("-c", code)) > 27_000_000
