from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.losses.fixed_encoder import FixedEncoder, log_softmax, one_id
from use_st5.losses.skip_thought_loss import SkipThoughtLoss

SIZES = {"hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
TABLE = np.random.default_rng(3).standard_normal((3, 4))
BATCH = {
    "sentence": one_id(3),
    "previous": np.array([[0, 0, 0], [2, 3, 0], [4, 0, 0]], np.int32),
    "next": np.array([[5, 6, 7], [1, 0, 0], [0, 0, 0]], np.int32),
}


def test_every_neighbour_weighs_the_same_whatever_its_length() -> None:
    loss = SkipThoughtLoss(vocabulary_size=9, **SIZES)
    value, metrics = loss(FixedEncoder(TABLE), BATCH)
    targets = np.concatenate([BATCH["previous"], BATCH["next"]])
    vectors = np.concatenate([TABLE, TABLE]).astype(np.float32)
    directions = np.array([0, 0, 0, 1, 1, 1], np.int32)
    logits = np.asarray(loss.decoder(targets, vectors=vectors, directions=directions), np.float64)
    logs = np.take_along_axis(log_softmax(logits), targets[..., None], axis=-1)[..., 0]
    right = logits.argmax(axis=-1) == targets
    rows = [(row, int((targets[row] > 0).sum())) for row in range(6)]
    expected = sum(-logs[row, :count].mean() for row, count in rows if count) / 6
    accuracy = sum(right[row, :count].mean() for row, count in rows if count) / 6
    assert float(value) == pytest.approx(expected, abs=1e-5)
    assert float(metrics["accuracy"]) == pytest.approx(accuracy, abs=1e-6)


def test_more_padding_changes_nothing() -> None:
    loss = SkipThoughtLoss(vocabulary_size=9, **SIZES)
    wide = {name: np.pad(ids, [(0, 0), (0, 4)]) for name, ids in BATCH.items()}
    values = [float(loss(FixedEncoder(TABLE), batch)[0]) for batch in (BATCH, wide)]
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_ids_beyond_the_vocabulary_count_as_unknown() -> None:
    loss = SkipThoughtLoss(vocabulary_size=9, **SIZES)
    values = [
        float(loss(FixedEncoder(TABLE), {**BATCH, "next": np.full((3, 2), i, np.int32)})[0])
        for i in (1, 9, 80_000, 8)
    ]
    assert values[0] == values[1] == values[2] != values[3]


def test_it_learns_to_tell_neighbours_by_sentence_and_direction() -> None:
    keras.utils.set_random_seed(0)
    loss = SkipThoughtLoss(vocabulary_size=9, **SIZES)
    loss.build((None, 4))
    optimizer = keras.optimizers.Adam(0.03)

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            value, _ = loss(FixedEncoder(TABLE), BATCH)
        variables = loss.trainable_variables
        optimizer.apply(tape.gradient(value, [v.value for v in variables]), variables)
        return value

    optimizer.build(loss.trainable_variables)
    for _ in range(150):
        value = step()
    assert float(value) < 0.05
