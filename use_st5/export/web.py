"""A page for browsers that compares and searches sentences with a USE-DAN.

The page is a folder. Its code is in `page/`. `model.js` has the model's facts. `model-0.js`,
`model-1.js` … have its weights and its vocabulary, packed by gzip, in base64: a page that is opened
from a disk can read scripts, but no other files.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from use_st5._files import atomic_path, sole_writer
from use_st5._model_folder import model_folder
from use_st5._model_manifest import ModelManifest
from use_st5.engines.dan import DANEngine
from use_st5.engines.weights import Table
from use_st5.export.replaced_folder import check_replaced_folder
from use_st5.export.rounding import int4_codes, int8_codes

Precision = Literal["int8", "int4"]

_PAGE = Path(__file__).with_name("page")
_MODEL = "model.js"
# Bytes in one script: a multiple of three, so that each is base64 by itself.
_PART = 3 * 2**20


def to_web(
    name_or_folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    precision: Precision = "int8",
) -> None:
    """Writes a page that compares and searches sentences in a browser, without network.

    Open its `index.html` from the disk or from a static web server. With "int8" the vectors in the
    page are those of the int8 model within 1e-3. "int4" has less than half of the size: the table
    has codes of four bits, and the vectors change.

    Args:
        name_or_folder: A USE-DAN: its folder, or a bundled model's name.
        path: The folder to write. An older page is replaced.
        precision: How the token table is stored.

    Raises:
        FileNotFoundError: There is no such model.
        FileExistsError: The folder contains anything but an older page.
        ValueError: The model is not a USE-DAN, or the precision is unknown.
    """
    if precision not in ("int8", "int4"):
        raise ValueError(
            f"Expected the precision 'int8' or 'int4' of a page, received {precision!r}."
        )
    source = model_folder(name_or_folder)
    manifest = dan_manifest(source)
    engine = DANEngine(source, manifest)
    with sole_writer(path):
        check_page(path)
        with atomic_path(path) as folder:
            shutil.copytree(_PAGE, folder)
            content = _gzip(b"".join(_content(source, engine, precision)))
            parts = [content[at : at + _PART] for at in range(0, len(content), _PART)]
            facts = {**_facts(manifest, engine), "precision": precision, "parts": len(parts)}
            text = json.dumps(facts, indent=2)
            (folder / _MODEL).write_text(f"const MODEL = {text};\n", encoding="utf-8")
            for number, part in enumerate(parts):
                script = f'addPart("{base64.b64encode(part).decode()}");\n'
                (folder / f"model-{number}.js").write_text(script, encoding="utf-8")


def check_page(path: str | os.PathLike[str]) -> None:
    """Checks that a new page in a folder replaces nothing but an older page.

    Raises:
        FileExistsError: The folder holds anything else, or it is a file.
    """
    ours = {_MODEL, *(entry.name for entry in _PAGE.iterdir())}
    check_replaced_folder(path, _MODEL, lambda name: name in ours or _is_part(name), "a page")


def _is_part(name: str) -> bool:
    return name.startswith("model-") and name.endswith(".js")


def dan_manifest(folder: Path) -> ModelManifest:
    """What the model in a folder says about itself.

    Raises:
        ValueError: It is not a USE-DAN, and a page cannot run it.
    """
    manifest = ModelManifest.read(folder)
    family = manifest.family if manifest else None
    if manifest is None or family != "use_dan":
        raise ValueError(
            f"{folder}: expected a USE-DAN for a page in the browser, received "
            f"{f'a model of the family {family}' if family else 'another SavedModel'}. Give "
            "use_dan_en or a USE-DAN of your own, or serve this model with `use-st5 serve`."
        )
    return manifest


def _facts(manifest: ModelManifest, engine: DANEngine) -> dict[str, Any]:
    """What `model.js` says about a model."""
    rows, width = engine.table.shape
    return {
        "name": manifest.name,
        "license": manifest.metadata.get("license"),
        "dimension": engine.dimension,
        "activation": manifest.config["config"]["activation"],
        "prompt": manifest.prompts.get(manifest.default_prompt_name or "", ""),
        "rows": rows,
        "width": width,
        "blocks": [[kernel.shape for kernel in block] for block in engine.blocks],
    }


def _content(folder: Path, engine: DANEngine, precision: Precision) -> Iterator[bytes]:
    """The arrays of a model, in the order in which `encoder.js` reads them."""
    codes, scales = _packed(engine.table, precision)
    yield scales.astype("<f4").tobytes()
    for block in engine.blocks:
        for kernel in block:
            yield kernel.astype("<f2").tobytes()
    yield codes.tobytes()
    yield (folder / "assets" / "vocabulary.txt").read_bytes()


def _gzip(content: bytes) -> bytes:
    """Codes hardly repeat: the strategy for such data is quicker and packs them more densely."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
    return packer.compress(content) + packer.flush()


def _packed(table: Table, precision: Precision) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of a table, and a scale for each row."""
    if precision == "int8" and table.scales is not None:
        return table.codes, table.scales
    weights, own = table.rows(np.arange(table.shape[0]))
    weights = weights * own[:, None]
    if precision == "int8":
        return int8_codes(weights, axis=1)
    codes, scales = int4_codes(weights)
    if codes.shape[1] % 2:
        codes = np.pad(codes, ((0, 0), (0, 1)))
    low, high = codes[:, 0::2], codes[:, 1::2]
    return (low & 15 | high << 4).astype(np.int8), scales
