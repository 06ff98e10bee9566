"""LoRA: trains small adapters of an encoder whose own weights are frozen."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import keras
import msgspec
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from use_st5.io.files import atomic_path
from use_st5.io.records import Positive, parse_record
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
        """
        self._refuse_merged()
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
        """
        self._refuse_merged()
        for layer in self._layers.values():
            LoRADense.merge_lora(layer)  # KerasHub has layers of Keras itself.
        for variable in self._trainable_before:
            variable.trainable = True
        forget_traces(self._model)

    def _refuse_merged(self) -> None:
        if not all(layer.lora_enabled for layer in self._layers.values()):
            raise ValueError("Expected adapters in the model, but they were already merged.")


def forget_traces(model: Any) -> None:
    """Makes Keras trace its functions anew: the cached functions use the old layers."""
    model.train_function = model.test_function = model.predict_function = None


Targets = Literal["query_value", "all_linear"] | Sequence[str]


def apply_lora(
    model: keras.Model,
    *,
    targets: Targets = "query_value",
    rank: int = 8,
    alpha: float = 32.0,
    seed: int | None = None,
) -> LoRAAdapters:
    """Adds adapters to the linear layers of an encoder's blocks, and freezes everything else.

    B starts at zero, so the outputs of the model do not change at first. A is uniform in
    `±1/√dim`, as in the original. The table of tokens, the norms, the position biases and a
    projection stay frozen too.

    Do this before an optimizer is built and before a function of the model is traced.

    Args:
        model: A built model, in float32 or bfloat16 (the adapters are always float32).
        targets: "query_value", as in LoRA's paper; "all_linear", as in QLoRA's: query, key, value
            and output of each attention, and the feed-forward layers; or the names of layers, such
            as ["query", "key"] (`Family.lora_targets` has the groups of a family).
        rank: Columns of A and rows of B.
        alpha: Weight of the adapters; `alpha / rank` scales their output.
        seed: Seed of A; by default Keras's global seed (`keras.utils.set_random_seed`).

    Returns:
        The adapters; `print` shows their layers.
    """
    layers = _chosen(model, targets)
    shapes = [layer.kernel.shape for layer in layers.values()]
    most = min(min(math.prod(rows), columns) for *rows, columns in shapes)
    if not 1 <= rank <= most:
        raise ValueError(f"Expected a rank from 1 to {most}, the least width, received {rank}.")
    if not 0 < alpha < math.inf:
        raise ValueError(f"alpha: expected a positive number, received {alpha}.")
    trainable_before = model.trainable_variables
    for variable in trainable_before:
        variable.trainable = False
    # With one seed for all layers, layers of the same shape would get the same A.
    seeds: list[int | None] = [None] * len(layers)
    if seed is not None:
        generators = np.random.default_rng(seed).spawn(len(layers))
        seeds = [int(generator.integers(2**31)) for generator in generators]
    for layer, layer_seed in zip(layers.values(), seeds, strict=True):
        initializer = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform", layer_seed)
        layer.enable_lora(rank, lora_alpha=alpha, a_initializer=initializer)
    forget_traces(model)
    return LoRAAdapters(model, layers, trainable_before=trainable_before)


def load_lora(model: keras.Model, path: str | os.PathLike[str]) -> LoRAAdapters:
    """Adds the adapters of a file that `LoRAAdapters.save` wrote to a model.

    Everything is checked before the model is changed.

    Args:
        model: The base model that the adapters were trained on, built.
        path: The file.
    """
    where, family = os.fspath(path), family_of(model)
    try:
        with safe_open(where, framework="np") as file:
            metadata = (file.metadata() or {}).get(METADATA)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except (SafetensorError, OSError) as error:  # A folder, for example.
        raise ValueError(f"{where}: expected a safetensors file ({error}).") from error
    if metadata is None:
        raise ValueError(f"{where}: expected adapters of use_st5, found no metadata {METADATA!r}.")
    facts = parse_record(metadata, _Facts, where=where, remedy="Save the adapters again.")
    base = family.lora_base(model)
    if differences := [
        f"{name}: {facts.base.get(name)}, this model {base.get(name)}"
        for name in {**base, **facts.base}
        if facts.base.get(name) != base.get(name)
    ]:
        raise ValueError(f"{where}: the base of the adapters has {'; '.join(differences)}.")
    expected: dict[str, tuple[int, ...]] = {}
    for name, layer in _chosen(model, facts.targets).items():
        *rows, columns = layer.kernel.shape
        expected |= {f"{name}.a": (*rows, facts.rank), f"{name}.b": (facts.rank, columns)}
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    for name in {**expected, **shapes}:
        shape, stored = expected.get(name), shapes.get(name)
        if shape != stored:
            raise ValueError(f"{where}: {name}: expected the shape {shape}, found {stored}.")
    adapters = apply_lora(model, targets=facts.targets, rank=facts.rank, alpha=facts.alpha)
    for name, variable in adapters.tensors.items():
        variable.assign(tensors[name])
    return adapters


class _Facts(msgspec.Struct):
    rank: Positive
    alpha: float
    targets: list[str]
    base: dict[str, Any]


def _chosen(model: keras.Model, targets: Targets) -> dict[str, LoRADense]:
    """Path → layer for the targets: the layers of a group that the model has, or every name."""
    family = family_of(model)
    layers = family.lora_layers(model) if model.built else {}
    roles = sorted({_role(path) for path in layers})
    if not roles:
        name = type(model).__name__
        raise ValueError(f"Expected a built model with linear layers, received a {name}.")
    if isinstance(targets, str):
        targets = [role for role in family.lora_targets.get(targets, ()) if role in roles]
    if not targets or not {*targets} <= {*roles}:
        groups = [*family.lora_targets]
        raise ValueError(f"targets: expected one of {groups}, or names among {roles}.")
    layers = {path: layer for path, layer in layers.items() if _role(path) in targets}
    if any(layer.lora_enabled for layer in layers.values()):
        raise ValueError("Expected a model without adapters, found some. Merge them first.")
    return layers


def _role(path: str) -> str:
    return path.rsplit("/", maxsplit=1)[-1]
