"""Ids of KerasHub's tokenizers, inside the graph."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.kerashub_embedders import EMBEDDERS, bert
from use_st5.tokenizers.kerashub_tokenizer import KerasHubTokenizer

TEXTS = ["the cat", "", "a dog ran on the mat " * 9, "😀 Ünheard [SEP]", b"\xff cat"]


def test_ids_are_larger_by_one() -> None:
    tokenizer = KerasHubTokenizer(bert().preprocessor)
    texts = tf.constant(["the cat", ""])
    assert tokenizer.padded(texts).numpy().tolist() == [[3, 6, 8, 4], [3, 4, 0, 0]]
    assert tokenizer.token_ids(texts, 3).numpy().tolist() == [[3, 6, 4], [3, 4, 0]]
    assert tokenizer.token_counts(texts).numpy().tolist() == [4, 2]


@pytest.mark.parametrize("name", EMBEDDERS)
def test_ids_are_kerashubs_and_those_of_the_assets(name: str, tmp_path: Path) -> None:
    preprocessor = EMBEDDERS[name]().preprocessor
    expected = [np.asarray(preprocessor(["the cat"])[key]) for key in ("token_ids", "padding_mask")]
    tokenizer = KerasHubTokenizer(preprocessor)
    ids = tokenizer.token_ids(["the cat"], expected[0].shape[1]).numpy()
    np.testing.assert_array_equal(ids > 0, expected[1].astype(bool))
    np.testing.assert_array_equal(ids[ids > 0] - 1, expected[0][ids > 0])
    again = KerasHubTokenizer.from_assets(written(tokenizer, tmp_path))
    assert again.vocabulary == tokenizer.vocabulary
    texts = tf.constant(TEXTS)
    np.testing.assert_array_equal(again.padded(texts), tokenizer.padded(texts))


def test_other_classes_are_not_made(tmp_path: Path) -> None:
    """Classes of other modules and of other kinds are refused."""
    folder = written(KerasHubTokenizer(bert().preprocessor), tmp_path)
    path = folder / "kerashub_tokenizer.json"
    settings = json.loads(path.read_text("utf-8"))
    for name in ("BertBackbone", "os.system", "__class__"):
        path.write_text(json.dumps({**settings, "tokenizer": name}), "utf-8")
        with pytest.raises(ValueError, match="is no Tokenizer of keras_hub.models"):
            KerasHubTokenizer.from_assets(folder)


def written(tokenizer: KerasHubTokenizer, folder: Path) -> Path:
    """The assets of a SavedModel with the tokenizer."""
    root = tf.Module()
    root.tokenizer = tokenizer
    tf.saved_model.save(root, str(folder))
    return folder / "assets"
