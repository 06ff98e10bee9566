from __future__ import annotations

import numpy as np
import pytest

from use_st5.data.column_kinds import COLUMN_KINDS


@pytest.mark.parametrize(
    ("name", "shape", "numbers", "fits", "does_not"),
    [
        ("ids", ("batch", "length"), "integers", np.uint8, np.float32),
        ("token_ids", ("batch", "length"), "integers", np.int64, np.bool_),
        ("label", ("batch",), "integers", np.int32, np.float16),
        ("vector", ("batch", "width"), "floats", np.float16, np.int32),
    ],
)
def test_kinds(name: str, shape: tuple, numbers: str, fits: type, does_not: type) -> None:
    kind = COLUMN_KINDS[name]
    assert (kind.shape, kind.numbers) == (shape, numbers)
    assert kind.holds(np.dtype(fits))
    assert not kind.holds(np.dtype(does_not))
    assert kind.holds(kind.dtype)
    assert kind.dtype.newbyteorder("<") == kind.dtype
    assert kind.of_text == name.endswith("ids")
