"""Opens a checkpoint of another library, without reading its tensors yet."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from use_st5.convert.safetensors_source import SafetensorsSource
from use_st5.convert.sentence_transformers import (
    MODULES,
    Prompts,
    SentenceModules,
    read_modules,
    read_prompts,
    read_similarity,
)
from use_st5.convert.t5x_source import INDEX, T5XSource
from use_st5.convert.tensorflow_source import INDEX as TENSORFLOW_INDEX
from use_st5.convert.tensorflow_source import TensorFlowSource, is_tensorflow_checkpoint
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


class _Settings(msgspec.Struct):
    """The settings by which families know a model."""

    model_type: str | None = None
    architectures: list[str] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """An opened checkpoint: a family recognises it by its settings, and reads its tensors.

    Attributes:
        where: Its folder, file or prefix.
        format: The name of its format.
        source: Its tensors by name; for sentence-transformers, those of the first module.
        folder: The folder of `config.json` and the vocabulary; None if the format has neither.
        settings: The content of `config.json`, which a StaticEmbedding lacks; for a TensorFlow
            checkpoint, that of `bert_config.json` next to it, and the `model_type` "bert".
        modules: The modules of a folder of sentence-transformers.
    """

    where: Path
    format: Format
    source: WeightSource
    folder: Path | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    modules: SentenceModules | None = None

    def settings_as(self, kind: type[Kind], *, remedy: str) -> Kind:
        """The settings as a record.

        Raises:
            ValueError: The settings do not fit the record.
        """
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

    def pooling(self, requested: str | None) -> str | None:
        """The pooling that the checkpoint states, or else the argument.

        Raises:
            ValueError: The checkpoint states it, and the argument is not None.
        """
        if self.modules is None or self.modules.pooling is None:
            return requested
        if requested is not None:
            raise ValueError(
                f"{self.where / MODULES}: expected no pooling as an argument, because this file "
                f"sets it, received {requested!r}. Leave it out."
            )
        return self.modules.pooling

    @property
    def max_length(self) -> int | None:
        """The limit of sentence-transformers in tokens; None if none is stated."""
        return None if self.modules is None else self.modules.max_length

    @property
    def prompts(self) -> Prompts:
        """Texts before queries and documents; only sentence-transformers has them."""
        return Prompts({}, None) if self.modules is None else read_prompts(self.where, self.modules)

    @property
    def similarity_fn_name(self) -> SimilarityName:
        """The similarity for which the model was trained; only sentence-transformers states it."""
        return "cosine" if self.modules is None else read_similarity(self.where)

    def summary(self) -> str:
        """A summary of the checkpoint, for messages."""
        if self.folder is not None:
            return f"{self.format} with model_type {self.settings.get('model_type')!r:.200}"
        return f"{self.format} with the tensors {listed(sorted(self.source.shapes()))}"


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Detects the format of a checkpoint, and reads names, shapes and settings.

    Args:
        path: A folder, a file, or the prefix of a TensorFlow checkpoint.

    Raises:
        FileNotFoundError: There is no checkpoint, or one of its files is missing.
        ValueError: The format is unknown, or the checkpoint is damaged.
    """
    path = Path(path)
    if (path / MODULES).is_file():
        modules = read_modules(path)
        if modules.static:
            return Checkpoint(
                where=path,
                format="sentence-transformers",
                source=SafetensorsSource(modules.transformer),
                folder=modules.transformer,
                modules=modules,
            )
        return _of_folder(path, modules.transformer, modules)
    if (path / CONFIG).is_file():
        return _of_folder(path, path)
    if _begins_as_map(path / INDEX) or _begins_as_map(path):
        return Checkpoint(where=path, format="T5X", source=T5XSource(path))
    if is_tensorflow_checkpoint(path) or (path / BERT_CONFIG).is_file():
        return _of_tensorflow(path)
    if not path.exists():
        advice = download_advice(os.fspath(path))
        raise FileNotFoundError(
            f"{path}: expected a checkpoint, found nothing of this name. {advice}".rstrip()
        )
    raise ValueError(
        f"{path}: expected a folder of Hugging Face or sentence-transformers (config.json, "
        "modules.json), a T5X checkpoint (a folder checkpoint_N or one file), or a TensorFlow "
        "checkpoint of Mesh TensorFlow, google-research/bert or the Model Garden (model.ckpt-N)."
    )


def _of_folder(path: Path, folder: Path, modules: SentenceModules | None = None) -> Checkpoint:
    """Opens a model as transformers saves it, alone or as the first of several modules."""
    remedy = "Give the folder of a model as transformers saves it."
    return Checkpoint(
        where=path,
        format="Hugging Face" if modules is None else "sentence-transformers",
        folder=folder,
        settings=_read_settings(folder / CONFIG, remedy),
        source=SafetensorsSource(folder),
        modules=modules,
    )


def _of_tensorflow(path: Path) -> Checkpoint:
    """Opens a checkpoint of TensorFlow, with the settings of a BERT if they are next to it.

    The archives of google-research/bert have one checkpoint, but no file `checkpoint`.
    """
    index_files = [] if is_tensorflow_checkpoint(path) else [*path.glob(f"*{TENSORFLOW_INDEX}")]
    source = TensorFlowSource(index_files[0] if len(index_files) == 1 else path)
    config = Path(source.where).parent / BERT_CONFIG
    settings: dict[str, Any] = {}
    if config.is_file():
        remedy = "Copy it again from the model's archive."
        settings = {**_read_settings(config, remedy), "model_type": "bert"}
    return Checkpoint(where=path, format="TensorFlow", source=source, settings=settings)


def _read_settings(path: Path, remedy: str) -> dict[str, Any]:
    settings = read_record(path, dict[str, Any], remedy=remedy)
    check_record(settings, _Settings, where=os.fspath(path), remedy=remedy)
    return settings


def _begins_as_map(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return (file.read(1) or b"\0")[0] in _MAPS
