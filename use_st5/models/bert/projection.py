"""The layers after the pooling: dense layers and layer norms, as in sentence-transformers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import keras

DenseActivation = Literal["linear", "tanh", "relu", "gelu", "sigmoid"]


@dataclasses.dataclass(frozen=True)
class ProjectionConfig:
    """A dense layer after the pooling, like sentence-transformers' `Dense`.

    Attributes:
        units: Width of the output.
        use_bias: Whether the layer has a bias.
        activation: Keras name of the activation.

    Raises:
        ValueError: The activation is unknown.
    """

    units: int
    use_bias: bool = True
    activation: DenseActivation = "tanh"

    def __post_init__(self) -> None:
        if self.activation not in get_args(DenseActivation):
            raise ValueError(
                f"Unknown activation: {self.activation!r}. Expected one of "
                f"{get_args(DenseActivation)}."
            )


@dataclasses.dataclass(frozen=True)
class NormConfig:
    """A layer norm after the pooling, like sentence-transformers' `LayerNorm`.

    Attributes:
        epsilon: Added to the variance.
    """

    epsilon: float = 1e-5


def config_of(fields: Mapping[str, Any]) -> ProjectionConfig | NormConfig:
    """The configuration of a layer from its fields."""
    return NormConfig(**fields) if "epsilon" in fields else ProjectionConfig(**fields)


def behind_pooling(config: ProjectionConfig | NormConfig, name: str) -> keras.layers.Layer:
    """The layer of a configuration, computed in float32."""
    if isinstance(config, NormConfig):
        return keras.layers.LayerNormalization(epsilon=config.epsilon, dtype="float32", name=name)
    return keras.layers.Dense(
        config.units,
        use_bias=config.use_bias,
        activation=config.activation,
        dtype="float32",
        name=name,
    )


def built_behind_pooling(layers: Sequence[keras.layers.Layer], width: int) -> None:
    """Builds successive layers for input vectors of `width`."""
    for layer in layers:
        layer.build((None, width))
        width = layer.compute_output_shape((None, width))[-1]
