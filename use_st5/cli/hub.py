"""`use-st5 push` and `cache`: upload a model to a hub; list and clear the cache of downloads."""

from __future__ import annotations

import dataclasses
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from use_st5._imports import require
from use_st5.cli.models import find_model
from use_st5.cli.output import echo, manual, print_table, say, waiting
from use_st5.hub.cache import LIMIT, cache_folder, entries, limit, remove_entry, remove_leftovers
from use_st5.hub.client import EXTRA, to_hugging_face, to_kaggle
from use_st5.hub.model_manifest import (
    CARD_NAME,
    FILE_NAME,
    ModelManifest,
    copy_model,
    describe_files,
    read_card,
)
from use_st5.hub.model_names import forget, model_name, recorded

# The tags by which the hub lists a model.
_TAGS = ("sentence-similarity", "feature-extraction", "tensorflow", "keras")

PUSH_HELP = manual(
    """Upload an exported model to Hugging Face's hub or to Kaggle Models.

    Without --yes nothing is uploaded: the command prints the header of the model card and the list
    of files. Only the files of the model are uploaded. Each is compared with its sha256 first.

    Log in first: run `hf auth login`, or set HF_TOKEN. Then everybody who may read the model can
    load it with use_st5.load("hf://ORG/NAME").""",
    "use-st5 push models/mine hf://ORG/NAME",
    "use-st5 push models/mine hf://ORG/NAME --license mit --language en --metric spearmanr --yes",
    "use-st5 push models/mine kaggle://OWNER/MODEL/tensorFlow2/VARIATION --yes",
)


def push(
    model: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of the model.")],
    to: Annotated[str, typer.Argument(metavar="NAME", help="hf://ORG/NAME, or kaggle://….")],
    language: Annotated[
        list[str] | None, typer.Option(help="ISO code; repeatable. Default: the model's own.")
    ] = None,
    license_name: Annotated[
        str | None, typer.Option("--license", help="Default: the model's own.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="A metric that the card states; repeatable.")
    ] = None,
    message: Annotated[
        str, typer.Option(help="Message of the commit or version.")
    ] = "Upload a model of use_st5",
    private: Annotated[bool, typer.Option("--private", help="A private repository.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Upload; else only show.")] = False,
) -> None:
    """Uploads a model to a hub."""
    scheme = (model_name(to) or "").partition(":")[0]
    if scheme not in ("hf", "kaggle"):
        raise typer.BadParameter(f"expected hf://ORG/NAME or kaggle://…, received {to}.")
    source = find_model(model)
    manifest = ModelManifest.read(source)
    if manifest is None:
        raise ValueError(f"{source}: expected a model of use_st5, found one of another origin")
    manifest.check_contents(source)
    license_name = license_name or str(manifest.metadata.get("license", ""))
    if not license_name:
        raise ValueError(f'{model}: give its --license, such as mit, or "other"')
    origin = str(manifest.metadata.get("source", ""))
    data = require("huggingface_hub", EXTRA).ModelCardData(
        language=[*(language or manifest.metadata.get("languages", ()))] or None,
        license=license_name.lower(),
        library_name="use_st5",
        pipeline_tag="sentence-similarity",
        tags=["use_st5", *filter(None, [manifest.family]), *_TAGS],
        metrics=metric,
        base_model=origin[5:].partition("@")[0] if origin.startswith("hf://") else None,
    )
    header = data.to_yaml()
    body = read_card(source)
    if body.startswith("---\n"):  # the header of an earlier upload
        body = body.partition("\n---\n")[2]
    body = body.strip() or f'# {to}\n\nRead it with `use_st5.load("{to}")`.'
    with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
        folder = Path(scratch, "model")
        copy_model(source, folder, manifest)
        (folder / CARD_NAME).write_text(f"---\n{header}\n---\n\n{body}\n", encoding="utf-8")
        files, model_hash = describe_files(folder)
        manifest = dataclasses.replace(manifest, files=files, model_hash=model_hash)
        manifest.write(folder)
        echo(header)
        for name in sorted([FILE_NAME, *manifest.files]):
            echo(f"{name}\t{(folder / name).stat().st_size}")
        if not yes:
            say(f"{to}: nothing was uploaded; --yes uploads {manifest.size_bytes / 1e6:,.1f} MB")
            return
        with waiting(f"uploading to {to}"):
            if scheme == "hf":
                place = to_hugging_face(folder, to, private=private, message=message)
            else:
                place = to_kaggle(folder, to, license=license_name, message=message)
    say(f"{place}: uploaded, {manifest.size_bytes / 1e6:,.1f} MB")


CACHE_HELP = manual(
    f"""List or clear the cache of models that were downloaded by name.

    The cache has converted copies of checkpoints, unpacked archives, graphs for ONNX Runtime, and
    copies of remote files (gs:// and others). If they are together larger than {LIMIT} (in GB;
    default 20), the entries that were not used for the longest time are removed. Copies of remote
    files do not count for this limit. They stay until they are cleared.

    --clear removes all entries, or those with the given names. The next use of a model downloads
    its newest version. The caches of huggingface_hub and kagglehub are not changed
    (`hf cache ls`).""",
    "use-st5 cache",
    "use-st5 cache --clear hf://sentence-transformers/all-MiniLM-L6-v2",
    "use-st5 cache --clear",
)


def cache(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="Names, as in the list.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove instead of listing.")] = False,
) -> None:
    """Lists or clears the cache."""
    wanted = set(names or [])

    def is_wanted(name: str) -> bool:
        return not wanted or bool(wanted & {name, name.partition("@")[0]})

    matches = [entry for entry in entries() if is_wanted(entry.origin)]
    downloads = [each.name for each in recorded() if is_wanted(each.name)]
    present = {*downloads, *(entry.origin for entry in matches)}
    if missing := wanted - present - {name.partition("@")[0] for name in present}:
        raise FileNotFoundError(f"expected names in the cache, found none of {sorted(missing)}")
    size = f"{sum(entry.size for entry in matches) / 1e6:,.1f} MB"
    if clear:
        for entry in matches:
            remove_entry(entry.folder)
        for name in downloads:
            forget(name)
        if not wanted:
            remove_leftovers()
        say(f"removed {size}, {len(matches)} entries")
        return
    rows = [
        (each.origin, each.kind, f"{each.size / 1e6:,.1f} MB", f"{used:%F %H:%M}")
        for each in matches
        for used in [datetime.fromtimestamp(each.used)]
    ]
    print_table(["name", "kind", "size", "last used"], rows)
    say(f"{size} in {cache_folder('').resolve()}; limit {limit() / 1e6:,.1f} MB")
