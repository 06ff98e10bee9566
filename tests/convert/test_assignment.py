from __future__ import annotations

import keras
import numpy as np
import pytest

from use_st5.convert.assignment import Target, assign_weights
from use_st5.convert.weight_source import WeightSource


class Arrays(WeightSource):
    where = "the checkpoint"

    def __init__(self, **tensors: np.ndarray) -> None:
        self.tensors = tensors
        self.read_names: list[str] = []

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tensor.shape for name, tensor in self.tensors.items()}

    def read(self, name: str) -> np.ndarray:
        self.read_names.append(name)
        return self.tensors[name]


def target(*shape: int, transposed: bool = False) -> Target:
    return Target(keras.Variable(np.zeros(shape, np.float32)), transposed=transposed)


def test_tensors_and_transposed_tensors() -> None:
    mapping = {"a": target(2, 3), "b": target(3, 2, transposed=True)}
    values = np.arange(6.0).reshape(2, 3)
    seen: list[str] = []
    assign_weights(mapping, Arrays(a=values, b=values), on_tensor=seen.append)
    np.testing.assert_array_equal(mapping["a"].variable, values)
    np.testing.assert_array_equal(mapping["b"].variable, values.T)
    assert seen == ["a", "b"]


def test_nothing_is_read_before_everything_fits() -> None:
    mapping = {"a": target(2), "b": target(3), "c": target(1)}
    source = Arrays(a=np.ones(2), b=np.ones(4), d=np.ones(1), e=np.ones(1))
    message = r"Missing: c. Of another shape: b: expected \[3\], found \[4\]. Left over: d\."
    with pytest.raises(ValueError, match=message):
        assign_weights(mapping, source, left_out=lambda name: name == "e")
    assert not source.read_names


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="a holds NaN or infinity"):
        assign_weights({"a": target(1)}, Arrays(a=np.array([np.nan])))
