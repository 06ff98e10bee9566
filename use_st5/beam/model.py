"""The model of a corpus: described when a pipeline is built, loaded in each worker process."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import use_st5
from use_st5._imports import require
from use_st5.encode.options import SentenceTransformersNames, chosen_prompt
from use_st5.hub.model_manifest import ModelManifest, describe_files
from use_st5.hub.model_names import model_folder
from use_st5.io.files import check_inner_names, joined

if TYPE_CHECKING:
    from use_st5.encode.encoder import SentenceEncoder


@dataclass(frozen=True)
class ModelSource:
    """The place of a model, the hash of its files, and the prompt for each text.

    Attributes:
        place: The name of a bundled model, a folder, or a URL that Beam's file systems read.
        name: The model's name.
        model_hash: The same as `SentenceEncoder.identity`.
        prompt: The text that is put before each text.
    """

    place: str
    name: str
    model_hash: str
    prompt: str = ""

    @classmethod
    def of(
        cls, place: str, *, prompt: str | None = None, prompt_name: str | None = None
    ) -> ModelSource:
        """Reads a model's files, without TensorFlow; the arguments are those of `embed_texts`."""
        folder = _local_folder(place)
        manifest = ModelManifest.read(folder)
        prompts = {**SentenceTransformersNames.prompts, **(manifest.prompts if manifest else {})}
        default = manifest.default_prompt_name if manifest else None
        prompt_text = chosen_prompt(prompt, prompt_name, prompts, default)
        if manifest is not None:
            return cls(place, manifest.name, manifest.model_hash, prompt_text)
        return cls(place, folder.name, describe_files(folder)[1], prompt_text)

    def load(self) -> SentenceEncoder:
        """Loads the model; a ValueError if this machine has another model in that place."""
        encoder = use_st5.load(_local_folder(self.place))
        if encoder.identity != self.model_hash:
            raise ValueError(
                f"Expected the model {self.name} with the hash {self.model_hash[:12]} in "
                f"{self.place}, as on the machine that started the pipeline, found "
                f"{encoder.identity[:12]} on this worker. Install the same use_st5 and the same "
                "model there."
            )
        return encoder


def _local_folder(place: str) -> Path:
    return model_folder(_fetched(place.rstrip("/")) if "://" in place else place)


@functools.cache
def _fetched(url: str) -> Path:
    """Copies a remote folder, once, into a temporary folder that stays while the process runs."""
    systems: Any = require("apache_beam.io.filesystems", "beam").FileSystems
    plain: Any = require("apache_beam.io.filesystem", "beam").CompressionTypes.UNCOMPRESSED
    files = systems.match([f"{url}/**"])[0].metadata_list
    if not files:
        raise FileNotFoundError(f"Expected the folder of a SavedModel, found no files in {url}.")
    names = check_inner_names([file.path.removeprefix(f"{url}/") for file in files], where=url)
    folder = Path(tempfile.mkdtemp(prefix="use_st5_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    top = joined(folder, url.rpartition("/")[2], where=url)
    for file, name in zip(files, names, strict=True):
        path = joined(top, name, where=url)
        path.parent.mkdir(parents=True, exist_ok=True)
        with systems.open(file.path, compression_type=plain) as source, path.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    return top
