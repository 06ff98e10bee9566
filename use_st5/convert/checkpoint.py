"""Opens a checkpoint of another library, without reading its tensors yet."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from use_st5.convert.sentence_transformers import (
    MODULES,
    SentenceModules,
    read_modules,
    read_prompts,
    read_similarity,
)
from use_st5.convert.sources import SafetensorsSource, TensorFlowSource, tensorflow_prefix
from use_st5.convert.t5x_source import INDEX, T5XSource
from use_st5.convert.weights import WeightSource, listed
from use_st5.hub.model_manifest import SimilarityName
from use_st5.hub.model_names import download_advice
from use_st5.io.records import check_record, read_record

Format = Literal["sentence-transformers", "Hugging Face", "T5X", "TensorFlow"]
Kind = TypeVar("Kind")

CONFIG = "config.json"
# The file of a model's settings in the archives of google-research/bert.
BERT_CONFIG = "bert_config.json"

# The first byte of a map of up to 15 entries, or of a longer map: T5X's files begin with a map,
# TensorFlow's never do.
_MAPS = {*range(0x80, 0x90), 0xDE, 0xDF}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """An opened checkpoint: a family recognises it by its settings, and reads its tensors.

    Attributes:
        where: Its folder, file or prefix.
        format: The name of its format.
        source: Its tensors by name; for sentence-transformers, those of the first module.
        folder: The folder of `config.json` and the vocabulary; None if the format has neither.
        settings: The content of `config.json`, which a StaticEmbedding may lack; for a TensorFlow
            checkpoint, that of `bert_config.json` next to it, and the `model_type` "bert".
        modules: The modules of a folder of sentence-transformers.
        pooling: The pooling that it states, or that was chosen; None: the family's usual one.
        vocabulary: The file of the vocabulary that was chosen; None: the checkpoint's, or the
            family's usual one if that fits.
    """

    where: Path
    format: Format
    source: WeightSource
    folder: Path | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    modules: SentenceModules | None = None
    pooling: str | None = None
    vocabulary: Path | None = None

    def settings_as(self, kind: type[Kind], *, remedy: str) -> Kind:
        """The settings as a record."""
        return check_record(self.settings, kind, where=self.settings_file, remedy=remedy)

    @property
    def settings_file(self) -> str:
        """The file of the settings, for messages."""
        if self.format == "TensorFlow":
            return os.fspath(self.beside / BERT_CONFIG)
        return os.fspath((self.folder or self.where) / CONFIG)

    @property
    def beside(self) -> Path:
        """The folder in which a vocabulary is expected."""
        return self.folder or Path(self.source.where).parent

    def chosen(
        self,
        *,
        pooling: str | None = None,
        vocabulary: str | os.PathLike[str] | None = None,
    ) -> Self:
        """The checkpoint with a pooling, if it states none, and another vocabulary."""
        if pooling is not None and self.pooling is not None:
            where = self.where / MODULES
            raise ValueError(f"{where}: sets the pooling. Leave out pooling={pooling!r}.")
        path = None if vocabulary is None else Path(vocabulary)
        return dataclasses.replace(self, pooling=pooling or self.pooling, vocabulary=path)

    @property
    def max_length(self) -> int | None:
        """The limit of sentence-transformers in tokens; None if none is stated."""
        return None if self.modules is None else self.modules.max_length

    @property
    def prompts(self) -> tuple[dict[str, str], str | None]:
        """The prompts by name, and the name of the default one, such as "query" → "query: "."""
        return ({}, None) if self.modules is None else read_prompts(self.where, self.modules)

    @property
    def similarity_fn_name(self) -> SimilarityName:
        """The similarity for which the model was trained; only sentence-transformers states it."""
        return "cosine" if self.modules is None else read_similarity(self.where)

    def summary(self) -> str:
        """A summary of the checkpoint, for messages."""
        if self.folder is not None:
            return f"{self.format} with model_type {self.settings.get('model_type')!r:.200}"
        return f"{self.format} with the tensors {listed(sorted(self.source.shapes()))}"


def shape_from(settings: Any, shape: type[Kind], **changes: Any) -> Kind:
    """A dataclass with those of its fields that the settings have, and with other values."""
    names = {field.name for field in dataclasses.fields(shape)}  # type: ignore[arg-type]
    fields = {name: getattr(settings, name) for name in names if hasattr(settings, name)}
    return shape(**{**fields, **changes})


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Detects the format of a checkpoint, and reads names, shapes and settings.

    Args:
        path: A folder, a file, or the prefix of a TensorFlow checkpoint.
    """
    path = Path(path)
    if (path / MODULES).is_file() or (path / CONFIG).is_file():
        modules = read_modules(path) if (path / MODULES).is_file() else None
        folder = modules.transformer if modules else path
        # Of StaticEmbeddings, only model2vec's have a config.json.
        bare = modules is not None and modules.static and not (folder / CONFIG).is_file()
        return Checkpoint(
            where=path,
            format="sentence-transformers" if modules else "Hugging Face",
            folder=folder,
            settings={} if bare else _read_settings(folder / CONFIG),
            source=SafetensorsSource(folder),
            modules=modules,
            pooling=modules.pooling if modules else None,
        )
    if _begins_as_map(path / INDEX) or _begins_as_map(path):
        return Checkpoint(where=path, format="T5X", source=T5XSource(path))
    if tensorflow_prefix(path) or (path / BERT_CONFIG).is_file():
        source = TensorFlowSource(path)
        config = Path(source.where).parent / BERT_CONFIG
        settings = {**_read_settings(config), "model_type": "bert"} if config.is_file() else {}
        return Checkpoint(where=path, format="TensorFlow", source=source, settings=settings)
    if not path.exists():
        advice = download_advice(os.fspath(path))
        raise FileNotFoundError(f"{path}: there is nothing of this name. {advice}".rstrip())
    formats = "Hugging Face, sentence-transformers, T5X (checkpoint_N) or TensorFlow (model.ckpt-N)"
    raise ValueError(f"{path}: expected a checkpoint of {formats}.")


def _read_settings(path: Path) -> dict[str, Any]:
    """The settings in a file; families know a model by two of them, whose types are checked."""
    remedy = "Give the folder of a model as transformers saves it, or copy it again."
    settings = read_record(path, dict[str, Any], remedy=remedy)
    kinds: dict[str, Any] = {"model_type": str | None, "architectures": list[str] | None}
    for name, kind in kinds.items():
        check_record(settings.get(name), kind, where=f"{path}: {name}", remedy=remedy)
    return settings


def _begins_as_map(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return (file.read(1) or b"\0")[0] in _MAPS
