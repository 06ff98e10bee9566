from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.convert import numpy_t5
from tests.convert.t5x_writer import write_file
from use_st5.convert.t5x_t5 import open_t5x_t5


def test_bfloat16_with_a_projection_in_float32(tmp_path: Path) -> None:
    kernel = np.eye(8, 6, dtype=np.float32)
    write_file(tmp_path / "file", {**numpy_t5.arrays(), "projection_layer/kernel": kernel})
    checkpoint = open_t5x_t5(tmp_path / "file")
    seen: list[str] = []
    model = checkpoint.load_sentence_t5(dtype="bfloat16", on_tensor=seen.append)
    assert sorted(seen) == sorted(checkpoint.source.shapes())
    assert {v.dtype for v in model.encoder.weights} == {"bfloat16"}
    assert model.projection.kernel.dtype == "float32"
    whole = checkpoint.load_sentence_t5()(np.array([[5, 6, 1]]))
    np.testing.assert_allclose(model(np.array([[5, 6, 1]])), whole, atol=0.05)


def test_every_name_and_shape_is_checked(tmp_path: Path) -> None:
    tensors = numpy_t5.arrays()
    norm, query = "encoder/encoder_norm/scale", "encoder/layers_1/attention/key/kernel"
    wrong = {**tensors, query: np.zeros((8, 5), np.float32), "encoder/extra": np.zeros(1)}
    del wrong[norm]
    write_file(tmp_path / "file", wrong)
    with pytest.raises(ValueError) as error:
        open_t5x_t5(tmp_path / "file").load_t5(with_decoder=False)
    message = str(error.value)
    assert f"Missing: {norm}." in message
    assert f"Of another shape: {query}: expected [8, 6], found [8, 5]." in message
    assert "Left over: encoder/extra." in message


def test_the_decoder_is_left_out_where_it_is_not_used(tmp_path: Path) -> None:
    tensors = {
        **numpy_t5.arrays(),
        "decoder/a": np.zeros(2),
        "decoder/logits_dense/kernel": np.ones(2),
    }
    write_file(tmp_path / "file", tensors)
    seen: list[str] = []
    open_t5x_t5(tmp_path / "file").load_sentence_t5(on_tensor=seen.append)
    assert not any(name.startswith("decoder/") for name in seen)
