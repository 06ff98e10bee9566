"""A text embedder of KerasHub as a Keras model over ids."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.kerashub_embedders import EMBEDDERS
from use_st5.models.kerashub.family import read_text_embedder
from use_st5.models.kerashub.model import KerasHubEncoder


@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_copy_of_the_configuration_has_the_same_vectors(name: str) -> None:
    model, tokenizer, _ = read_text_embedder(EMBEDDERS[name]())
    ids = tokenizer.padded(["the cat sat", "a dog"])
    config: dict[str, Any] = json.loads(json.dumps(model.get_config()))
    copy = KerasHubEncoder.from_config(config)
    copy.set_weights(model.get_weights())
    np.testing.assert_allclose(copy(ids), model(ids), atol=1e-6)
    assert copy.dimension == model.dimension == 8


@pytest.mark.parametrize("name", EMBEDDERS)
def test_padding_changes_nothing(name: str) -> None:
    model, tokenizer, _ = read_text_embedder(EMBEDDERS[name]())
    ids = np.asarray(tokenizer.padded(["the cat"]))
    np.testing.assert_allclose(model(np.pad(ids, [(0, 0), (0, 5)])), model(ids), atol=1e-6)


def test_a_class_that_is_no_embedder_is_refused() -> None:
    model, _, _ = read_text_embedder(EMBEDDERS["bert"]())
    config = model.get_config()
    config["embedder"] = {**config["embedder"], "kind": "BertTokenizer"}
    with pytest.raises(ValueError, match="the name of a TextEmbedder of keras_hub.models"):
        KerasHubEncoder.from_config(config)
