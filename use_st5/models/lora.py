"""LoRA: a T5 trained through small adapters while its own weights rest."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import keras
import msgspec
import numpy as np
from safetensors import safe_open

from use_st5._records import Positive, parse_record
from use_st5.layers.attention import MultiHeadAttention
from use_st5.layers.lora_dense import LoRADense
from use_st5.models.lora_adapters import METADATA, LoRAAdapters, base_shape, forget_traces
from use_st5.models.t5.feed_forward import T5FeedForward
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.models.t5.t5 import T5

Targets = Literal["query_value", "all_linear"] | Sequence[str]

LINEAR_LAYERS = ("query", "key", "value", "output", "inner", "linear", "outer")
_NAMED: dict[str, tuple[str, ...]] = {
    "query_value": ("query", "value"),
    "all_linear": LINEAR_LAYERS,
}


def apply_lora(
    model: SentenceT5 | T5,
    *,
    targets: Targets = "query_value",
    rank: int = 8,
    alpha: float = 32.0,
    seed: int | None = None,
) -> LoRAAdapters:
    """Gives the linear layers of a T5's blocks adapters and freezes everything else.

    B starts at zero, so that the model gives what it gave before. A is uniform in `±1/√dim`, as in
    the original. The table of tokens, the norms, the position biases and a projection rest too.

    Do this before an optimizer is built and before a function of the model is traced.

    Args:
        model: Built, in float32 or bfloat16 (the adapters are float32 in any case).
        targets: "query_value", as in LoRA's paper; "all_linear", as in QLoRA's: query, key, value
            and output of each attention, and the feed-forward layers; or names among
            `LINEAR_LAYERS`.
        rank: Columns of A and rows of B.
        alpha: Weight of the adapters; `alpha / rank` scales what they add.
        seed: Of A; by default Keras's own (`keras.utils.set_random_seed`).

    Returns:
        The adapters; printed, they list the layers.

    Raises:
        ValueError: A target matches no layer, the rank does not fit, or the model has adapters or
            is not built.
    """
    names = _target_names(targets)
    layers = _matching(model, names)
    _check_scale(layers, rank, alpha)
    thawed = model.trainable_variables
    for variable in thawed:
        variable.trainable = False
    # One seed for all would give layers of one shape the same A.
    seeds = [None] * len(layers) if seed is None else np.random.default_rng(seed).spawn(len(layers))
    for layer, each in zip(layers.values(), seeds, strict=True):
        drawn = None if each is None else int(each.integers(2**31))
        uniform = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform", seed=drawn)
        layer.enable_lora(rank, lora_alpha=alpha, a_initializer=uniform)
    forget_traces(model)
    return LoRAAdapters(model, layers, targets=names, thawed=thawed)


def load_lora(model: SentenceT5 | T5, path: str | os.PathLike[str]) -> LoRAAdapters:
    """Gives a model the adapters of a file that `LoRAAdapters.save` wrote.

    Everything is checked before the model is changed.

    Args:
        model: The base that they were trained on, built.
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no such file, the model has another shape, or what `apply_lora` raises.
    """
    with _open(path) as file:
        facts = _facts(path, (file.metadata() or {}).get(METADATA))
        _check_base(path, facts.base, base_shape(model.config))
        names = file.keys()
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
        _check_tensors(path, shapes, _matching(model, facts.targets), facts.rank)
        tensors = {name: file.get_tensor(name) for name in names}
    adapters = apply_lora(model, targets=facts.targets, rank=facts.rank, alpha=facts.alpha)
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
            f"{os.fspath(path)}: expected adapters that use_st5 wrote, its metadata have no "
            f"{METADATA!r}."
        )
    where = f"{os.fspath(path)}: metadata {METADATA}"
    return parse_record(metadata, _Facts, where=where, remedy="Save the adapters again.")


def _target_names(targets: Targets) -> tuple[str, ...]:
    if isinstance(targets, str):
        if targets not in _NAMED:
            raise ValueError(
                f"Unknown targets: {targets!r}. Expected one of {[*_NAMED]} or a list of names "
                f"among {LINEAR_LAYERS}."
            )
        return _NAMED[targets]
    return tuple(targets)


def _matching(model: SentenceT5 | T5, names: Sequence[str]) -> dict[str, LoRADense]:
    """Path → layer for the layers of these names; each name must have one."""
    if not isinstance(model, SentenceT5 | T5) or not model.built:
        raise ValueError(
            "Expected a T5 or a SentenceT5 that is built (model.build()), received "
            f"{type(model).__name__}, built={model.built}."
        )
    there = _linear_layers(model)
    roles = {path.rsplit("/", maxsplit=1)[1] for path in there}
    # "all_linear" names the gate of T5 1.1 and mT5, which T5 1.0 does not have.
    wanted = set(names) - ({"linear"} if tuple(names) == LINEAR_LAYERS else set())
    if not names or not wanted <= roles:
        raise ValueError(
            f"No layer of the model matches the targets {sorted(wanted - roles)}. Expected names "
            f"among those it has, {sorted(roles)}; received {list(names)}."
        )
    layers = {p: layer for p, layer in there.items() if p.rsplit("/", maxsplit=1)[1] in names}
    if adapted := [path for path, layer in layers.items() if layer.lora_enabled]:
        raise ValueError(f"The model has adapters already, in {adapted[0]}; merge them first.")
    return layers


def _linear_layers(model: SentenceT5 | T5) -> dict[str, LoRADense]:
    """Path → layer for every linear layer of the blocks, in order."""
    return {
        f"{stack.name}/{block.name}/{part.name}/{role}": layer
        for stack in (model.encoder, model.decoder)
        if stack is not None
        for block in stack.blocks
        for part in (block.attention, getattr(block, "cross", None), block.feed_forward)
        if part is not None
        for role, layer in _roles(part).items()
        if layer is not None
    }


def _roles(part: MultiHeadAttention | T5FeedForward) -> dict[str, Any]:
    if isinstance(part, T5FeedForward):
        return {"inner": part.inner, "linear": part.linear, "outer": part.outer}
    return {
        "query": part.query,
        "key": part.key,
        "value": part.value,
        "output": part.output_dense,
    }


def _check_scale(layers: dict[str, LoRADense], rank: int, alpha: float) -> None:
    most = min(min(layer.kernel.shape) for layer in layers.values())
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
    except Exception as error:  # safetensors' own kind is not public
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
    expected = {}
    for name, layer in layers.items():
        rows, columns = layer.kernel.shape
        expected |= {f"{name}.a": (rows, rank), f"{name}.b": (rank, columns)}
    if found != expected:
        names = [n for n in {**expected, **found} if found.get(n) != expected.get(n)]
        raise ValueError(
            f"{os.fspath(path)}: its tensors do not fit its metadata and this model: {names[0]}: "
            f"expected {expected.get(names[0])}, found {found.get(names[0])}; {len(names)} in all."
        )
