"""The low-rank adapters of an encoder: list, save, merge."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import safetensors.numpy

from use_st5.io.files import atomic_path
from use_st5.layers.lora_dense import LoRADense
from use_st5.models.family import family_of

# The key of the file's metadata. Only one key, because safetensors writes several keys in any
# order, but the same adapters must give the same file.
METADATA = "use_st5.lora"


class LoRAAdapters:
    """The adapters that `apply_lora` or `load_lora` gave a model.

    `print(adapters)` lists the adapted layers.

    Args:
        model: The model.
        layers: Path → layer, each with an adapter.
        trainable_before: The variables that were trainable before; `merge` makes them trainable.

    Attributes:
        rank: Columns of A, rows of B.
        alpha: The adapter's weight; its output is scaled by `alpha / rank`.
    """

    def __init__(
        self,
        model: Any,
        layers: Mapping[str, LoRADense],
        *,
        trainable_before: Sequence[keras.Variable],
    ) -> None:
        first = next(iter(layers.values()))
        self.rank: int = first.lora_rank
        self.alpha: float = first.lora_alpha
        self.targets = tuple(dict.fromkeys(path.rsplit("/", maxsplit=1)[-1] for path in layers))
        self._model = model
        self._layers = dict(layers)
        self._trainable_before = list(trainable_before)

    @property
    def layers(self) -> tuple[str, ...]:
        """The paths of the adapted layers, such as "encoder/block_0/attention/query"."""
        return tuple(self._layers)

    @property
    def tensors(self) -> dict[str, keras.Variable]:
        """A and B of every layer as "PATH.a" and "PATH.b"; empty after `merge`."""
        return {
            f"{path}.{letter}": getattr(layer, f"lora_kernel_{letter}")
            for path, layer in self._layers.items()
            if layer.lora_enabled
            for letter in "ab"
        }

    @property
    def parameters(self) -> int:
        """The number of weights in all adapters."""
        return sum(math.prod(tensor.shape) for tensor in self.tensors.values())

    def __str__(self) -> str:
        head = (
            f"LoRA of rank {self.rank}, alpha {self.alpha:g} on {len(self.layers)} layers; "
            f"{self.parameters:,} of {self._model.count_params():,} numbers train:"
        )
        return "\n  ".join([head, *self.layers])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes only the adapters, as a safetensors file; `load_lora` reads it.

        The metadata contain the rank, alpha, the targets and the shape of the base.

        Raises:
            ValueError: The adapters are merged.
        """
        self._check_present()
        facts = {
            "rank": self.rank,
            "alpha": float(self.alpha),
            "targets": self.targets,
            "base": family_of(self._model).lora_base(self._model),
        }
        metadata = {METADATA: json.dumps(facts)}
        arrays = {name: tensor.numpy() for name, tensor in self.tensors.items()}
        with atomic_path(path) as temporary:
            safetensors.numpy.save_file(arrays, os.fspath(temporary), metadata=metadata)

    def merge(self) -> None:
        """Adds the adapters to the base and removes them; the model then has no adapters.

        The variables that were trainable before are trainable again. If the base is bfloat16, the
        sum is rounded to bfloat16.

        Raises:
            ValueError: The adapters are already merged.
        """
        self._check_present()
        for layer in self._layers.values():
            layer.merge_lora()
        for variable in self._trainable_before:
            variable.trainable = True
        forget_traces(self._model)

    def _check_present(self) -> None:
        if not all(layer.lora_enabled for layer in self._layers.values()):
            raise ValueError("Expected adapters in the model, but they were already merged.")


def forget_traces(model: Any) -> None:
    """Makes Keras trace its functions anew: the cached functions use the old layers."""
    model.train_function = model.test_function = model.predict_function = None
