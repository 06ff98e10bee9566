from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import Result

import use_st5
from use_st5.text.sentencepiece_vectorizer import T5_VOCABULARY

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

CONFIG = {
    "model_type": "t5", "vocab_size": 32_128, "num_layers": 1, "num_decoder_layers": 1,
    "d_model": 8, "d_ff": 16, "num_heads": 2, "d_kv": 4, "feed_forward_proj": "relu",
}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A T5 folder with the names and shapes of `config`, in bfloat16-free float32."""
    from use_st5.convert import huggingface_t5
    from use_st5.models.t5 import T5

    folder = tmp_path / "t5"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    shutil.copy(T5_VOCABULARY, folder / "spiece.model")
    model = T5(huggingface_t5.read_t5_config(folder))
    model.build()
    mapping = huggingface_t5.t5_mapping(model)
    rng = np.random.default_rng(0)
    tensors = {
        name: rng.normal(size=target.stored_shape()).astype("f") for name, target in mapping.items()
    }
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_a_folder_becomes_an_encoder_of_strings(
    source: Path, tmp_path: Path, use: Callable[..., Result]
) -> None:
    vectors = {}
    for pooling in ("mean", "first", "decoder"):
        folder = tmp_path / pooling
        done = use("convert", str(source), "--to", str(folder), "--pooling", pooling)
        assert done.exit_code == 0, done.output
        encoder = use_st5.load(folder)
        assert (encoder.name, encoder.max_length) == (pooling, 256)
        vectors[pooling] = encoder.encode(["How old are you?", ""])
        assert vectors[pooling].shape == (2, 8)
    assert not np.allclose(vectors["mean"], vectors["first"], atol=1e-3)
    assert not np.allclose(vectors["mean"], vectors["decoder"], atol=1e-3)
    half = tmp_path / "half"
    use("convert", str(source), "--to", str(half), "--dtype", "bfloat16", "--name", "b")
    rounded = use_st5.load(half).encode(["How old are you?", ""])
    assert rounded.dtype == np.float32
    cosines = np.sum(rounded * vectors["mean"], axis=1) / (
        np.linalg.norm(rounded, axis=1) * np.linalg.norm(vectors["mean"], axis=1)
    )
    assert cosines.min() > 0.99
    whole, saved = (use_st5.load(folder).manifest for folder in (tmp_path / "mean", half))
    assert (whole.storage, saved.storage) == ("float32", "bfloat16")
    assert whole.size_bytes - saved.size_bytes == pytest.approx(2 * whole.parameters, rel=0.1)


def test_refusals(source: Path, tmp_path: Path, use: Callable[..., Result]) -> None:
    (tmp_path / "there").mkdir()
    done = use("convert", str(source), "--to", str(tmp_path / "there"))
    assert done.exit_code == 1
    assert "there exists; give --overwrite" in done.stderr
    (source / "modules.json").write_text("[]", encoding="utf-8")
    done = use("convert", str(source), "--to", str(tmp_path / "new"), "--pooling", "first")
    assert done.exit_code == 2
    assert "says how the model pools" in done.stderr
    (source / "modules.json").unlink()
    (source / "model.safetensors").unlink()
    done = use("convert", str(source), "--to", str(tmp_path / "new"))
    assert done.exit_code == 1
    assert "found neither" in done.stderr
    assert not (tmp_path / "new").exists()
