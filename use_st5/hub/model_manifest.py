"""The file `use_st5.json` of an exported model: its facts and its files."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec

from use_st5.hub.bundled import SAVED_MODEL_FILE
from use_st5.io.files import file_sha256
from use_st5.io.records import Count, InnerPath, Positive, read_record
from use_st5.io.remote_files import names_in, remote_path, unfinished_upload

FILE_NAME = "use_st5.json"
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
        """Reads the manifest of a folder; None if there is none (a foreign SavedModel).

        Raises:
            ValueError: The file is damaged, or of a later format than this version knows.
        """
        path = folder / FILE_NAME
        if not path.is_file():
            return None
        return _read(path)

    def check_sizes(self, folder: Path) -> None:
        """Compares the sizes of the files: quick, and finds incomplete copies.

        The card is left out, because its owner may edit it.
        """
        for name in self._checked_names():
            path, expected = folder / name, self.files[name]["bytes"]
            size = f"{path.stat().st_size} bytes" if path.is_file() else "no such file"
            if size != f"{expected} bytes":
                raise ValueError(
                    f"Expected {expected} bytes in {path}, found {size}: the copy is "
                    "incomplete or the file was changed. Copy or export the model again."
                )

    def check_contents(self, folder: Path, names: Collection[str] | None = None) -> None:
        """Compares the sizes of all files, and the sha256 of some: reads these.

        Args:
            folder: The folder of the model.
            names: The files whose sha256 is compared; None: all.
        """
        self.check_sizes(folder)
        for name in self._checked_names() if names is None else names:
            digest, expected = file_sha256(folder / name), self.files[InnerPath(name)]["sha256"]
            if digest != expected:
                raise ValueError(
                    f"Expected sha256 {expected} of {folder / name}, found {digest}: the file was "
                    "changed. Copy or export the model again."
                )

    def _checked_names(self) -> list[InnerPath]:
        return [name for name in self.files if name != CARD_NAME]


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Checks that a new model in a folder replaces nothing but an older model.

    Every writer of models calls this before any work. A remote folder (gs:// and others) may
    contain other files in addition to the model: they stay.

    Raises:
        FileExistsError: The folder holds anything else, or it is a file.
    """
    if remote_path(path):
        older_files(path)
        return
    folder = Path(os.path.realpath(path))
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    content = "a file"
    if folder.is_dir():
        manifest = None
        if (folder / SAVED_MODEL_FILE).is_file():
            with contextlib.suppress(ValueError):
                manifest = ModelManifest.read(folder)
        content = other_names(folder, {FILE_NAME, *manifest.files} if manifest else set())
    if content:
        raise FileExistsError(
            f"Expected {folder} to be empty or to contain only a model of use_st5, because it "
            f"would be replaced. Found {content}. Move this away, or choose another folder."
        )


def older_files(path: str | os.PathLike[str]) -> list[str] | None:
    """The files of the model in a remote folder, for `atomic_path`; None for a local folder.

    Raises:
        FileExistsError: The folder holds files, and none of them says that a model is there.
    """
    remote = remote_path(path)
    if remote is None:
        return None
    names = names_in(remote)
    content = f"{names[:3]} without {FILE_NAME}"
    try:
        older = unfinished_upload(remote)
        if FILE_NAME in names:
            older += [FILE_NAME, *_read(f"{remote}/{FILE_NAME}").files]
        if older or not names:
            return older
    except ValueError as error:
        content = str(error)
    raise FileExistsError(
        f"Expected {remote} to be empty or to contain a model of use_st5, because it would be "
        f"replaced. Found {content}. Choose another folder."
    )


def _read(path: str | Path) -> ModelManifest:
    remedy = "Copy or export the model again."
    return read_record(path, ModelManifest, remedy=remedy, version=FORMAT, limit=_LIMIT)


def other_names(folder: Path, known: Collection[str]) -> str:
    """Names in a folder to which files belong that are not known; empty if there are none.

    Args:
        folder: The folder.
        known: The names of the known files, with "/", relative to the folder.
    """
    paths = (each for each in folder.rglob("*") if each.is_symlink() or not each.is_dir())
    files = (each.relative_to(folder) for each in paths)
    names = sorted({name.parts[0] for name in files if name.as_posix() not in known})
    if not known and not names:
        return "folders without a file"
    rest = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + rest


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
    """Copies the files of a model into a new folder, links as the files that they lead to.

    With a manifest, only the files that it names are copied. A SavedModel of another origin has
    no list of its files, so its whole folder is copied.

    Raises:
        ValueError: A link of a folder without a manifest leads out of it.
    """
    if manifest is not None:
        for name in (FILE_NAME, *manifest.files):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / name, target / name)
        return
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(
                f"{path}: expected a file of the model, found a link to {path.resolve()}. Copy "
                f"the folder with the linked files first, for example: cp -rL {folder} COPY"
            )
    shutil.copytree(folder, target)
