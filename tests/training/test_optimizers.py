"""Optimizers, and learning rates by the number of steps."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from use_st5.models.bert.model import BertConfig, SentenceBert
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.t5.model import T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.training.optimizers import (
    Adam,
    AdamW,
    LinearDecay,
    LinearWarmup,
    adam_with_cosine,
    adamw,
)

BERT = BertConfig(
    vocabulary_size=20, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16,
    max_positions=8, separator_id=3,
)  # fmt: skip


def test_the_rate_rises_in_a_line_and_falls_by_a_cosine() -> None:
    optimizer = adam_with_cosine(0.5, warmup_steps=200)(2_200)
    rates = [float(optimizer._learning_rate(step)) for step in (0, 50, 200, 700, 1_200, 2_200)]
    expected = [0, 0.125, 0.5, 0.25 * (1 + np.cos(np.pi / 4)), 0.25, 0]
    np.testing.assert_allclose(rates, expected, atol=1e-6)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.global_clipnorm) == (0.9, 0.98, 1.0)


@pytest.mark.parametrize(
    ("kind", "options"),
    [(Adam, {"clipnorm": 0.1}), (Adam, {"clipvalue": 0.1}), (AdamW, {"global_clipnorm": 0.1})]
    + [(AdamW, {"amsgrad": True})],
)
def test_updates_are_those_of_keras(kind: type, options: dict[str, object]) -> None:
    """The peer is Keras's optimizer of that name; one gradient is an embedding's, so sparse."""
    peer = getattr(keras.optimizers, kind.__name__)
    random = np.random.default_rng(0)
    table, vector = random.normal(size=(5, 3)), random.normal(size=4)
    rate = keras.optimizers.schedules.PolynomialDecay(0.03, 5, 0.01)

    def trained(make: type) -> list[np.ndarray]:
        variables = [keras.Variable(each, dtype="float32") for each in (table, vector)]
        optimizer = make(rate, beta_1=0.8, epsilon=1e-3, **options)
        for step in range(5):
            with tf.GradientTape() as tape:
                rows = tf.gather(variables[0].value, [step, 1])
                loss = tf.reduce_sum(rows**2) + tf.reduce_sum(tf.sin(variables[1].value * step))
            gradients = tape.gradient(loss, [each.value for each in variables])
            # In a sparse gradient, Keras squares each occurrence of a row instead of their sum,
            # and clips by the norm of all occurrences; dense gradients avoid both.
            if "global_clipnorm" in options or make is peer:
                gradients = [tf.convert_to_tensor(each) for each in gradients]
            optimizer.apply(gradients, variables)
        return [np.asarray(each) for each in [*variables, *optimizer.variables]]

    for found, expected in zip(trained(kind), trained(peer), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        # Four norms (of the embedding, two of the block, of the head) have two weights each. Then
        # come the biases: of six linear layers, two of the word head, two of the cross-encoder.
        (CrossEncoderModel(SentenceBert(BERT, pooling="cls", head=True)), 4 * 2 + 6 + 2 + 2),
        (SentenceT5(T5Config(32, 1, 8, 16, 1, 8)), 3),  # T5 has no bias: the norms' scales.
    ],
    ids=["cross-encoder of a BERT", "T5"],
)
def test_biases_and_norms_do_not_decay_and_matrices_do(model: keras.Model, kept: int) -> None:
    model.build()
    for variable in model.trainable_variables:
        variable.assign(ops.ones_like(variable))
    optimizer = adamw(0.5, weight_decay=0.1)
    nothing = [ops.zeros_like(variable) for variable in model.trainable_variables]
    optimizer.apply(nothing, model.trainable_variables)
    after = [np.asarray(variable) for variable in model.trainable_variables]
    still = [each for each in after if (each == 1.0).all()]
    assert [each.ndim for each in still] == [1] * kept
    for each in after:
        np.testing.assert_allclose(each, 1.0 if each.ndim == 1 else 0.95, atol=1e-6)


def test_names_of_all_backends_are_known() -> None:
    pattern = adamw(0.5, weight_decay=0.1)._exclude_from_weight_decay_pattern
    # JAX's name, TensorFlow's, and that of a second replica.
    for name in ("gamma", "block/norm/gamma:0", "norm/beta/replica_1:0", "final/scale:0", "bias:0"):
        assert pattern.search(name), name
    for name in ("kernel", "bias_layer/kernel:0", "upscale", "embedding/embeddings:0"):
        assert not pattern.search(name), name


def test_adafactor_takes_a_decay_and_keras_restores_it() -> None:
    optimizer = keras.optimizers.Adafactor(LinearDecay(0.5, 10, constant_share=0.2))
    copy = keras.optimizers.Adafactor.from_config(optimizer.get_config())
    variable = keras.Variable([1.0])
    copy.build([variable])
    assert float(copy.learning_rate) == 0.5
    copy.iterations.assign(6)
    assert float(copy.learning_rate) == pytest.approx(0.25)


def rates(schedule: LinearWarmup, *steps: int) -> list[float]:
    return [float(schedule(step)) for step in steps]


def test_a_warm_up_of_part_of_a_step_is_one_of_a_step() -> None:
    assert rates(LinearWarmup(1.0, 15), 0, 1, 2) == pytest.approx([0, 0.5, 1.0])
    assert rates(LinearWarmup(1.0, 4, warmup_share=0.0), 0, 2, 4) == [1.0, 0.5, 0.0]


def test_a_training_of_one_step_has_no_warm_up() -> None:
    assert rates(LinearWarmup(1.0, 1), 0) == [1.0]
    assert rates(LinearWarmup(1.0, 2), 0, 1) == [0.0, 1.0]
