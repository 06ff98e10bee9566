"""Reads the modules of a sentence-transformers folder, which follow the Transformer."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from use_st5.convert.safetensors_source import SafetensorsSource
from use_st5.convert.weights import Target, WeightSource, assign_weights, check_shapes, listed
from use_st5.hub.model_manifest import SimilarityName
from use_st5.io.records import LIMIT, InnerPath, Positive, Tokens, check_record, read_record

MODULES, PROMPTS = "modules.json", "config_sentence_transformers.json"
_REMEDY = "Save the model again (sentence-transformers: model.save(folder))."
_READ = ("Transformer", "Pooling", "Dense", "LayerNorm", "Normalize", "StaticEmbedding")
# The orders of modules that are read, each kind by its first letter.
_ORDER = re.compile("TP[DL]*N?|SN?")
_LONGEST = 2**31 - 1
# The most bytes of a tokenizer.json, which contains a vocabulary.
_TOKENIZER_LIMIT = 2**26
_KERNEL, _BIAS = "linear.weight", "linear.bias"
_SCALE, _SHIFT = "norm.weight", "norm.bias"

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
        if self.activation is None:
            check_shapes({_SCALE: (input_width,), _SHIFT: (input_width,)}, self.source)
            return
        shapes: dict[str, tuple[int, ...]] = {_KERNEL: (self.width, input_width)}
        check_shapes(shapes | ({_BIAS: (self.width,)} if self.bias else {}), self.source)

    def assign(self, layer: Any, *, on_tensor: Callable[[str], None] = lambda name: None) -> None:
        """Reads its tensors into a built layer of Keras; `on_tensor` gets the name of each."""
        if self.activation is None:
            mapping = {_SCALE: Target(layer.gamma), _SHIFT: Target(layer.beta)}
        else:
            mapping = {_KERNEL: Target(layer.kernel, transposed=True)}
            mapping |= {_BIAS: Target(layer.bias)} if self.bias else {}
        assign_weights(mapping, self.source, on_tensor=on_tensor)


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
    behind_pooling: tuple[LayerModule, ...]
    normalize: bool
    max_length: int | None
    lower_case: bool = False
    static: bool = False
    include_prompt: bool = True


class Prompts(NamedTuple):
    """Texts that a model puts before queries and documents.

    Attributes:
        named: Name → prompt, such as "query" → "query: ".
        default: The name of the prompt that is used if none is named; None means no prompt.
    """

    named: dict[str, str]
    default: str | None


class _Module(msgspec.Struct):
    type: str
    path: InnerPath


class _Dense(msgspec.Struct):
    out_features: Positive
    bias: bool = True
    activation_function: str = "Tanh"
    module_input_name: Literal["sentence_embedding"] = "sentence_embedding"
    module_output_name: Literal["sentence_embedding"] | None = None
    use_residual: Literal[False] = False


class _LayerNorm(msgspec.Struct):
    dimension: Positive


# Arguments that do not change vectors.
_HARMLESS = {"trust_remote_code", "revision", "cache_dir", "token", "local_files_only", "use_fast"}


# What holds for each text anyway; padding is hidden by the mask.
_USUAL = {"truncation": (True, "longest_first"), "padding": (True, "longest", "max_length")}


class _Transformer(msgspec.Struct):
    max_seq_length: Tokens | None = None
    do_lower_case: bool = False
    transformer_task: str | None = None
    config_args: dict[str, Any] = {}
    tokenizer_args: dict[str, Any] = {}
    processing_kwargs: dict[str, dict[str, Any]] = {}
    query_length: Positive | None = None
    document_length: Positive | None = None

    @property
    def text_processing(self) -> dict[str, Any]:
        """What version 6 gives to the tokenizer with each text."""
        return self.processing_kwargs.get("common", {}) | self.processing_kwargs.get("text", {})


class _Tokenizer(msgspec.Struct):
    model_max_length: float | None = None
    truncation_side: Literal["right"] = "right"


class _Truncation(msgspec.Struct):
    max_length: Tokens
    direction: Literal["Right"] = "Right"


class _WholeTokenizer(msgspec.Struct):
    truncation: _Truncation | None = None


class _Prompts(msgspec.Struct):
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
    entries = _read(path, list[_Module])
    # A class of another package has its whole name, which is refused.
    kinds = [re.sub(r"^sentence_transformers\..*\.", "", entry.type) for entry in entries]
    if kinds == ["Transformer"] and (modules := _cross_encoder(path.parent / entries[0].path)):
        return modules
    if {*kinds} - {*_READ} or not _ORDER.fullmatch("".join(kind[0] for kind in kinds)):
        raise ValueError(
            f"{path}: expected Transformer, Pooling, and perhaps Dense or LayerNorm, and Normalize "
            "at the end; or StaticEmbedding, and perhaps Normalize; found "
            f"{listed(kinds) if kinds else 'nothing'}. Give a model of these modules."
        )
    homes = [path.parent / entry.path for entry in entries]
    if kinds[0] == "StaticEmbedding":
        return _static_embedding(path, homes[0], normalize=len(kinds) > 1)
    readers = {"Dense": _dense, "LayerNorm": _layer_norm}
    pooling_file = homes[1] / "config.json"
    pooling = _read(pooling_file, dict[str, Any])
    return SentenceModules(
        transformer=homes[0],
        pooling=_pooling(pooling),
        pooling_file=pooling_file,
        behind_pooling=tuple(
            readers[kind](home) for kind, home in zip(kinds, homes, strict=True) if kind in readers
        ),
        normalize="Normalize" in kinds,
        max_length=_max_length(homes[0]),
        lower_case=any(each.do_lower_case for each in _settings(homes[0])),
        include_prompt=pooling.get("include_prompt") is not False,
    )


def read_prompts(folder: Path, modules: SentenceModules) -> Prompts:
    """Reads the prompts of a folder, if it states any.

    Args:
        folder: The folder with `modules.json`.
        modules: Its modules.
    """
    path = folder / PROMPTS
    if not path.is_file():
        return Prompts({}, None)
    settings = _read(path, _Prompts)
    named = {name: prompt or "" for name, prompt in settings.prompts.items()}
    default = settings.default_prompt_name
    if default is not None and default not in {"query", "document", *named}:
        raise ValueError(
            f"{path}: expected default_prompt_name to be one of {[*named]!s:.200}, received "
            f"{default!r:.200}. "
            f"{_REMEDY}"
        )
    if settings.truncate_dim is not None:
        raise ValueError(
            f"{path}: expected no truncate_dim, received {settings.truncate_dim}. Remove it, and "
            f"write encode(texts, truncate_dim={settings.truncate_dim})."
        )
    if not modules.include_prompt:
        raise ValueError(
            f"{modules.pooling_file}: expected include_prompt to be true, received false: use_st5 "
            "pools the tokens of a prompt like all others, which would give other vectors."
        )
    return Prompts(named, default)


def read_similarity(folder: Path) -> SimilarityName:
    """Reads the similarity for which a model was trained; without one it is the cosine."""
    path = folder / PROMPTS
    name = _read(path, _Prompts).similarity_fn_name if path.is_file() else None
    if name not in (None, "cosine", "dot"):
        warnings.warn(
            f"{path}: similarity_fn_name {name!r} is not supported, so texts are compared by the "
            "cosine.",
            stacklevel=2,
        )
    return "dot" if name == "dot" else "cosine"


def _static_embedding(path: Path, folder: Path, *, normalize: bool) -> SentenceModules:
    """The modules of a table: only its tokenizer may cut texts, not counting special tokens."""
    tokenizer = _read(folder / "tokenizer.json", _WholeTokenizer, limit=_TOKENIZER_LIMIT)
    truncation = tokenizer.truncation
    return SentenceModules(
        transformer=folder,
        pooling="mean",
        pooling_file=path,
        behind_pooling=(),
        normalize=normalize,
        max_length=None if truncation is None else truncation.max_length + 2,
        static=True,
    )


def _cross_encoder(folder: Path) -> SentenceModules | None:
    """A cross-encoder as version 6 writes it; None if the Transformer is of another kind."""
    settings = _settings(folder)
    if not any(each.transformer_task == "sequence-classification" for each in settings):
        return None
    return SentenceModules(
        transformer=folder,
        pooling=None,
        pooling_file=folder / "config.json",
        behind_pooling=(),
        normalize=False,
        max_length=_max_length(folder),
        lower_case=any(each.do_lower_case for each in settings),
    )


def _settings(folder: Path) -> list[_Transformer]:
    """The settings of the Transformer; older folders name the file after the Transformer's kind."""
    return [_read(path, _Transformer) for path in sorted(folder.glob("sentence_*_config.json"))]


def _max_length(folder: Path) -> int | None:
    """The most tokens of a text that the settings state; None if they state none.

    The settings are those of the Transformer, or since version 6 those of the tokenizer.
    """
    path = folder / "tokenizer_config.json"
    limit = _read(path, _Tokenizer).model_max_length if path.is_file() else None
    for settings in _settings(folder):
        others = {*settings.config_args, *settings.tokenizer_args} - _HARMLESS
        others |= {
            name
            for name, value in settings.text_processing.items()
            if name != "max_length" and value not in _USUAL.get(name, ())
        }
        lengths = {
            "query_length": settings.query_length,
            "document_length": settings.document_length,
        }
        others |= {name for name, value in lengths.items() if value is not None}
        if others:
            raise ValueError(
                f"{folder}: expected only settings of the Transformer that use_st5 reads, found "
                f"{listed(sorted(others))}. Write them into config.json or tokenizer_config.json, "
                "or remove them, if the model was trained without them."
            )
        if (given := settings.text_processing.get("max_length")) is not None:
            return check_record(given, Tokens, where=f"{folder}: max_length", remedy=_REMEDY)
        if settings.max_seq_length is not None:
            return settings.max_seq_length
    # A tokenizer without a limit states 10³⁰.
    return int(limit) if limit is not None and 1 <= limit <= _LONGEST else None


def _pooling(settings: dict[str, Any]) -> str:
    """The pooling mode; before version 6 each mode had a switch of its own."""
    prefix = "pooling_mode_"
    modes = settings.get("pooling_mode") or sorted(
        name.removeprefix(prefix)
        for name, value in settings.items()
        if name.startswith(prefix) and value
    )
    names = map(str, modes if isinstance(modes, list) else [modes])
    return "+".join(name.removesuffix("_tokens").removesuffix("_token") for name in names)


def _dense(folder: Path) -> LayerModule:
    path = folder / "config.json"
    settings = _read(path, _Dense)
    return LayerModule(
        where=path,
        width=settings.out_features,
        bias=settings.bias,
        activation=settings.activation_function.split(".")[-1][:200],
        source=SafetensorsSource(folder),
    )


def _layer_norm(folder: Path) -> LayerModule:
    path = folder / "config.json"
    width = _read(path, _LayerNorm).dimension
    return LayerModule(where=path, width=width, source=SafetensorsSource(folder))


def _read(path: Path, kind: type[Kind], *, limit: int = LIMIT) -> Kind:
    return read_record(path, kind, remedy=_REMEDY, limit=limit)
