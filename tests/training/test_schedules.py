from __future__ import annotations

import keras
import numpy as np
import pytest

from use_st5.training.schedules import LinearDecay, LinearWarmup


def test_constant_for_a_tenth_then_a_line_to_zero() -> None:
    schedule = LinearDecay(1e-3, 100)
    rates = [float(schedule(step)) for step in (0, 9, 10, 55, 100, 150)]
    np.testing.assert_allclose(rates, [1e-3, 1e-3, 1e-3, 0.5e-3, 0.0, 0.0], atol=1e-9)


def test_adafactor_takes_a_decay_and_keras_restores_it() -> None:
    optimizer = keras.optimizers.Adafactor(LinearDecay(0.5, 10, constant_share=0.2))
    copy = keras.optimizers.Adafactor.from_config(optimizer.get_config())
    variable = keras.Variable([1.0])
    copy.build([variable])
    assert float(copy.learning_rate) == 0.5
    copy.iterations.assign(6)
    assert float(copy.learning_rate) == pytest.approx(0.25)


@pytest.mark.parametrize("settings", [{"steps": 0}, {"steps": 10, "constant_share": 1.0}])
def test_what_makes_no_decay_is_refused(settings: dict) -> None:
    with pytest.raises(ValueError, match="constant share"):
        LinearDecay(1e-3, **settings)


def rates(schedule: LinearWarmup, *steps: int) -> list[float]:
    return [float(schedule(step)) for step in steps]


def test_a_tenth_up_then_down_to_zero() -> None:
    """Sentence-BERT's: `WarmupLinear` of sentence-transformers."""
    found = rates(LinearWarmup(2e-5, 200), 0, 1, 10, 20, 110, 199, 200, 300)
    np.testing.assert_allclose(
        found, np.array([0, 0.05, 0.5, 1, 0.5, 1 / 180, 0, 0]) * 2e-5, rtol=1e-5
    )


def test_a_tenth_up_then_level() -> None:
    """DefSent's: `get_constant_schedule_with_warmup` of transformers."""
    found = rates(LinearWarmup(8e-6, 200, decay=False), 0, 5, 20, 110, 200)
    np.testing.assert_allclose(found, np.array([0, 0.25, 1, 1, 1]) * 8e-6, rtol=1e-5)


def test_a_warm_up_of_part_of_a_step_is_one_of_a_step() -> None:
    assert rates(LinearWarmup(1.0, 15), 0, 1, 2) == pytest.approx([0, 0.5, 1.0])
    assert rates(LinearWarmup(1.0, 4, warmup_share=0.0), 0, 2, 4) == [1.0, 0.5, 0.0]


def test_a_training_of_one_step_has_no_warm_up() -> None:
    assert rates(LinearWarmup(1.0, 1), 0) == [1.0]
    assert rates(LinearWarmup(1.0, 2), 0, 1) == [0.0, 1.0]


def test_an_optimizer_takes_it_and_keras_restores_it() -> None:
    schedule = LinearWarmup(0.5, 10, warmup_share=0.2, decay=False)
    optimizer = keras.optimizers.Adam(schedule)
    copy = keras.optimizers.Adam.from_config(optimizer.get_config())
    copy.build([keras.Variable([1.0])])
    copy.iterations.assign(1)
    assert float(copy.learning_rate) == 0.25
    copy.iterations.assign(7)
    assert float(copy.learning_rate) == 0.5


@pytest.mark.parametrize("settings", [{"steps": 0}, {"steps": 10, "warmup_share": 1.0}])
def test_what_makes_no_warm_up_is_refused(settings: dict) -> None:
    with pytest.raises(ValueError, match="warm-up share"):
        LinearWarmup(1e-3, **settings)
