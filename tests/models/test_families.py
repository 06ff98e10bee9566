"""One battery for every family of encoders: vectors, gradients, export, loading, adapters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.toy_encoders import Toy
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.layers.saved_model_layer import SavedModelLayer
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.encoder_model import in_float32
from use_st5.models.family import family_of
from use_st5.models.lora import apply_lora
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import TrainingArguments
from use_st5.training.trainer import Trainer

TEXTS = ["the cat sat", "", "a dog on the mat", "how old are you " * 9, "Ünïcödé 😀"]
PAIRS = [*zip(TEXTS, TEXTS[::-1], strict=True)]
# The toy of each family (`tests/toy_encoders.py`), and how many of its layers get an adapter.
FAMILIES = {
    "use_dan": 0,
    "use_transformer": 4,
    "bert": 6,
    "mpnet": 12,
    "modernbert": 14,
    "t5": 7,
    "static_embedding": 0,
    "kerashub": 12,
    "trigrams": 1,
}
# KerasHub's networks are not ours: they are not rounded, and have weights that learn nothing.
OURS = [name for name in FAMILIES if name != "kerashub"]
ADAPTED = [name for name, layers in FAMILIES.items() if layers]
READS_PAIRS = ["bert", "mpnet", "modernbert"]
_FRESH = """
import json, sys
import numpy as np
import tensorflow_text
import tensorflow_hub as hub

texts = json.loads(sys.argv[1])
print(json.dumps([np.asarray(hub.load(folder)(texts)).tolist() for folder in sys.argv[2:]]))
"""


@pytest.fixture
def toy(request: pytest.FixtureRequest, family: str) -> Toy:
    """The toy of a family, which no test changes."""
    return request.getfixturevalue(f"toy_{family}")


@pytest.fixture
def encoder(toy: Toy) -> TrainableEncoder:
    """A copy of the toy, which a test may change."""
    return TrainableEncoder(in_float32(toy.model), toy.tokenizer, max_length=toy.max_length)


def families(*names: str, slow: tuple[str, ...] = ()) -> Any:
    """Runs a test with the toy of each of these families, or of all; from end to end if slow."""
    marks = {name: [pytest.mark.end_to_end] * (name in slow) for name in names or FAMILIES}
    return pytest.mark.parametrize(
        "family", [pytest.param(name, marks=each) for name, each in marks.items()]
    )


@families()
def test_padding_batch_and_order_do_not_change_a_vector(toy: Toy) -> None:
    ids = np.asarray(toy.ids(TEXTS))
    vectors = np.asarray(toy.model(ids))
    assert vectors.shape == (len(TEXTS), toy.model.dimension)
    assert np.isfinite(vectors).all()
    assert np.ptp(vectors, axis=0).max() > 1e-3
    close = {"rtol": 0, "atol": 1e-5 * np.abs(vectors).max()}
    room = 7 if toy.max_length is None else min(toy.max_length - ids.shape[1], 7)
    np.testing.assert_allclose(toy.model(np.pad(ids, [(0, 0), (0, room)])), vectors, **close)
    np.testing.assert_allclose(toy.model(ids[::-1]), vectors[::-1], **close)
    alone = np.asarray(toy.ids(TEXTS[:1]))
    np.testing.assert_allclose(toy.model(alone), vectors[:1], **close)


@families("use_transformer", "t5", "mpnet", "modernbert")
def test_packed_tokens_give_the_vectors_of_padded_ones(toy: Toy) -> None:
    """Also beside a row of padding alone, whose vector has no meaning."""
    ids = np.asarray(toy.ids(TEXTS))
    padding = np.zeros_like(ids[:1])
    for batch in (ids, np.concatenate([padding, ids]), padding):
        embedded = toy.model.embedding(batch)
        padded, packed = (
            np.asarray(toy.model.encode_embedded(embedded, batch, packed=packed))
            for packed in (False, True)
        )
        filled = (batch != 0).any(axis=1)
        close = {"rtol": 0, "atol": 1e-6 * np.abs(padded).max()}
        np.testing.assert_allclose(packed[filled], padded[filled], **close)
        assert np.isfinite(packed).all()


@families(*OURS)
def test_every_weight_learns_under_xla(toy: Toy) -> None:
    ids = toy.ids(TEXTS)
    shape = (len(TEXTS), toy.model.dimension)
    target = tf.constant(np.random.default_rng(2).normal(size=shape), tf.float32)

    @tf.function(jit_compile=True)
    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(toy.model(ids, training=True) * target)
        weights = [variable.value for variable in toy.model.trainable_variables]
        return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, weights)]

    for variable, gradient in zip(toy.model.trainable_variables, gradients(), strict=True):
        assert np.isfinite(gradient).all(), variable.path
        # A bias of the keys is added to all scores of a query, which the softmax ignores.
        if not variable.path.endswith("key/bias"):
            assert np.abs(gradient).max() > 0, variable.path


@families()
def test_its_configuration_brings_it_back(toy: Toy) -> None:
    written = json.dumps(keras.saving.serialize_keras_object(toy.model))
    again = keras.saving.deserialize_keras_object(json.loads(written))
    if not again.built:
        again.build()
    again.set_weights(toy.model.get_weights())
    np.testing.assert_array_equal(again(toy.ids(TEXTS)), toy.model(toy.ids(TEXTS)))
    assert again.get_config() == toy.model.get_config()


@families(*OURS, slow=("mpnet", "modernbert"))
def test_exported_in_int8_and_loaded(toy: Toy) -> None:
    assert_exported(toy, "int8", tolerance=0.05)


@pytest.mark.end_to_end
@families()
def test_exported_in_float32_and_loaded(toy: Toy) -> None:
    assert_exported(toy, "float32", tolerance=1e-5)


def assert_exported(toy: Toy, precision: str, *, tolerance: float) -> None:
    """The SavedModel has the model's vectors, and the encoder that is loaded has its."""
    vectors = TrainableEncoder(toy.model, toy.tokenizer, max_length=toy.max_length).encode(TEXTS)
    exported = use_st5.load(toy.folders[precision])
    found = exported.encode(TEXTS, on_truncation="ignore")
    np.testing.assert_allclose(found, vectors, rtol=0, atol=tolerance * np.abs(vectors).max())
    again = TrainableEncoder.load(toy.folders[precision])
    assert (type(again.model), again.name) == (type(toy.model), "toy")
    assert family_of(again.model).config(again.model) == family_of(toy.model).config(toy.model)
    assert again.tokenizer.vocabulary == toy.tokenizer.vocabulary
    facts = (again.card, again.metadata, again.max_length)
    assert facts == ("# Toy\n", {"languages": ["en"]}, toy.max_length)
    np.testing.assert_allclose(again.encode(TEXTS), found, rtol=0, atol=1e-5)


@families("use_dan", "bert", slow=("bert",))
def test_int8_stays_bit_for_bit(toy: Toy, tmp_path: Path) -> None:
    TrainableEncoder.load(toy.folders["int8"]).export(tmp_path / "again", precision="int8")
    once, twice = (
        tf.saved_model.load(str(folder)) for folder in (toy.folders["int8"], tmp_path / "again")
    )
    np.testing.assert_array_equal(twice.table_codes, once.table_codes)
    for first, second in zip(once.variables, twice.variables, strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(once(TEXTS), twice(TEXTS))


@families("use_dan", "bert", slow=("bert",))
def test_every_weight_of_an_int8_model_can_be_trained(toy: Toy, tmp_path: Path) -> None:
    manifest = TrainableEncoder.load(toy.folders["int8"]).export(tmp_path / "model")
    assert manifest.precision == "float32"
    assert manifest.trainable_parameters == manifest.parameters == toy.model.count_params()
    after = tf.saved_model.load(str(tmp_path / "model"))
    assert hasattr(after, "token_counts") == (toy.max_length is not None)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(after(TEXTS, training=True)[:, :3])
    for gradient in tape.gradient(loss, after.trainable_variables):
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()


@families("bert", "trigrams", slow=("bert",))
def test_what_was_tuned_inside_a_keras_model_is_loaded(toy: Toy, tmp_path: Path) -> None:
    before = use_st5.load(toy.folders["int8"]).encode(TEXTS, on_truncation="ignore")
    with pytest.warns(UserWarning, match="are int8 and stay as they are"):
        layer = SavedModelLayer(toy.folders["int8"], trainable=True)
    model = keras.Sequential([keras.Input(shape=(), dtype="string"), layer, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.05), "mse", jit_compile=False)
    model.fit(tf.constant(TEXTS), np.arange(5.0), epochs=2, verbose=0)
    layer.save(tmp_path / "tuned")
    tuned = TrainableEncoder.load(tmp_path / "tuned").encode(TEXTS)
    assert np.abs(tuned - before).max() > 1e-3
    found = use_st5.load(tmp_path / "tuned").encode(TEXTS, on_truncation="ignore")
    np.testing.assert_allclose(tuned, found, atol=1e-5)


@families("use_dan", "bert")
def test_loaded_in_the_scope_of_a_strategy(toy: Toy, encoder: TrainableEncoder) -> None:
    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
        mirrored_encoder = TrainableEncoder.load(toy.folder)
    weights = zip(mirrored_encoder.model.weights, encoder.model.weights, strict=True)
    for mirrored, weight in weights:
        assert isinstance(mirrored.value, tf.distribute.DistributedValues)
        np.testing.assert_array_equal(tf.convert_to_tensor(mirrored.value), weight)


@families(*ADAPTED)
def test_adapters(family: str, encoder: TrainableEncoder) -> None:
    """New adapters change no vector; changed ones do, and merging them keeps the vectors."""
    before, trainable = encoder.encode(TEXTS), len(encoder.model.trainable_variables)
    adapters = apply_lora(encoder.model, targets="all_linear", rank=1)
    assert len(adapters.layers) == FAMILIES[family]
    np.testing.assert_allclose(encoder.encode(TEXTS), before, atol=1e-6)
    for tensor in adapters.tensors.values():
        tensor.assign(tensor + 0.1)
    adapted = encoder.encode(TEXTS)
    assert np.abs(adapted - before).max() > 1e-3
    adapters.merge()
    np.testing.assert_allclose(encoder.encode(TEXTS), adapted, atol=1e-5)
    assert len(encoder.model.trainable_variables) == trainable


@pytest.mark.end_to_end
@families(*OURS)
def test_trained(encoder: TrainableEncoder) -> None:
    """Two steps with GradCache change every part of the network and stay finite."""
    before = {each.path: np.asarray(each) for each in encoder.model.trainable_variables}
    words = TEXTS[3].split()[:4]
    rows = [{"anchor": f"{a} {b}", "positive": f"{b} {a}"} for a in words for b in words if a != b]
    args = TrainingArguments(
        learning_rate=0.01, batch_size=8, micro_batch_size=4, steps=2, jit_compile=False
    )
    Trainer(encoder, {"pairs": (rows, ContrastiveLoss())}, args, progress=False).train()
    for each in encoder.model.trainable_variables:
        assert np.isfinite(each).all(), each.path
        assert np.abs(np.asarray(each) - before[each.path]).max() > 0, each.path


@pytest.mark.end_to_end
@families(*READS_PAIRS)
def test_a_cross_encoder_made_from_it_scores_pairs(toy: Toy, tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    below = family_of(toy.model).pair_model(toy.model)
    judge = TrainableEncoder(CrossEncoderModel(below), toy.tokenizer)
    scores = judge.encode(PAIRS)
    assert np.ptp(scores) > 1e-4
    judge.export(tmp_path / "judge")
    exported = CrossEncoder.load(tmp_path / "judge").predict(PAIRS, logits=True)
    np.testing.assert_allclose(exported, scores[:, 0], atol=1e-5)


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_fresh_process_loads_them(
    request: pytest.FixtureRequest, fresh_python: Callable[..., str]
) -> None:
    """A process that imports only TensorFlow's libraries gets the same vectors."""
    pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
    toys = [request.getfixturevalue(f"toy_{name}") for name in FAMILIES]
    folders = [toy.folder for toy in toys]
    found = json.loads(fresh_python("-c", _FRESH, json.dumps(TEXTS), *folders).splitlines()[-1])
    for toy, vectors in zip(toys, found, strict=True):
        np.testing.assert_allclose(vectors, toy.model(toy.ids(TEXTS)), atol=1e-5)
