"""LoRA: trains small adapters of an encoder whose own weights are frozen."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import keras
import msgspec
import numpy as np
import safetensors.numpy
from safetensors import safe_open

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

    Raises:
        ValueError: A target matches no layer, the rank does not fit, or the model already has
            adapters or is not built.
    """
    layers = _chosen(model, targets)
    _check_scale(layers, rank, alpha)
    trainable_before = model.trainable_variables
    for variable in trainable_before:
        variable.trainable = False
    # With one seed for all layers, layers of the same shape would get the same A.
    generators = (
        [None] * len(layers) if seed is None else np.random.default_rng(seed).spawn(len(layers))
    )
    for layer, generator in zip(layers.values(), generators, strict=True):
        layer_seed = None if generator is None else int(generator.integers(2**31))
        initializer = keras.initializers.VarianceScaling(
            1 / 3, "fan_in", "uniform", seed=layer_seed
        )
        layer.enable_lora(rank, lora_alpha=alpha, a_initializer=initializer)
    forget_traces(model)
    return LoRAAdapters(model, layers, trainable_before=trainable_before)


def load_lora(model: keras.Model, path: str | os.PathLike[str]) -> LoRAAdapters:
    """Adds the adapters of a file that `LoRAAdapters.save` wrote to a model.

    Everything is checked before the model is changed.

    Args:
        model: The base model that the adapters were trained on, built.
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file does not contain adapters of use_st5, the model has another shape, or
            `apply_lora` raises an error.
    """
    with _open(path) as file:
        facts = _facts(path, (file.metadata() or {}).get(METADATA))
        _check_base(path, facts.base, family_of(model).lora_base(model))
        names = file.keys()
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
        # Older files of T5 1.0 also name the gate, which only T5 1.1 has.
        roles = {_role(path) for path in family_of(model).lora_layers(model)}
        targets = [role for role in facts.targets if role in roles]
        _check_tensors(path, shapes, _chosen(model, targets), facts.rank)
        tensors = {name: file.get_tensor(name) for name in names}
    adapters = apply_lora(model, targets=targets, rank=facts.rank, alpha=facts.alpha)
    for name, variable in adapters.tensors.items():
        variable.assign(tensors[name])
    return adapters


class _Facts(msgspec.Struct):
    rank: Positive
    alpha: float
    targets: list[str]
    base: dict[str, Any]


def _facts(path: Any, metadata: str | None) -> _Facts:
    if metadata is None:
        raise ValueError(
            f"{os.fspath(path)}: expected adapters that use_st5 wrote, found metadata without "
            f"{METADATA!r}."
        )
    where = f"{os.fspath(path)}: metadata {METADATA}"
    return parse_record(metadata, _Facts, where=where, remedy="Save the adapters again.")


def _chosen(model: keras.Model, targets: Targets) -> dict[str, LoRADense]:
    """Path → layer for the targets: the layers of a group that the model has, or every name."""
    family = family_of(model)
    all_layers = family.lora_layers(model) if model.built else {}
    if not all_layers:
        raise ValueError(
            "Expected an encoder that is built (model.build()) and whose family has linear layers "
            f"for adapters, received {type(model).__name__}, built={model.built}."
        )
    roles = sorted({_role(path) for path in all_layers})
    if isinstance(targets, str):
        if targets not in family.lora_targets:
            raise ValueError(
                f"Unknown targets: {targets!r}. Expected one of {[*family.lora_targets]} or a list "
                f"of names among {roles}."
            )
        targets = [role for role in family.lora_targets[targets] if role in roles]
    missing = sorted({*targets} - {*roles})
    if not targets or missing:
        raise ValueError(
            f"targets: expected names of layers, {roles}, received {list(targets)}; no layer "
            f"has the names {missing}."
        )
    layers = {path: layer for path, layer in all_layers.items() if _role(path) in targets}
    if adapted_paths := [path for path, layer in layers.items() if layer.lora_enabled]:
        raise ValueError(
            f"Expected a model without adapters, found one in {adapted_paths[0]}. Merge it first."
        )
    return layers


def _role(path: str) -> str:
    return path.rsplit("/", maxsplit=1)[-1]


def _check_scale(layers: dict[str, LoRADense], rank: int, alpha: float) -> None:
    shapes = [layer.kernel.shape for layer in layers.values()]
    most = min(min(math.prod(rows), columns) for *rows, columns in shapes)
    if not 1 <= rank <= most or not (math.isfinite(alpha) and alpha > 0):
        raise ValueError(
            f"Expected a rank from 1 to {most}, the smallest width of the adapted layers, and a "
            f"positive alpha. Received: rank={rank}, alpha={alpha}"
        )


def _open(path: str | os.PathLike[str]) -> Any:
    if not Path(path).is_file():
        raise FileNotFoundError(f"{os.fspath(path)}: expected a file of adapters, found none.")
    try:
        return safe_open(path, framework="np")
    except Exception as error:  # safetensors' own error class is not public
        raise ValueError(
            f"{os.fspath(path)}: expected a safetensors file ({type(error).__name__}: {error})."
        ) from error


def _check_base(path: Any, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    differences = [
        f"{name}: the adapters' base has {found.get(name)}, this model {wanted.get(name)}"
        for name in {**wanted, **found}
        if found.get(name) != wanted.get(name)
    ]
    if differences:
        raise ValueError(
            f"{os.fspath(path)}: expected the model that the adapters were trained on. "
            + "; ".join(differences)
        )


def _check_tensors(
    path: Any, found: dict[str, tuple[int, ...]], layers: dict[str, LoRADense], rank: int
) -> None:
    expected: dict[str, tuple[int, ...]] = {}
    for name, layer in layers.items():
        *rows, columns = layer.kernel.shape
        expected |= {f"{name}.a": (*rows, rank), f"{name}.b": (rank, columns)}
    if found != expected:
        names = [n for n in {**expected, **found} if found.get(n) != expected.get(n)]
        raise ValueError(
            f"{os.fspath(path)}: expected {names[0]} with the shape {expected.get(names[0])}, "
            f"found {found.get(names[0])}; {len(names)} tensors do not fit this model."
        )
