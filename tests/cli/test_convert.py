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
from tests.convert.t5x_writer import write_file, write_folder
from tests.models.t5 import numpy_t5
from use_st5.convert.t5x_source import T5XSource
from use_st5.tokenizers.sentencepiece_tokenizer import T5_VOCABULARY, SentencePieceTokenizer

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

CONFIG = {
    "model_type": "t5", "vocab_size": 32_128, "num_layers": 1, "num_decoder_layers": 1,
    "d_model": 8, "d_ff": 16, "num_heads": 2, "d_kv": 4, "feed_forward_proj": "relu",
}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A T5 folder with the names and shapes of `config`, in bfloat16-free float32."""
    from use_st5.models.t5.checkpoint import HUGGING_FACE
    from use_st5.models.t5.model import T5, T5Config

    folder = tmp_path / "t5"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    shutil.copy(T5_VOCABULARY, folder / "spiece.model")
    model = T5(T5Config(32_128, 1, 8, 16, 2, 4))
    model.build()
    mapping = HUGGING_FACE.targets(model)
    rng = np.random.default_rng(0)
    tensors = {
        name: rng.normal(size=target.stored_shape()).astype("f") for name, target in mapping.items()
    }
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.mark.end_to_end
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
    assert (whole.precision, saved.precision) == ("float32", "bfloat16")
    assert whole.size_bytes - saved.size_bytes == pytest.approx(2 * whole.parameters, rel=0.1)


def test_refusals(source: Path, tmp_path: Path, use: Callable[..., Result]) -> None:
    (tmp_path / "there").mkdir()
    done = use("convert", str(source), "--to", str(tmp_path / "there"))
    assert done.exit_code == 1
    assert "there exists; give --overwrite" in done.stderr
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1"},
    ]
    (source / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (source / "1").mkdir()
    (source / "1" / "config.json").write_text('{"pooling_mode": "mean"}', encoding="utf-8")
    done = use("convert", str(source), "--to", str(tmp_path / "new"), "--pooling", "first")
    assert done.exit_code == 1
    assert "sets the pooling" in done.stderr
    (source / "modules.json").unlink()
    done = use("convert", str(source), "--to", str(tmp_path / "new"), "--pooling", "cls")
    assert done.exit_code == 1
    assert "poolings ('mean', 'first', 'decoder') of t5" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.fixture
def t5x(tmp_path: Path) -> Path:
    """A T5X checkpoint with T5's table."""
    tensors = numpy_t5.arrays(gated=False)
    table = np.random.default_rng(0).normal(size=(32_128, 8)).astype("f")
    write_folder(tmp_path / "t5x", {**tensors, "token_embedder/embedding": table}, chunk=4096)
    return tmp_path / "t5x"


def test_a_checkpoint_of_tensors_alone(
    t5x: Path, tmp_path: Path, use: Callable[..., Result]
) -> None:
    done = use("convert", str(t5x), "--to", str(tmp_path / "model"), "--max-length", "16")
    assert done.exit_code == 0, done.stderr
    assert "from T5X, " in done.stderr
    vector = use_st5.load(tmp_path / "model").encode("How old are you?")
    tensors = {name: T5XSource(t5x).read(name) for name in T5XSource(t5x).shapes()}
    ids = SentencePieceTokenizer().padded(["How old are you?"])[0].numpy()
    np.testing.assert_allclose(vector, numpy_t5.encode(tensors, ids).mean(0), atol=1e-5)


def test_a_vocabulary_is_asked_for(t5x: Path, tmp_path: Path, use: Callable[..., Result]) -> None:
    write_file(tmp_path / "small", numpy_t5.arrays())
    to = ("--to", str(tmp_path / "model"))
    done = use("convert", str(tmp_path / "small"), *to)
    assert done.exit_code == 1
    assert "has 50 rows, T5's has 32,128" in done.stderr
    done = use("convert", str(tmp_path / "small"), *to, "--vocabulary", str(T5_VOCABULARY))
    assert done.exit_code == 1
    assert "32,000 pieces, but the table has 50 rows" in done.stderr
    done = use("convert", str(t5x), *to, "--pooling", "decoder")
    assert done.exit_code == 1
    assert "expected the tensors of the model. Missing: decoder/decoder_norm/scale" in done.stderr
    done = use("convert", str(tmp_path / "nothing"), *to)
    assert done.exit_code == 1
    assert "nothing of this name" in done.stderr
    assert not (tmp_path / "model").exists()
