from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest

from tests.training import toy
from use_st5.layers.lora_dense import LoRADense
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.models.lora import apply_lora
from use_st5.models.t5.config import T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.training.array_data import ArrayData
from use_st5.training.frozen_weights import changing_variables, fingerprint, frozen_weights
from use_st5.training.task import Task
from use_st5.training.trainer import Trainer


def paths(variables: list[keras.Variable]) -> list[str]:
    return [variable.path.split("/", maxsplit=1)[-1] for variable in variables]


def test_a_frozen_layer_and_an_adapted_kernel_are_frozen_statistics_and_seeds_are_not() -> None:
    layers = [
        keras.layers.Dense(3, name="rests"),
        keras.layers.BatchNormalization(name="normalizes"),
        keras.layers.Dropout(0.5, name="drops"),
        LoRADense(3, name="adapted"),
    ]
    model = keras.Sequential(layers)
    model.build((None, 3))
    assert frozen_weights(model) == []
    assert changing_variables(model) == model.variables
    layers[0].trainable = False
    layers[3].enable_lora(1)
    assert paths(frozen_weights(model)) == ["rests/kernel", "rests/bias", "adapted/kernel"]
    changing = changing_variables(model)
    assert {"moving_mean", "moving_variance", "seed_generator_state", "lora_kernel_a"} <= {
        variable.name for variable in changing
    }
    assert len(changing) == len(model.variables) - 3


def test_a_fingerprint_knows_every_value_and_their_order() -> None:
    a, b = (keras.Variable(np.full((2, 2), x), dtype="bfloat16") for x in (1.0, 2.0))
    before = fingerprint([a, b])
    assert before != fingerprint([b, a])
    assert before == fingerprint([keras.Variable(v) for v in (a, b)])
    b.assign([[2.0, 2.0], [2.0, 2.015625]])
    assert fingerprint([a, b]) != before


def adapted(folder: Path | None, *, base: int = 1, adapters: int = 2) -> Trainer:
    """A run of adapters, with dropout, on a T5 most of which is its table of tokens."""
    keras.utils.set_random_seed(base)
    model = SentenceT5(T5Config(5_000, 1, 16, 32, 2, 8, dropout=0.2), projection_dim=None)
    model.build()
    apply_lora(model, rank=2, seed=adapters)
    data = ArrayData(
        dict(zip(("anchor", "positive"), toy.arrays().values(), strict=False)),
    )
    return Trainer(
        model,
        [Task("pairs", ContrastiveLoss(), data, batch_size=16)],
        keras.optimizers.Adam(1e-2),
        folder=folder,
        steps_per_call=2,
        jit_compile=False,
        progress=False,
    )


def test_a_run_of_adapters_is_kept_without_its_base_and_resumed_exactly(tmp_path: Path) -> None:
    whole = adapted(None)
    whole.run(6)
    adapted(tmp_path).run(4)
    rest = adapted(tmp_path, adapters=3)
    rest.run(6)
    assert [record["step"] for record in rest.history.records] == [6]
    for a, b in zip(whole.encoder.variables, rest.encoder.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    base = sum(4 * np.prod(v.shape) for v in frozen_weights(whole.encoder))
    (checkpoint, _) = sorted(tmp_path.iterdir())
    assert sum(path.stat().st_size for path in checkpoint.iterdir()) < 0.1 * base
    with pytest.raises(ValueError, match=r"\n  frozen: the checkpoint has .*, this run "):
        adapted(tmp_path, base=7).run(8)
