"""Reads the modules of a sentence-transformers folder, which follow the Transformer."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import msgspec

from use_st5.convert.sources import SafetensorsSource
from use_st5.convert.weights import Target, WeightSource, assign_weights, check_shapes, listed
from use_st5.hub.model_manifest import SimilarityName
from use_st5.io.records import LIMIT, InnerPath, Positive, Tokens, check_record, read_record

MODULES, PROMPTS = "modules.json", "config_sentence_transformers.json"
_REMEDY = "Save the model again (sentence-transformers: model.save(folder))."
_READ = ("Transformer", "Pooling", "Dense", "LayerNorm", "Normalize", "StaticEmbedding")
# The orders of modules that are read, each kind by its first letter.
_ORDER = re.compile("TP[DL]*N?|SN?")
_KNOWN = "Transformer, Pooling, Dense or LayerNorm, Normalize; or StaticEmbedding, Normalize"
_LONGEST = 2**31 - 1
# The order of several poolings in folders before version 6.
_POOLINGS = ("cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken")
# The most bytes of a tokenizer.json, which contains a vocabulary.
_TOKENIZER_LIMIT = 2**26
_KERNEL, _BIAS = "linear.weight", "linear.bias"
_SCALE, _SHIFT = "norm.weight", "norm.bias"
# Arguments that do not change vectors.
_HARMLESS = {"trust_remote_code", "revision", "cache_dir", "token", "local_files_only", "use_fast"}
# What holds for each text anyway; padding is hidden by the mask.
_USUAL = {"truncation": (True, "longest_first"), "padding": (True, "longest", "max_length")}

Kind = TypeVar("Kind")


@dataclass(frozen=True, kw_only=True)
class LayerModule:
    """A dense layer or a layer norm after the pooling.

    Attributes:
        where: Its `config.json`.
        width: The width of its output.
        activation: Name of torch's class, such as "Identity" or "Tanh"; None for a layer norm.
        bias: Whether a dense layer adds a bias.
        source: Its tensors.
    """

    where: Path
    width: int
    activation: str | None = None
    bias: bool = True
    source: WeightSource

    def check(self, input_width: int) -> None:
        """Compares its tensors with the width of its input, before a layer is built."""
        shapes: dict[str, tuple[int, ...]] = {_SCALE: (input_width,), _SHIFT: (input_width,)}
        if self.activation is not None:
            shapes = {_KERNEL: (self.width, input_width)}
            shapes |= {_BIAS: (self.width,)} if self.bias else {}
        check_shapes(shapes, self.source)

    def assign(self, layer: Any) -> None:
        """Reads its tensors into a built layer of Keras."""
        if self.activation is None:
            mapping = {_SCALE: Target(layer.gamma), _SHIFT: Target(layer.beta)}
        else:
            mapping = {_KERNEL: Target(layer.kernel, transposed=True)}
            mapping |= {_BIAS: Target(layer.bias)} if self.bias else {}
        assign_weights(mapping, self.source)


@dataclass(frozen=True, kw_only=True)
class SentenceModules:
    """The modules of `modules.json`.

    Attributes:
        transformer: The folder of the first module: of the Transformer, or of the table.
        pooling: "mean", "cls", "max", "mean_sqrt_len", "weightedmean", "lasttoken", or several of
            them joined by "+"; None for a cross-encoder, which is only a Transformer.
        pooling_file: The file that states the pooling.
        behind_pooling: The dense layers and layer norms after the pooling, in their order.
        normalize: Whether vectors are scaled to length 1 at the end.
        max_length: The most tokens of a text, including special ones; None if not stated.
        lower_case: Whether texts are lowercased, regardless of the tokenizer.
        static: Whether the first module is a StaticEmbedding, a table without a Transformer.
        include_prompt: Whether the tokens of a prompt are pooled like all others.
    """

    transformer: Path
    pooling: str | None
    pooling_file: Path
    behind_pooling: tuple[LayerModule, ...] = ()
    normalize: bool = False
    max_length: int | None
    lower_case: bool = False
    static: bool = False
    include_prompt: bool = True


class _Settings(msgspec.Struct):
    """The settings that are read of the folder's JSON files, all in one: each has some of them."""

    # Of a module in modules.json.
    type: str = ""
    path: InnerPath = InnerPath()
    # Of a Transformer and its tokenizer.
    max_seq_length: Tokens | None = None
    do_lower_case: bool = False
    transformer_task: str | None = None
    config_args: dict[str, Any] = {}
    tokenizer_args: dict[str, Any] = {}
    processing_kwargs: dict[str, dict[str, Any]] = {}
    query_length: Positive | None = None
    document_length: Positive | None = None
    model_max_length: float | None = None
    truncation_side: Literal["right"] = "right"
    truncation: Any = None
    # Of a dense layer and a layer norm.
    out_features: Positive = 1
    bias: bool = True
    activation_function: str = "Tanh"
    module_input_name: Any = "sentence_embedding"
    module_output_name: Any = None
    use_residual: bool = False
    dimension: Positive = 1
    # Of the whole model.
    prompts: dict[str, str | None] = {}
    default_prompt_name: str | None = None
    truncate_dim: Positive | None = None
    similarity_fn_name: str | None = None


def read_modules(folder: str | os.PathLike[str]) -> SentenceModules:
    """Reads the modules of a folder and their settings.

    The folder must contain a Transformer and the pooling, and possibly dense layers, layer norms
    and the normalisation (`modules.json`, `1_Pooling`, `2_Dense`, `3_Normalize`); or only a
    Transformer that classifies sequences, which is a cross-encoder; or a StaticEmbedding, which
    pools by itself, and possibly the normalisation.
    """
    path = Path(folder, MODULES)
    entries = _read(path, list[_Settings])
    # A class of another package has its whole name, which is refused.
    kinds = [re.sub(r"^sentence_transformers\..*\.", "", entry.type) for entry in entries]
    homes = [path.parent / entry.path for entry in entries]
    # Older folders name the file after the Transformer's kind.
    files = sorted(homes[0].glob("sentence_*_config.json")) if homes else []
    settings = [_read(file, _Settings) for file in files]
    lower_case = any(each.do_lower_case for each in settings)
    classifies = any(each.transformer_task == "sequence-classification" for each in settings)
    if kinds == ["Transformer"] and classifies:
        return SentenceModules(
            transformer=homes[0],
            pooling=None,
            pooling_file=homes[0] / "config.json",
            max_length=_max_length(homes[0], settings),
            lower_case=lower_case,
        )
    if {*kinds} - {*_READ} or not _ORDER.fullmatch("".join(kind[0] for kind in kinds)):
        raise ValueError(f"{path}: expected {_KNOWN}; found {listed(kinds)}.")
    if kinds[0] == "StaticEmbedding":
        # Only the tokenizer of a table may cut texts, not counting special tokens.
        tokenizer, limit = homes[0] / "tokenizer.json", None
        truncation = _read(tokenizer, _Settings, limit=_TOKENIZER_LIMIT).truncation
        if truncation is not None:
            where, right = f"{tokenizer}: truncation", Literal["Right"]
            given = check_record(truncation, dict[str, Any], where=where, remedy=_REMEDY)
            side: Any = given.get("direction", "Right")
            check_record(side, cast("Any", right), where=f"{where}: direction", remedy=_REMEDY)
            limit = check_record(given.get("max_length"), Tokens, where=where, remedy=_REMEDY) + 2
        return SentenceModules(
            transformer=homes[0],
            pooling="mean",
            pooling_file=path,
            normalize=len(kinds) > 1,
            max_length=limit,
            static=True,
        )
    pooling_file = homes[1] / "config.json"
    pooling = _read(pooling_file, dict[str, Any])
    return SentenceModules(
        transformer=homes[0],
        pooling=_pooling(pooling),
        pooling_file=pooling_file,
        behind_pooling=tuple(
            _layer(home, kind)
            for kind, home in zip(kinds, homes, strict=True)
            if kind in ("Dense", "LayerNorm")
        ),
        normalize="Normalize" in kinds,
        max_length=_max_length(homes[0], settings),
        lower_case=lower_case,
        include_prompt=pooling.get("include_prompt") is not False,
    )


def read_prompts(folder: Path, modules: SentenceModules) -> tuple[dict[str, str], str | None]:
    """The prompts of a folder by name, and the name of the default one, if there is one."""
    path = folder / PROMPTS
    if not path.is_file():
        return {}, None
    settings = _read(path, _Settings)
    named = {name: prompt or "" for name, prompt in settings.prompts.items()}
    default = settings.default_prompt_name
    if default not in {None, "query", "document", *named}:
        raise ValueError(f"{path}: default_prompt_name {default!r:.200} is none of the prompts.")
    if (dim := settings.truncate_dim) is not None:
        raise ValueError(f"{path}: remove truncate_dim; write encode(texts, truncate_dim={dim}).")
    if not modules.include_prompt:
        raise ValueError(f"{modules.pooling_file}: expected include_prompt to be true.")
    return named, default


def read_similarity(folder: Path) -> SimilarityName:
    """Reads the similarity for which a model was trained; without one it is the cosine."""
    path = folder / PROMPTS
    name = _read(path, _Settings).similarity_fn_name if path.is_file() else None
    if name not in (None, "cosine", "dot"):
        message = f"{path}: similarity_fn_name {name!r} is not supported: texts have the cosine."
        warnings.warn(message, stacklevel=2)
    return "dot" if name == "dot" else "cosine"


def _max_length(folder: Path, settings: list[_Settings]) -> int | None:
    """The most tokens of a text that the Transformer's or tokenizer's settings state."""
    path = folder / "tokenizer_config.json"
    limit = _read(path, _Settings).model_max_length if path.is_file() else None
    for each in settings:
        # What version 6 gives to the tokenizer with each text.
        given = each.processing_kwargs
        processing = given.get("common", {}) | given.get("text", {})
        length = processing.pop("max_length", None)
        others = {*each.config_args, *each.tokenizer_args} - _HARMLESS
        others |= {name for name, value in processing.items() if value not in _USUAL.get(name, ())}
        others |= {name for name in ("query_length", "document_length") if getattr(each, name)}
        if others:
            raise ValueError(f"{folder}: write {listed(sorted(others))} into the model's settings.")
        if length is not None:
            return check_record(length, Tokens, where=f"{folder}: max_length", remedy=_REMEDY)
        if each.max_seq_length is not None:
            return each.max_seq_length
    # A tokenizer without a limit states 10³⁰.
    return int(limit) if limit is not None and 1 <= limit <= _LONGEST else None


def _pooling(settings: dict[str, Any]) -> str:
    """The pooling mode; before version 6 each mode had a switch of its own."""
    prefix = "pooling_mode_"
    stated = settings.get("pooling_mode")
    modes = stated or [
        name.removeprefix(prefix)
        for name, value in settings.items()
        if name.startswith(prefix) and value
    ]
    names = [
        str(mode).removesuffix("_tokens").removesuffix("_token")
        for mode in (modes if isinstance(modes, list) else [modes])
    ]
    if not stated:
        names.sort(key=lambda name: _POOLINGS.index(name) if name in _POOLINGS else -1)
    return "+".join(names)


def _layer(folder: Path, kind: str) -> LayerModule:
    path = folder / "config.json"
    settings, source = _read(path, _Settings), SafetensorsSource(folder)
    if kind == "LayerNorm":
        return LayerModule(where=path, width=settings.dimension, source=source)
    names = (settings.module_input_name, settings.module_output_name or "sentence_embedding")
    if settings.use_residual or names != ("sentence_embedding", "sentence_embedding"):
        raise ValueError(f"{path}: expected a layer of sentence embeddings, found {names!s:.200}.")
    activation = settings.activation_function.split(".")[-1][:200]
    width, bias = settings.out_features, settings.bias
    return LayerModule(where=path, width=width, bias=bias, activation=activation, source=source)


def _read(path: Path, kind: type[Kind], *, limit: int = LIMIT) -> Kind:
    return read_record(path, kind, remedy=_REMEDY, limit=limit)
