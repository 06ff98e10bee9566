"""A model written anew has the same weights, ids, vectors, card and facts."""

from __future__ import annotations

import dataclasses
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from use_st5._model_manifest import ModelManifest, read_card
from use_st5.export.saved_model import export_saved_model
from use_st5.models.use_dan.model import USEDAN
from use_st5.text.ngram_vectorizer import NGramVectorizer
from use_st5.text.ngram_vocabulary import NGramVocabulary

TEXTS = ["the cat sat", "", "how unheard-of!", "the cat " * 50]


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(Path(__file__).resolve().parents[1] / "tools" / "export_again.py"))


def write(folder: Path, storage: str, **changes: Any) -> None:
    """A small model with random weights under a preset's name."""
    vocabulary = NGramVocabulary(("the", "cat", "sat"), ("the cat",), unigram_buckets=4)
    model = USEDAN.from_preset("use_dan_en", num_embeddings=vocabulary.size, **changes)
    model.build()
    vectorizer = NGramVectorizer(vocabulary)
    facts = {"name": "use_dan_en", "card": "# use_dan_en\n\nIs small.\n", "metadata": {"seed": 7}}
    export_saved_model(model, vectorizer, folder, storage=storage, **facts)


@pytest.mark.parametrize("storage", ["float32", "int8"])
def test_all_but_the_graph_stays(tool: dict[str, Any], storage: str, tmp_path: Path) -> None:
    write(tmp_path / "model", storage)
    before, old = ModelManifest.read(tmp_path / "model"), tf.saved_model.load(tmp_path / "model")
    assert tool["export_again"](tmp_path / "model", TEXTS) <= 1e-6
    after, new = ModelManifest.read(tmp_path / "model"), tf.saved_model.load(tmp_path / "model")
    np.testing.assert_allclose(new(TEXTS), old(TEXTS), atol=1e-6)
    for weight, same in zip(old.variables, new.variables, strict=True):
        np.testing.assert_array_equal(weight, same)
    assert read_card(tmp_path / "model") == "# use_dan_en\n\nIs small.\n"
    after.check_contents(tmp_path / "model")
    files = {"files": before.files, "model_hash": before.model_hash}
    assert dataclasses.replace(after, **files) == before


def test_another_shape_is_refused(tool: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path / "model", "int8", hidden_dims=(320, 320))
    with pytest.raises(ValueError, match="hidden_3"):
        tool["export_again"](tmp_path / "model", TEXTS)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
