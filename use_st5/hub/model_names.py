"""Model names: bundled models, folders, `hf://ORG/NAME@REVISION`, `kaggle://…`, archives by URL.

A record in the cache keeps what was downloaded, so that later runs need no network and get the same
files, until `use-st5 cache --clear NAME` removes the record. TensorFlow is imported only to convert
a checkpoint.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

import use_st5
from use_st5.hub.cache import MODELS, NAMES, cache_folder, kept_content
from use_st5.hub.model_manifest import SAVED_MODEL_FILE
from use_st5.io.files import atomic_path, cached_path, names_in
from use_st5.io.records import read_record

# `Path` makes one slash of two.
_NAME = re.compile(r"(hf|kaggle|https?):/{1,2}(?=[^/])(.+)", re.DOTALL)
# A name that a model of Hugging Face's hub may have, with or without its owner.
_HUB_NAME = re.compile(r"(?:([A-Za-z0-9][\w.-]*)/)?([A-Za-z0-9][\w.-]*)")
_FORMAT = 1
# A folder with one of these files may be a checkpoint that `TrainableEncoder.load` reads.
_CHECKPOINT_FILES = ("config.json", "modules.json", "bert_config.json", "checkpoint")
_PACKAGE = Path(__file__).resolve().parents[1]


def bundled_names() -> tuple[str, ...]:
    """Returns the names of the bundled models, sorted; empty if there are none."""
    return tuple(sorted(file.parent.name for file in _root().glob(f"*/{SAVED_MODEL_FILE}")))


def bundled_folder(name: str) -> Path:
    """Returns the folder of a bundled SavedModel; `name` is one of `bundled_names()`."""
    names = bundled_names()
    if name not in names:
        choices = ", ".join(names) or "none"
        raise FileNotFoundError(f"{name!r} is no bundled model. Bundled here: {choices}.")
    return _root() / name


def download_advice(name: str) -> str:
    """Advises what to write instead of a name; "" for a path that cannot be a name of a hub."""
    if name in bundled_names():
        return "This is a bundled model. `use-st5 export` writes its folder."
    match = _HUB_NAME.fullmatch(name)
    hub_name = match and f"hf://{match[1] or 'OWNER'}/{match[2]}"
    return f"If this is a model of Hugging Face's hub, write {hub_name}" if hub_name else ""


def _root() -> Path:
    """Returns the folder of the bundled models: inside an installed wheel, else in a checkout."""
    installed = _PACKAGE / "saved_models"
    return installed if installed.is_dir() else _PACKAGE.parent / "saved_models"


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A model that was downloaded under a name.

    Attributes:
        name: Its name, as the user writes it.
        identity: The commit, version or hash of what was downloaded.
        folder: The folder with its files.
    """

    name: str
    identity: str
    folder: str
    format: int = _FORMAT

    @property
    def exact_name(self) -> str:
        """The name with the identity of the download: it always means the same files."""
        return f"{self.name.partition('@')[0]}@{self.identity}"


def model_name(path: str | os.PathLike[str]) -> str | None:
    """Returns a name as the user writes it; None if `path` is a path or a bundled model.

    Examples:
        >>> model_name(Path("hf://sentence-transformers/all-MiniLM-L6-v2"))
        'hf://sentence-transformers/all-MiniLM-L6-v2'
    """
    found = _NAME.fullmatch(os.fspath(path))
    return f"{found[1]}://{found[2]}" if found else None


def short_name(path: str | os.PathLike[str]) -> str:
    """Returns a name without place, owner and revision; for a path, the name of the folder."""
    name = model_name(path)
    if name is None:
        return Path(path).resolve().name
    name = name.partition("?")[0]
    last = re.sub(r"(@.*|\.tar\.gz|\.tgz|\.zip|/\d+)$", "", name).split("/")[-1]
    return re.sub(r"[^\w.-]", "_", last)


def local_source(path: str | os.PathLike[str]) -> Path:
    """Returns the local path of a model or checkpoint, given by a name or by any path."""
    name = model_name(path)
    return cached_path(path) if name is None else Path(fetch(name).folder)


def fetch(name: str) -> Fetched:
    """Downloads a model by the name that `model_name` returns, or finds the earlier download."""
    path = _record(name)
    with contextlib.suppress(OSError, ValueError):
        record = read_record(path, Fetched, remedy="", version=_FORMAT)
        if record.name == name and Path(record.folder).is_dir():
            return record
    from use_st5.hub import client  # Only a download needs it.

    sources = {"hf": client.from_hugging_face, "kaggle": client.from_kaggle}
    folder, identity = sources.get(name.partition(":")[0], client.from_archive)(name)
    record = Fetched(name=name, identity=identity, folder=os.fspath(folder))
    with atomic_path(path) as temporary:
        temporary.write_bytes(msgspec.json.encode(record))
    return record


def forget(name: str) -> bool:
    """Removes the record of a name: its next use asks the hub again. Says if there was one."""
    path = _record(name)
    existed = path.is_file()
    path.unlink(missing_ok=True)
    return existed


def recorded() -> list[Fetched]:
    """Returns the records of all names that were used; damaged records are left out."""
    records = []
    for path in sorted(cache_folder(NAMES).glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            records.append(read_record(path, Fetched, remedy="", version=_FORMAT))
    return records


def _record(name: str) -> Path:
    # Another server may have other files under the same name.
    server = os.environ.get("HF_ENDPOINT", "") if name.startswith("hf:") else ""
    digest = hashlib.sha256(f"{server}\n{name}".encode()).hexdigest()[:16]
    return cache_folder(NAMES) / f"{digest}.json"


def model_folder(name_or_folder: str | os.PathLike[str]) -> Path:
    """Returns the folder of a SavedModel, given as a folder, a bundled name, or a name of a hub.

    A folder that holds a SavedModel comes first, so that your own model may have the name of a
    bundled one. A checkpoint, in a folder or of a hub (`hf://ORG/NAME`), is converted once, into
    the cache.
    """
    given = os.fspath(name_or_folder)
    if name := model_name(given):
        fetched = fetch(name)
        folder = Path(fetched.folder)
        if not (folder / SAVED_MODEL_FILE).is_file():
            # The identity alone does not suffice: for Kaggle it may be a small number.
            exact_name, metadata = fetched.exact_name, {"source": fetched.exact_name}
            folder = _converted(folder, short_name(name), exact_name, exact_name, metadata)
        return folder.resolve()
    folder = cached_path(given).expanduser()
    if (folder / SAVED_MODEL_FILE).is_file():
        return folder.resolve()
    if given in bundled_names():
        return bundled_folder(given).resolve()
    if is_checkpoint(folder):
        folder = folder.resolve()
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        states = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
        identity = repr((str(folder), states))
        return _converted(folder, folder.name, identity, str(folder), {}).resolve()
    if folder.exists():
        content = sorted(names_in(folder))[:12] if folder.is_dir() else "a file"
        raise FileNotFoundError(f"{folder}: expected {SAVED_MODEL_FILE} in it, found {content}.")
    names = bundled_names()
    # Names of models on a hub contain one of these characters; such models are checkpoints.
    advice = download_advice(given) if {"/", "-"} & set(given) else ""
    bundled = f"Bundled models: {', '.join(names) or 'none'}."
    said = f"{given!r} is neither a folder nor a name of a model. {bundled} {advice}"
    raise FileNotFoundError(said.strip())


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder has the files of another library's checkpoint, and no SavedModel."""
    has_files = any((folder / name).is_file() for name in _CHECKPOINT_FILES)
    return has_files and not (folder / SAVED_MODEL_FILE).is_file()


def _converted(
    folder: Path, name: str, identity: str, origin: str, metadata: Mapping[str, str]
) -> Path:
    """Returns the SavedModel of a checkpoint, from the cache or converted now."""

    def convert(target: Path) -> None:
        encoder = use_st5.TrainableEncoder.load(folder)
        encoder.name = name
        encoder.metadata.update(metadata)
        encoder.export(target)

    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return kept_content(MODELS, f"{name}-{digest}-{use_st5.__version__}", origin, convert)
