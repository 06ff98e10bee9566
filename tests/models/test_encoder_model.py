"""Presets and configurations, of a model that is made for the test."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import pytest

from use_st5.models.encoder_model import EncoderModel


@dataclasses.dataclass(frozen=True)
class Shape:
    rows: int = 3
    dim: int = 4


class Model(EncoderModel):
    config_type = Shape
    presets: ClassVar = {"small": Shape(), "large": Shape(dim=40)}
    own_arguments: ClassVar = ("normalize",)

    def __init__(self, config: Shape, *, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.normalize = normalize
        self.dimension = config.dim


def test_a_preset_with_changes() -> None:
    model = Model.from_preset("large", rows=5, normalize=True, dtype="bfloat16")
    assert (model.config, model.normalize) == (Shape(5, 40), True)
    assert model.dtype_policy.name == "bfloat16"
    assert model.compute_output_shape((7, None)) == (7, 40)
    with pytest.raises(ValueError, match=r"Unknown preset: 'huge'.*\['large', 'small'\]"):
        Model.from_preset("huge")
    with pytest.raises(TypeError, match="columns"):
        Model.from_preset("small", columns=5)


def test_its_configuration_brings_it_back() -> None:
    config = Model(Shape(5), normalize=True, name="one").get_config()
    assert (config["config"], config["normalize"]) == ({"rows": 5, "dim": 4}, True)
    again = Model.from_config(config)
    assert (again.config, again.normalize, again.name) == (Shape(5), True, "one")
