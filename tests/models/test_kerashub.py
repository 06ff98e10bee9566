"""Tiny text embedders of KerasHub, compared with KerasHub's own vectors."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.kerashub_embedders import EMBEDDERS, bert
from tests.toy_encoders import Toy
from use_st5.models.kerashub.family import KerasHubEncoder
from use_st5.models.lora import apply_lora
from use_st5.trainable_encoder import TrainableEncoder

TEXTS = ["the cat sat", "", "a dog ran on the mat " * 9, "😀 Ünheard [SEP]"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.end_to_end] * (name == "qwen")) for name in EMBEDDERS],
)
def test_vectors_are_kerashubs(name: str) -> None:
    embedder = EMBEDDERS[name]()
    expected = np.asarray(embedder(embedder.preprocessor(TEXTS)))
    encoder = TrainableEncoder.of_kerashub(embedder)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    assert np.isfinite(encoder.encode([b"\xff cat"])).all()
    assert len(apply_lora(encoder.model, targets="all_linear", rank=1).layers) in (12, 14)


def test_what_is_no_text_embedder_is_refused(toy_kerashub: Toy) -> None:
    alone = bert()
    alone.preprocessor = None
    for embedder in (alone, keras.Sequential()):
        with pytest.raises(TypeError, match="with a preprocessor"):
            TrainableEncoder.of_kerashub(embedder)
    config = toy_kerashub.model.get_config()
    config["embedder"] = {**config["embedder"], "kind": "BertTokenizer"}
    with pytest.raises(ValueError, match="is no TextEmbedder"):
        KerasHubEncoder.from_config(config)
