from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.convert.t5x_writer import write_file
from tests.models.t5 import numpy_t5
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.models.checkpoints import load_checkpoint
from use_st5.models.t5.config import T5_ROWS


def test_a_checkpoint_becomes_an_encoder_of_strings(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    table = np.random.default_rng(0).normal(size=(T5_ROWS, 8)).astype(np.float32)
    tensors = {**numpy_t5.arrays(), "token_embedder/embedding": table}
    write_file(tmp_path / "file", tensors)
    encoder = load_checkpoint(open_checkpoint(tmp_path / "file"))
    assert encoder.max_length == 256
    ids = encoder.vectorizer.padded(["How old are you?"])[0].numpy().tolist()
    expected = numpy_t5.encode(tensors, ids).mean(0)
    np.testing.assert_allclose(encoder.encode("How old are you?"), expected, atol=1e-5)


def test_what_no_family_knows(tmp_path: Path) -> None:
    save_file({"a": np.zeros(1, np.float32)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}), encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"known family \(.*t5.*\), found .* Hugging Face with model_type 'gpt2'"
    ):
        load_checkpoint(open_checkpoint(tmp_path))
