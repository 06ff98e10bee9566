"""The base class of the Keras models of most families: presets and configurations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import keras


class EncoderModel(keras.Model):
    """A Keras model whose shape is one frozen dataclass, the first argument of its constructor.

    Attributes:
        config_type: The dataclass.
        presets: Its named shapes.
        own_arguments: Names of the constructor's other arguments, which are attributes too.
        config: The shape.
        dimension: Dimension of the sentence vector.
    """

    config_type: ClassVar[Any]
    presets: ClassVar[Mapping[str, Any]]
    own_arguments: ClassVar[tuple[str, ...]] = ()
    config: Any

    @classmethod
    def from_preset(cls, name: str, *, dtype: Any = None, **changes: Any) -> Self:
        """A freshly initialised model of a named shape.

        Args:
            name: A key of `presets`.
            dtype: Keras dtype policy, such as "mixed_bfloat16".
            **changes: Arguments of the constructor, and fields of the shape that differ from the
                preset's, such as the rows of the table for a vocabulary of another size.

        Raises:
            ValueError: The preset is unknown.
        """
        if name not in cls.presets:
            raise ValueError(f"Unknown preset: {name!r}. Expected one of {sorted(cls.presets)}.")
        arguments = {key: changes.pop(key) for key in cls.own_arguments if key in changes}
        return cls(dataclasses.replace(cls.presets[name], **changes), **arguments, dtype=dtype)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, int]:
        return (input_shape[0], self.dimension)

    def get_config(self) -> dict[str, Any]:
        arguments = {name: getattr(self, name) for name in self.own_arguments}
        return {**super().get_config(), "config": dataclasses.asdict(self.config), **arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        return cls(cls.config_type(**config.pop("config")), **config)
