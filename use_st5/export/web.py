"""A page for browsers that compares and searches sentences with a USE-DAN.

The page is a folder. Its code is in `page/`. `model.js` has the model's facts. `model-0.js`,
`model-1.js` … have its weights and its vocabulary, packed by gzip, as text: a page that is opened
from a disk can read scripts, but no other files. Each UTF-16 character has 15 bits, so that a file
has 1.07 times the bytes; base64 has 1.33 times.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from use_st5.engines.dan import DANEngine
from use_st5.engines.weights import Table, int8_codes
from use_st5.export.folders import check_replaced_folder, write_file_list
from use_st5.hub.model_manifest import ModelManifest
from use_st5.hub.model_names import model_folder
from use_st5.io.files import atomic_path, sole_writer
from use_st5.tokenizers.ngram_vocabulary import FIRST_TERM_ID, NGramVocabulary

Precision = Literal["small", "int8"]

_PAGE = Path(__file__).with_name("page")
_MODEL = "model.js"
_TOKENIZER = "ngrams"  # of `page/tokenizer.js`
# Bytes in one script.
_PART = 3 * 2**20
# Characters begin here: U+3400 to U+B3FF are letters, no surrogates, quotes or ends of lines.
_FIRST_CHARACTER = 0x3400
# The step of a row of median size at rank `_RANK`, as a part of its size. Larger steps make files
# smaller and change vectors more: the rows of use_dan_en have 2.7 bits a weight when packed.
_STEP, _RANK = 0.35, 5000


def to_web(
    name_or_folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    precision: Precision = "small",
) -> None:
    """Writes a page that compares and searches sentences in a browser, without network.

    Open its `index.html` from the disk or from a static web server. With "int8" the vectors in the
    page are those of the int8 model within 1e-3. "small" has less than half of the size: the rows
    of rare words are rounded more, and the vectors change (use_dan_en: mean cosine 0.993).

    Args:
        name_or_folder: A USE-DAN: its folder, or a bundled model's name.
        path: The folder to write. An older page is replaced.
        precision: How the token table is stored.
    """
    if precision not in get_args(Precision):
        raise ValueError(f"Expected the precision 'small' or 'int8', received {precision!r}.")
    source = model_folder(name_or_folder)
    manifest = dan_manifest(source)
    engine = DANEngine(source, manifest)
    with sole_writer(path):
        check_page(path)
        with atomic_path(path) as folder:
            shutil.copytree(_PAGE, folder)
            # Rows hardly repeat: a search for repetitions would take time and pack less densely.
            packer = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
            content = packer.compress(b"".join(_content(source, engine, precision)))
            content += packer.flush()
            parts = [content[at : at + _PART] for at in range(0, len(content), _PART)]
            rows, width = engine.rows.table.shape
            facts = {
                "name": manifest.name,
                "license": manifest.metadata.get("license"),
                "dimension": engine.dimension,
                "activation": manifest.config["config"]["activation"],
                "prompt": manifest.prompts.get(manifest.default_prompt_name or "", ""),
                "rows": rows,
                "width": width,
                "blocks": [[kernel.shape for kernel in block] for block in engine.blocks],
                "precision": precision,
                "parts": len(parts),
            }
            text = json.dumps(facts, indent=2)
            (folder / _MODEL).write_text(f"const MODEL = {text};\n", encoding="utf-8")
            for number, part in enumerate(parts):
                (folder / f"model-{number}.js").write_bytes(_script(part))
            write_file_list(folder)


def check_page(path: str | os.PathLike[str]) -> None:
    """Checks that a new page in a folder replaces only an older page."""
    check_replaced_folder(path, "a page")


def dan_manifest(folder: Path) -> ModelManifest:
    """Returns the manifest of the USE-DAN in a folder."""
    manifest = ModelManifest.read(folder)
    if manifest is None or manifest.tokenizer != _TOKENIZER:
        advice = "Give a USE-DAN, such as use_dan_en, or run `use-st5 serve`"
        raise ValueError(f"{folder}: a page in the browser runs no other model. {advice}.")
    return manifest


def _content(folder: Path, engine: DANEngine, precision: Precision) -> Iterator[bytes]:
    """The arrays of a model, in the order in which `encoder.js` reads them."""
    vocabulary = folder / "assets" / "vocabulary.txt"
    codes, scales = _rounded(engine.rows.table, NGramVocabulary.load(vocabulary), precision)
    yield scales.astype("<f4").tobytes()
    for block in engine.blocks:
        for kernel in block:
            yield kernel.astype("<f2").tobytes()
    yield codes.tobytes()
    yield vocabulary.read_bytes()


def _rounded(
    table: Table, vocabulary: NGramVocabulary, precision: Precision
) -> tuple[np.ndarray, np.ndarray]:
    """The codes of a table, int8 `[rows, dim]`, and a scale for each row."""
    if precision == "int8" and table.scales is not None:
        return table.codes, table.scales
    weights = table.codes if table.scales is None else table.codes * table.scales[:, None]
    if precision == "int8":
        return int8_codes(weights, axis=1)
    # The rank of each id by frequency among words or pairs; buckets are last.
    unigrams, bigrams = len(vocabulary.unigrams), len(vocabulary.bigrams)
    buckets = vocabulary.size - vocabulary.unigram_bucket_id
    first, last = np.zeros(FIRST_TERM_ID, int), np.full(buckets, max(unigrams, bigrams))
    ranks = np.concatenate([first, np.arange(unigrams), np.arange(bigrams), last])
    return codes_by_frequency(weights, ranks)


def codes_by_frequency(table: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rounds the rows of a table to multiples of steps that are finer for frequent rows.

    The step of a row grows with the square root of its size and the cube root of its rank. Few
    codes differ from 0, so that they take few bits when they are packed.

    float32 `[rows, dim]` and ranks int `[rows]`, 0 for the most frequent → int8 `[rows, dim]` and
    float32 `[rows, 1]`.
    """
    sizes = np.sqrt(np.square(table, dtype=np.float32).mean(axis=1))
    rarity = np.cbrt((ranks + _RANK / 100) / _RANK)
    steps = _STEP * np.sqrt(sizes * np.median(sizes)) * rarity
    # Codes are 127 at most.
    steps = np.maximum(steps, np.abs(table).max(axis=1) / 127)
    scales = np.where(steps > 0, steps, 1.0).astype(np.float32)[:, None]
    return np.rint(table / scales).clip(-127, 127).astype(np.int8), scales


def _script(part: bytes) -> bytes:
    """A script that adds a part; its mark says UTF-16, whatever charset a server may send."""
    bits = np.unpackbits(np.frombuffer(part, np.uint8))
    groups = np.pad(bits, (0, -len(bits) % 15)).reshape(-1, 15)
    units = groups @ (1 << np.arange(14, -1, -1)) + _FIRST_CHARACTER
    text = units.astype("<u2").tobytes()
    begin, end = f'addPart({len(part)}, "', '");\n'
    return codecs.BOM_UTF16_LE + begin.encode("utf-16-le") + text + end.encode("utf-16-le")
