"""Writes an exported encoder anew: the same weights, card and facts, today's graph.

    python tools/export_again.py saved_models/use_dan_en saved_models/use_transformer_en

What a SavedModel holds of the text stage and the network is what the version of use_st5 put there
that wrote it. This builds the Keras model of the preset of that name, gives it the weights (a table
in int8 keeps its codes and scales, bit for bit), and exports it over the old folder, if the vectors
of test sentences stay what they are to 1e-6.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from use_st5._files import atomic_path
from use_st5._loading import load_saved_model
from use_st5._model_manifest import ModelManifest, read_card
from use_st5.export.embedding_table import EmbeddingTable
from use_st5.export.float32_table import Float32Table
from use_st5.export.int8_table import Int8Table
from use_st5.export.padded_parts import use_transformer_parts
from use_st5.export.pooled_parts import use_dan_parts
from use_st5.export.saved_model import write_graph
from use_st5.export.table_parts import TableParts
from use_st5.models.use_dan.model import USEDAN
from use_st5.models.use_transformer.model import USETransformer
from use_st5.text.ngram_vectorizer import NGramVectorizer
from use_st5.text.ngram_vocabulary import NGramVocabulary
from use_st5.text.piece_vectorizer import PieceVectorizer

TOLERANCE = 1e-6


def main() -> None:
    """Writes each folder named on the command line anew."""
    for name in sys.argv[1:]:
        moved = export_again(Path(name))
        print(f"{name}: written anew; vectors moved by at most {moved:.1e}")


def export_again(folder: Path, sentences: list[str] | None = None) -> float:
    """Writes a folder anew.

    Args:
        folder: A USE whose name, in `use_st5.json`, is that of a preset.
        sentences: What is encoded before and after; by default the lines of the card.

    Returns:
        By how much a component of a vector moved at most.

    Raises:
        ValueError: The weights are not those of the preset, or ids or vectors move.
    """
    manifest, loaded = ModelManifest.read(folder), load_saved_model(folder)
    vocabulary = NGramVocabulary.load(folder / "assets" / "vocabulary.txt")
    parts = _parts(manifest, vocabulary)
    table = _table(loaded)
    _assign([*table.variables, *parts.variables], loaded.variables)
    with atomic_path(folder) as new:
        write_graph(
            parts.graph(table),
            new,
            name=manifest.name,
            card=read_card(folder),
            metadata=manifest.metadata,
        )
        sentences = sentences or read_card(folder).splitlines()
        return _check(loaded, load_saved_model(new), sentences)


def _parts(manifest: ModelManifest, vocabulary: NGramVocabulary) -> TableParts:
    """The parts of a fresh model of the preset."""
    if manifest.name.startswith("use_dan"):
        model: keras.Model = USEDAN.from_preset(manifest.name, num_embeddings=vocabulary.size)
        model.build()
        return use_dan_parts(model, NGramVectorizer(vocabulary))
    model = USETransformer.from_preset(manifest.name, num_embeddings=vocabulary.size)
    model.build()
    vectorizer = PieceVectorizer(vocabulary)
    return use_transformer_parts(model, vectorizer, max_length=manifest.max_length)


def _table(loaded: Any) -> EmbeddingTable:
    """The table as it is."""
    if hasattr(loaded, "table"):
        return Float32Table(loaded.table)
    return Int8Table(loaded.table_codes, loaded.table_scales)


def _assign(variables: list[tf.Variable], weights: list[tf.Variable]) -> None:
    """Gives variables the weights of the same place, name and shape."""
    expected = [(_name(variable), variable.shape) for variable in variables]
    found = [(_name(weight), weight.shape) for weight in weights]
    if expected != found:
        differing = sorted({str(pair) for pair in {*expected} ^ {*found}})
        raise ValueError(f"Expected the preset's weights, these differ: {', '.join(differing)}")
    for variable, weight in zip(variables, weights, strict=True):
        variable.assign(weight)


def _name(variable: tf.Variable) -> str:
    """The name without the model's own."""
    return variable.name.removesuffix(":0").split("/", 1)[-1]


def _check(old: Any, new: Any, sentences: list[str]) -> float:
    """By how much vectors move, if ids stay and vectors keep to the tolerance."""
    texts = tf.constant(sentences)
    if not np.array_equal(old.preprocess(texts), new.preprocess(texts)):
        raise ValueError("Expected the ids that the old graph gives; the new one gives others.")
    moved = float(np.abs(old(texts) - new(texts)).max())
    if moved > TOLERANCE:
        raise ValueError(f"Expected vectors to move by at most {TOLERANCE}, they moved by {moved}.")
    return moved


if __name__ == "__main__":
    main()
