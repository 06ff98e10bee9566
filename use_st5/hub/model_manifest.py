"""The file `use_st5.json` of an exported model: its facts and its files."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import msgspec

import use_st5
from use_st5.io.files import (
    FILE_LIST,
    as_written,
    atomic_path,
    file_sha256,
    names_in,
    remote_path,
    sole_writer,
)
from use_st5.io.records import Count, InnerPath, Positive, read_record

if TYPE_CHECKING:
    import tensorflow as tf

# A folder with this file is a SavedModel.
SAVED_MODEL_FILE = "saved_model.pb"

FILE_NAME = FILE_LIST  # "use_st5.json"
CARD_NAME = "README.md"
# The graph for ONNX Runtime, if one lies next to the model.
ENGINE_NAME = "engine.onnx"
FORMAT = 1

# The similarities for which models are trained.
SimilarityName = Literal["cosine", "dot"]

_LISTED = 5

# fingerprint.pb holds a random number; the others are about the model, or made from it.
_NOT_THE_MODEL = {FILE_NAME, CARD_NAME, ENGINE_NAME, "fingerprint.pb"}

# The largest size of the manifest in bytes: enough for thousands of files.
_LIMIT = 2**22

# The facts of a manifest that are still true when the model's weights have changed.
_KEPT = (
    *("name", "max_length", "precision", "metadata", "family", "config", "tokenizer"),
    *("prompts", "default_prompt_name", "similarity_fn_name"),
)

Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class FileEntry(TypedDict):
    """Size and hash of a file."""

    bytes: Count
    sha256: Sha256


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelManifest:
    """The description of an exported encoder in its folder.

    Attributes:
        name: Name of the model.
        dimension: Dimension of the sentence vector.
        max_length: Tokens beyond this number are cut; None if there is no limit.
        precision: "float32", "bfloat16" or "int8", how large matrices are stored; "unknown" for a
            SavedModel of another origin that was saved again.
        parameters: Number of the model's weights, including those of the embedding table.
        trainable_parameters: Number of the weights that fine-tuning changes.
        versions: Version of each package that wrote the model, by package name.
        files: For each file (path with "/" relative to the folder): its `bytes` and `sha256`.
        model_hash: sha256 over the files that make the model; equal for moved and copied folders,
            so that caches may be keyed by it.
        metadata: Free facts, such as `languages`, `license` and scores.
        family: The family of encoders, as `use_st5.models.family` lists them; None for an unknown
            family, and in files that versions before 0.2 wrote.
        config: The settings from which its family builds the Keras model.
        tokenizer: The kind of its tokenizer, as its family lists them.
        texts: How many texts it reads at once: 1, or 2 if it compares a pair.
        prompts: Texts that are put before queries, documents and the like, by name.
        default_prompt_name: The prompt for texts if the caller names none; None: no prompt.
        similarity_fn_name: The similarity for which the model was trained.
        format: Version of this file's layout.
    """

    name: str
    dimension: Positive
    max_length: Positive | None
    precision: Literal["float32", "bfloat16", "int8", "unknown"]
    parameters: Count
    trainable_parameters: Count
    versions: dict[str, str]
    files: dict[InnerPath, FileEntry]
    model_hash: Sha256
    metadata: dict[str, Any]
    family: str | None = None
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    tokenizer: str | None = None
    texts: Literal[1, 2] = 1
    prompts: dict[str, str] = dataclasses.field(default_factory=dict)
    default_prompt_name: str | None = None
    similarity_fn_name: SimilarityName = "cosine"
    format: int = FORMAT

    @property
    def content_hash(self) -> str:
        """What `model_hash` must be: it follows from the sha256 of the files."""
        return _content_hash(self.files)

    @property
    def size_bytes(self) -> int:
        """Size of all files together."""
        return sum(entry["bytes"] for entry in self.files.values())

    def write(self, folder: Path) -> None:
        """Writes the manifest into `folder`."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        (folder / FILE_NAME).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> ModelManifest | None:
        """Reads the manifest of a folder; None if there is none (a foreign SavedModel)."""
        return _read(folder) if (folder / FILE_NAME).is_file() else None

    def check_sizes(self, folder: Path) -> None:
        """Compares the sizes of the files: quick, and finds incomplete copies.

        The card is left out, because its owner may edit it.
        """
        for name, entry in self.files.items():
            path, expected = folder / name, f"{entry['bytes']} bytes"
            size = f"{path.stat().st_size} bytes" if path.is_file() else "no such file"
            if size != expected and name != CARD_NAME:
                raise ValueError(f"Expected {expected} in {path}, found {size}.")

    def check_contents(self, folder: Path, names: Collection[str] | None = None) -> None:
        """Compares the sizes of all files, and the sha256 of some (None: all): reads these."""
        self.check_sizes(folder)
        for name, entry in self.files.items():
            if name in (self.files if names is None else names) and name != CARD_NAME:
                digest, expected = file_sha256(folder / name), entry["sha256"]
                if digest != expected:
                    raise ValueError(f"Expected sha256 {expected} of {name}, found {digest}.")


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Checks that a new model in a folder replaces nothing but an older model.

    Every writer of models calls this before any work. A remote folder (gs:// and others) may
    contain other files in addition to the model: they stay.
    """
    names, content, manifest = names_in(path), "", None
    if FILE_NAME in names:
        with contextlib.suppress(ValueError):
            manifest = _read(path)
    if remote_path(path):
        content = f"{names[:3]} without a {FILE_NAME} of a model" if names and not manifest else ""
    elif names:
        ours = {FILE_NAME, *manifest.files} if manifest and SAVED_MODEL_FILE in names else set()
        content = other_names(Path(os.path.realpath(path)), ours)
    elif Path(path).is_file():
        content = "a file"
    if content:
        where = f"{as_written(path)} to be empty or to contain only a model of use_st5"
        raise FileExistsError(f"Expected {where}. Found {content}. Move this away.")


def _read(folder: str | os.PathLike[str]) -> ModelManifest:
    remedy, path = "Copy or export the model again.", f"{as_written(folder)}/{FILE_NAME}"
    return read_record(path, ModelManifest, remedy=remedy, version=FORMAT, limit=_LIMIT)


def other_names(folder: Path, known: Collection[str]) -> str:
    """Names in a folder to which files belong that are not `known` (relative, with "/")."""
    paths = (each for each in folder.rglob("*") if each.is_symlink() or not each.is_dir())
    files = (each.relative_to(folder) for each in paths)
    names = sorted({name.parts[0] for name in files if name.as_posix() not in known})
    if not known and not names:
        return "folders without a file"
    return ", ".join([*names[:_LISTED], *(["…"] if len(names) > _LISTED else [])])


def read_card(folder: Path) -> str:
    """Returns the model card of a folder, Markdown; empty if there is none."""
    path = folder / CARD_NAME
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def short_hash(identity: str) -> str:
    """The beginning of a model's hash for messages, with "-int8" if it has that."""
    digest, dash, suffix = identity.partition("-")
    return f"{digest[:12]}{dash}{suffix}"


def describe_files(folder: Path) -> tuple[dict[InnerPath, FileEntry], str]:
    """The `files` and the `model_hash` of the model in `folder`."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / FILE_NAME:
            entry = FileEntry(bytes=path.stat().st_size, sha256=file_sha256(path))
            files[InnerPath(path.relative_to(folder).as_posix())] = entry
    return files, _content_hash(files)


def _content_hash(files: Mapping[InnerPath, FileEntry]) -> str:
    digest = hashlib.sha256()
    for name, entry in files.items():
        if name not in _NOT_THE_MODEL:
            digest.update(f"{name}\0{entry['sha256']}\n".encode())
    return digest.hexdigest()


def copy_model(folder: Path, target: Path, manifest: ModelManifest | None) -> None:
    """Copies the files that a manifest names into a new folder, without one all files."""
    if manifest is not None:
        for name in (FILE_NAME, *manifest.files):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / name, target / name)
        return
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{path}: found a link to {path.resolve()}. Copy it first by cp -rL.")
    shutil.copytree(folder, target)


def write_folder(
    root: Any,
    signatures: dict[str, Any],
    path: str | os.PathLike[str],
    *,
    facts: dict[str, Any],
    card: str,
) -> ModelManifest:
    """Writes a SavedModel's root with its card and its description, in one step.

    `facts` are the fields of `ModelManifest` that are not about files and versions.
    """
    import keras  # Readers need neither.
    import tensorflow as tf

    packages = {"use_st5": use_st5, "tensorflow": tf, "keras": keras}
    with sole_writer(path), atomic_path(path) as temporary:
        check_replaceable(path)
        tf.saved_model.save(root, os.fspath(temporary), signatures=signatures)
        folder = Path(temporary)
        if card:
            (folder / CARD_NAME).write_text(card, encoding="utf-8")
        files, model_hash = describe_files(folder)
        versions = {name: package.__version__ for name, package in packages.items()}
        manifest = ModelManifest(**facts, versions=versions, files=files, model_hash=model_hash)
        manifest.write(folder)
    return manifest


def write_again(
    loaded: Any, source: Path, path: str | os.PathLike[str], *, dimension: int
) -> ModelManifest:
    """Writes a loaded SavedModel as it is now, with the card and the facts of its `source`."""
    manifest = ModelManifest.read(source)
    facts: dict[str, Any] = {
        "dimension": dimension,
        "parameters": count_weights(getattr(loaded, "variables", ())),
        "trainable_parameters": count_weights(getattr(loaded, "trainable_variables", ())),
    }
    if manifest is None:
        facts |= {"name": source.name, "max_length": None, "precision": "unknown", "metadata": {}}
    else:
        facts |= {name: getattr(manifest, name) for name in _KEPT}
    return write_folder(loaded, loaded.signatures, path, facts=facts, card=read_card(source))


def count_weights(variables: Sequence[tf.Variable]) -> int:
    """Counts the weights that the variables hold, without states of seed generators (int64)."""
    return sum(v.shape.num_elements() for v in variables if v.dtype != "int64")
