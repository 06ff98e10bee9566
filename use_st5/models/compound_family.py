"""What the families have in common whose models are made of models of other families."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from use_st5.layers.lora_dense import LoRADense
from use_st5.models.family import Family, any_tokenizer_class, family_named, family_of
from use_st5.tokenizers.tokenizer import Tokenizer


class CompoundFamily(Family):
    """A family whose models have members of any families, each asked through its own."""

    presets: ClassVar = {}
    tokenizers: ClassVar = {}
    precisions = ("float32", "int8")
    lora_targets: ClassVar = {
        "query_value": ("query", "value"),
        "all_linear": ("query", "key", "value", "output", "inner", "linear", "outer"),
    }

    @abc.abstractmethod
    def members(self, model: keras.Model) -> Mapping[str, keras.Model]:
        """The members by name; the name "" is that of one alone, which needs none."""

    @abc.abstractmethod
    def restored(self, config: Mapping[str, Any], dtype: Any) -> keras.Model:
        """The model out of what `config` gave, not built.

        Raises:
            KeyError: Something is missing; or a TypeError.
        """

    def tokenizer_class(self, kind: str) -> type[Tokenizer]:
        """The tokenizer of a kind, which may be that of any family."""
        return any_tokenizer_class(kind)

    def restore(self, config: Mapping[str, Any], *, dtype: Any = None) -> keras.Model:
        """The members by their families, and the model made of them."""
        try:
            model = self.restored(config, dtype)
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"Expected the configuration of the family {self.name!r}, received "
                f"{dict(config)} ({type(error).__name__}: {error}). Export the model again."
            ) from error
        model.build()
        return model

    def longest(self, model: keras.Model) -> int | None:
        """What the member reads that reads the least."""
        limits = [family_of(each).longest(each) for each in self.members(model).values()]
        return min((limit for limit in limits if limit is not None), default=None)

    def lora_layers(self, model: keras.Model) -> dict[str, LoRADense]:
        """Those of all members, each below its name."""
        return {
            f"{name}/{path}" if name else path: layer
            for name, member in self.members(model).items()
            for path, layer in family_of(member).lora_layers(member).items()
        }

    def lora_base(self, model: keras.Model) -> dict[str, Any]:
        """What each member says of itself; one alone by itself."""
        bases = {
            name: family_of(member).lora_base(member)
            for name, member in self.members(model).items()
        }
        return bases.get("", bases)


def described(member: keras.Model) -> dict[str, Any]:
    """What `restored_member` needs of a member: its family and its configuration."""
    family = family_of(member)
    return {"family": family.name, "config": family.config(member)}


def restored_member(description: Mapping[str, Any], dtype: Any) -> keras.Model:
    """A member of the shape that `described` gave."""
    return family_named(description["family"]).restore(description["config"], dtype=dtype)
