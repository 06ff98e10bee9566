from __future__ import annotations

import keras
import numpy as np
import pytest

from use_st5.export.stored_weights import Float32Table, Int8Weights, rounded_kernel, stored_table


def built(dtype: str = "float32") -> keras.layers.Embedding:
    layer = keras.layers.Embedding(5, 3, dtype=dtype)
    layer.build((None, None))
    return layer


def test_float32_keeps_the_variable_and_int8_rounds_it() -> None:
    embeddings = built().embeddings
    kept = stored_table(embeddings, "float32")
    assert isinstance(kept, Float32Table)
    assert kept.variables[0] is embeddings.value
    rounded = stored_table(embeddings, "int8")
    assert isinstance(rounded, Int8Weights)
    for table in (kept, rounded):
        np.testing.assert_allclose(table.lookup([[4, 0]]), embeddings.numpy()[[[4, 0]]], atol=1e-3)
        assert table.precision in ("float32", "int8")


def test_another_precision_is_refused() -> None:
    half = built("bfloat16").embeddings
    for store in (rounded_kernel, lambda variable: stored_table(variable, "float32")):
        with pytest.raises(ValueError, match="embeddings: expected float32, received bfloat16"):
            store(half)
