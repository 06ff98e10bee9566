"""From float32 storage to int8, without the Python model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from use_st5.export.dequantize import dequantize
from use_st5.export.quantize import quantize

TEXTS = ["the cat", "", "how old are you", "river bank zzz"]


def test_same_as_the_int8_export_of_the_model(toy: Any, tmp_path: Path) -> None:
    manifest = quantize(toy.folders["float32"], tmp_path / "model")
    assert (manifest.storage, manifest.metadata) == ("int8", {"languages": ["en"]})
    quantized, exported = (
        tf.saved_model.load(str(folder)) for folder in (tmp_path / "model", toy.folders["int8"])
    )
    np.testing.assert_array_equal(quantized.table_codes, exported.table_codes)
    np.testing.assert_allclose(quantized(TEXTS), exported(TEXTS), atol=1e-6)
    assert len(quantized.trainable_variables) == len(exported.trainable_variables)


def test_there_and_back_and_there_is_stable(toy: Any, tmp_path: Path) -> None:
    dequantize(toy.folders["int8"], tmp_path / "float32")
    quantize(tmp_path / "float32", tmp_path / "int8")
    once = tf.saved_model.load(str(toy.folders["int8"])).table_codes
    np.testing.assert_array_equal(tf.saved_model.load(str(tmp_path / "int8")).table_codes, once)


def test_refuses_a_table_that_is_int8(toy: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="found storage int8"):
        quantize(toy.folders["int8"], tmp_path / "model")
