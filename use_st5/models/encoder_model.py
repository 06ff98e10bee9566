"""The base class of the Keras models of most families, and any model as one function."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import keras
import numpy as np


class EncoderModel(keras.Model):
    """A Keras model whose shape is one frozen dataclass, the first argument of its constructor.

    Attributes:
        config_type: The dataclass.
        presets: Its named shapes.
        own_arguments: Names of the constructor's other arguments, which are attributes too.
        packs: Whether `encode_embedded` takes `packed=`, which computes no padding.
        config: The shape.
        dimension: Dimension of the sentence vector.
    """

    config_type: ClassVar[Any]
    presets: ClassVar[Mapping[str, Any]]
    own_arguments: ClassVar[tuple[str, ...]] = ()
    packs: ClassVar[bool] = False
    config: Any

    @classmethod
    def from_preset(cls, name: str, *, dtype: Any = None, **changes: Any) -> Self:
        """A freshly initialised model of a named shape.

        Args:
            name: A key of `presets`.
            dtype: Keras dtype policy, such as "mixed_bfloat16".
            **changes: Arguments of the constructor, and fields of the shape that differ from the
                preset's, such as the rows of the table for a vocabulary of another size.
        """
        if name not in cls.presets:
            raise ValueError(f"Unknown preset: {name!r}. Expected one of {sorted(cls.presets)}.")
        arguments = {key: changes.pop(key) for key in cls.own_arguments if key in changes}
        return cls(dataclasses.replace(cls.presets[name], **changes), **arguments, dtype=dtype)

    def get_config(self) -> dict[str, Any]:
        arguments = {name: getattr(self, name) for name in self.own_arguments}
        return {**super().get_config(), "config": dataclasses.asdict(self.config), **arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        return cls(cls.config_type(**config.pop("config")), **config)


def inference(model: keras.Model) -> Callable[[Any], Any]:
    """Compiles a model without dropout: int32 `[batch, length]` → `[batch, dimension]`."""
    if keras.backend.backend() != "tensorflow":
        return lambda ids: model.predict_on_batch(np.asarray(ids))
    import tensorflow as tf

    def embed(ids: tf.Tensor) -> tf.Tensor:
        if getattr(model, "packs", False):
            return model.encode_embedded(model.embedding(ids), ids, packed=True)
        return model(ids, training=False)

    signature = [tf.TensorSpec([None, None], tf.int32)]
    return tf.function(embed, input_signature=signature, autograph=False)


def checked_length(model: keras.Model, max_length: int | None) -> int | None:
    """The maximum number of tokens of a text: the argument, or else the limit of the model."""
    # Imported here: families read checkpoints with TensorFlow, but models also run without it.
    from use_st5.models.family import known_family

    family = known_family(model)
    most = None if family is None else family.max_tokens(model)
    if max_length is None:
        return most
    if most is not None and not 1 <= max_length <= most:
        raise ValueError(f"max_length: expected 1 to {most:,} tokens, received {max_length:,}.")
    return max_length


def in_float32(model: keras.Model) -> keras.Model:
    """A copy with the same weights that computes in float32."""
    copy = type(model).from_config({**model.get_config(), "dtype": "float32"})
    copy.build()
    copy.set_weights(model.get_weights())
    return copy
