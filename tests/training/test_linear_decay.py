from __future__ import annotations

import keras
import numpy as np
import pytest

from use_st5.training.linear_decay import LinearDecay


def test_constant_for_a_tenth_then_a_line_to_zero() -> None:
    schedule = LinearDecay(1e-3, 100)
    rates = [float(schedule(step)) for step in (0, 9, 10, 55, 100, 150)]
    np.testing.assert_allclose(rates, [1e-3, 1e-3, 1e-3, 0.5e-3, 0.0, 0.0], atol=1e-9)


def test_adafactor_takes_it_and_keras_restores_it() -> None:
    optimizer = keras.optimizers.Adafactor(LinearDecay(0.5, 10, constant_share=0.2))
    copy = keras.optimizers.Adafactor.from_config(optimizer.get_config())
    variable = keras.Variable([1.0])
    copy.build([variable])
    assert float(copy.learning_rate) == 0.5
    copy.iterations.assign(6)
    assert float(copy.learning_rate) == pytest.approx(0.25)


@pytest.mark.parametrize("settings", [{"steps": 0}, {"steps": 10, "constant_share": 1.0}])
def test_what_makes_no_schedule_is_refused(settings: dict) -> None:
    with pytest.raises(ValueError, match="constant share"):
        LinearDecay(1e-3, **settings)
