"""`use-st5 info`: describes a model."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from use_st5.cli.models import DEFAULT_MODEL, find_model, start_tensorflow
from use_st5.cli.output import echo, manual, print_table
from use_st5.hub.model_manifest import CARD_NAME, ModelManifest, read_card

HELP = manual(
    """Describe a model: size, dimension, signatures and its model card.

    Every file is compared with its checksum (sha256) from the export. A damaged model is an error
    (exit code 1).

    MODEL may be any SavedModel. Without use_st5.json only its signatures and size are shown.""",
    "use-st5 info",
    "use-st5 info path/to/my_model",
    "use-st5 info use_dan_en --card",
    "use-st5 info use_dan_en --json | jq .parameters",
)


def info(
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL]", help="A bundled model's name, a folder, or a hub's name."
        ),
    ] = DEFAULT_MODEL,
    card: Annotated[bool, typer.Option("--card", help="Print the whole card (Markdown).")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describes a model."""
    folder = find_model(model)
    if card:
        if not (text := read_card(folder)):
            raise FileNotFoundError(f"{folder / CARD_NAME}: expected a model card, found none")
        echo(text.rstrip("\n"))
        return
    facts = _facts(folder)
    if as_json:
        echo(json.dumps(facts, ensure_ascii=False))
        return
    if "max_length" in facts:
        limit = facts["max_length"]
        kept = "texts are not cut" if limit is None else f"{limit:,} tokens: longer texts are cut"
        facts["max_length"] = kept
    rows = []
    for name, value in facts.items():
        inner = value if isinstance(value, dict) else {"": value}
        rows += [(f"{name}: {key}" if key else name, _readable(inner[key])) for key in inner]
    print_table(["what", "value"], rows)


def _facts(folder: Path) -> dict[str, Any]:
    """The facts about the SavedModel in `folder`, checked against its manifest."""
    manifest = ModelManifest.read(folder)
    facts: dict[str, Any] = {"folder": str(folder.resolve())}
    if manifest is None:
        facts["description"] = "none: this model was not exported by use_st5"
        facts["bytes"] = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    else:
        manifest.check_contents(folder)
        facts["summary"] = _summary(folder)
        facts |= dataclasses.asdict(manifest)
        facts["bytes"] = manifest.size_bytes
        facts["files"] = f"{len(manifest.files)}, as they were exported (sha256)"
    facts["signatures"] = _signatures(folder)
    return facts


def _summary(folder: Path) -> str:
    """The first paragraph of the card below its front matter and its title."""
    text = read_card(folder)
    if text.startswith("---\n"):
        text = text.partition("\n---\n")[2]
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    return next((part for part in paragraphs if part and part[0] not in "#|<!-"), "")


def _signatures(folder: Path) -> dict[str, str]:
    """The signatures as `name type shape → name type shape`, read without building the graph."""
    start_tensorflow()
    from tensorflow import TensorShape
    from tensorflow.dtypes import as_dtype

    from use_st5.export.loading import saved_model_graph

    def tensors(entries: Any) -> str:
        return ", ".join(
            f"{name} {as_dtype(entry.dtype).name} {TensorShape(entry.tensor_shape)}"
            for name, entry in sorted(entries.items())
        )

    return {
        name: f"{tensors(signature.inputs)} → {tensors(signature.outputs)}"
        for graph in saved_model_graph(folder).meta_graphs
        for name, signature in sorted(graph.signature_def.items())
        if not name.startswith("__")
    }


def _readable(value: Any) -> str:
    if value is None:
        return "none"
    if type(value) is int:
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
