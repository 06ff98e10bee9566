from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models import t5_peer
from tests.models.t5.peer_arrays import PEER_IDS, peer_outputs
from tests.models.t5.whole_t5 import read_t5
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.models.t5.checkpoint import read_sentence_t5

torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module", params=["relu", "gated_gelu"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """A model of transformers and the folder it was saved to, in several shards."""
    model = t5_peer.peer(request.param)
    folder = tmp_path_factory.mktemp("huggingface") / request.param
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len([*folder.glob("*.safetensors")]) > 2
    return model, folder


def test_the_whole_model(saved: tuple[Any, Path]) -> None:
    peer, folder = saved
    model = read_t5(open_checkpoint(folder))
    logits = model({"encoder_ids": PEER_IDS, "decoder_ids": np.zeros((3, 1), np.int32)})
    np.testing.assert_allclose(logits, peer_outputs(peer)[0], atol=2e-5)


def test_a_sentence_encoder(saved: tuple[Any, Path]) -> None:
    peer, folder = saved
    mask = (PEER_IDS != 0)[..., None]
    expected = (peer_outputs(peer)[1] * mask).sum(1) / mask.sum(1)
    seen: list[str] = []
    model = read_sentence_t5(open_checkpoint(folder), on_tensor=seen.append)
    np.testing.assert_allclose(model(PEER_IDS), expected, atol=1e-5)
    assert not any(name.startswith("decoder.") for name in seen), "the decoder is not read"
    assert len(seen) == len(model.weights)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_storage_is_computed_in_float32(
    saved: tuple[Any, Path], tmp_path: Path, dtype: str
) -> None:
    peer, folder = saved
    stored = transformers.T5ForConditionalGeneration.from_pretrained(
        folder, dtype=getattr(torch, dtype)
    )
    stored.save_pretrained(tmp_path)
    rounded = stored.float().eval()
    model = read_t5(open_checkpoint(tmp_path))
    assert model.embedding.embeddings.dtype == "float32"
    logits = model({"encoder_ids": PEER_IDS, "decoder_ids": np.zeros((3, 1), np.int32)})
    np.testing.assert_allclose(logits, peer_outputs(rounded)[0], atol=2e-5)


def test_an_encoder_alone(tmp_path: Path) -> None:
    config = transformers.T5Config(
        vocab_size=100, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=2
    )
    peer = transformers.T5EncoderModel(config).eval()
    peer.save_pretrained(tmp_path)
    with torch.no_grad():
        expected = peer(
            input_ids=torch.tensor(PEER_IDS).long(),
            attention_mask=torch.tensor(PEER_IDS != 0).long(),
        ).last_hidden_state[:, 0]
    np.testing.assert_allclose(
        read_sentence_t5(open_checkpoint(tmp_path), pooling="first")(PEER_IDS), expected, atol=1e-5
    )
    with pytest.raises(ValueError, match=r"tensors of the model. Missing: decoder.block.0"):
        read_sentence_t5(open_checkpoint(tmp_path), pooling="decoder")


def test_what_does_not_fit_is_listed(saved: tuple[Any, Path], tmp_path: Path) -> None:
    peer, _ = saved
    peer.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))

    def load_with(**changes: Any) -> None:
        path.write_text(json.dumps({**config, **changes}), encoding="utf-8")
        read_t5(open_checkpoint(tmp_path))

    with pytest.raises(ValueError, match=r"Unknown: encoder.block.2.layer.0"):
        load_with(num_layers=2)
    with pytest.raises(ValueError, match=r"Missing: encoder.block.3"):
        load_with(num_layers=4)
    with pytest.raises(ValueError, match=r"shared.weight: expected \[99, 32\], found \[100, 32\]"):
        load_with(vocab_size=99)
    with pytest.raises(ValueError, match=r"\$.model_type: expected 'mt5' or 't5', received 'bert'"):
        load_with(model_type="bert")
    with pytest.raises(
        ValueError, match=r"\$.feed_forward_proj: expected .* received 'gated-silu'"
    ):
        load_with(feed_forward_proj="gated-silu")


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "t5", "vocab_size": 9, "num_layers": 1, "d_model": 4,
                    "d_ff": 4, "num_heads": 1, "d_kv": 4}),
        encoding="utf-8",
    )  # fmt: skip
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"can run code.*safetensors"):
        read_t5(open_checkpoint(tmp_path))
