from __future__ import annotations

import threading

import keras
import numpy as np
import pytest

from use_st5.layers.random_normal import RandomNormal, without_initial_values
from use_st5.models.t5.model import T5Config, T5Stack


def test_the_numbers_are_those_of_keras() -> None:
    ours = RandomNormal(stddev=0.5, seed=3)((4, 5))
    np.testing.assert_array_equal(ours, keras.initializers.RandomNormal(stddev=0.5, seed=3)((4, 5)))
    assert keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(RandomNormal())
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nothing_is_drawn_for_a_checkpoint(dtype: str) -> None:
    with without_initial_values():
        stack = T5Stack(T5Config(9, 1, 8, 16, 2, key_value_dim=4), decoder=True, dtype=dtype)
        stack.build((None, None, 8))
    for variable in stack.variables:
        assert variable.dtype == dtype
        norm = variable.path.endswith("scale")
        np.testing.assert_array_equal(variable, np.full(variable.shape, float(norm), "float32"))
    assert np.any(keras.ops.convert_to_numpy(RandomNormal()((9,)))), "only inside"


def test_other_threads_draw_on() -> None:
    drawn = []
    with without_initial_values():
        thread = threading.Thread(target=lambda: drawn.append(RandomNormal()((9,))))
        thread.start()
        thread.join()
    assert np.any(np.asarray(drawn[0]))


def test_it_ends_with_an_error_too() -> None:
    with pytest.raises(KeyError), without_initial_values():
        raise KeyError
    assert np.any(np.asarray(RandomNormal()((9,))))
