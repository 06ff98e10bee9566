"""ModernBERTs of transformers, with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from tests.models.bert.test_huggingface import shaken  # noqa: E402
from tests.tokenizers.test_added_tokens import TEXTS, modernbert  # noqa: E402
from use_st5.models.modernbert.model import SentenceModernBert  # noqa: E402
from use_st5.trainable_encoder import TrainableEncoder  # noqa: E402

SHAPE = {
    "hidden_size": 24,
    "num_hidden_layers": 5,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    # A token sees half of it, three tokens, on either side.
    "local_attention": 6,
}


def save(folder: Path, kind: str, **settings: Any) -> tuple[Any, Any]:
    """Saves a model and its tokenizer, and returns them as Hugging Face has them."""
    content = modernbert()
    ids = {each["content"]: each["id"] for each in content["added_tokens"]}
    config = transformers.ModernBertConfig(
        **{**SHAPE, **settings},
        vocab_size=max(ids.values()) + 2,
        pad_token_id=ids["[PAD]"],
        cls_token_id=ids["[CLS]"],
        sep_token_id=ids["[SEP]"],
        bos_token_id=ids["[CLS]"],
        eos_token_id=ids["[SEP]"],
    )
    torch.manual_seed(0)
    peer = shaken(getattr(transformers, kind)(config))
    peer.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(64)
    return peer, tokenizer


@pytest.mark.parametrize("kind", ["ModernBertModel", "ModernBertForMaskedLM"])
def test_from_strings(tmp_path: Path, kind: str) -> None:
    peer, tokenizer = save(tmp_path, kind)
    encoder = TrainableEncoder.load(tmp_path)
    assert isinstance(encoder.model, SentenceModernBert)
    assert encoder.max_length == 64
    texts = [*TEXTS, "the cat " * 60]
    base = getattr(peer, "model", peer)
    for text, vector in zip(texts, encoder.encode(texts), strict=True):
        ids = torch.tensor([tokenizer.encode(text).ids])
        with torch.no_grad():
            expected = base(input_ids=ids).last_hidden_state[0].mean(dim=0).numpy()
        np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_settings_of_older_folders(tmp_path: Path) -> None:
    """Transformers 4 wrote two thetas and an interval."""
    save(tmp_path, "ModernBertModel")
    new = TrainableEncoder.load(tmp_path).model.config
    path = tmp_path / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    del settings["rope_parameters"], settings["layer_types"]
    settings |= {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0}
    path.write_text(json.dumps(settings), encoding="utf-8")
    assert TrainableEncoder.load(tmp_path).model.config == new
    settings |= {"global_rope_theta": 500.0, "local_rope_theta": None}
    settings["global_attn_every_n_layers"] = 2
    path.write_text(json.dumps(settings), encoding="utf-8")
    old = TrainableEncoder.load(tmp_path).model.config
    assert (old.global_theta, old.local_theta, old.global_every) == (500.0, 500.0, 2)


def rotary(theta: float) -> dict[str, Any]:
    return {
        "full_attention": {"rope_theta": theta, "rope_type": "default"},
        "sliding_attention": {"rope_theta": 10_000.0, "rope_type": "default"},
    }


def test_other_settings_are_refused(tmp_path: Path) -> None:
    save(tmp_path, "ModernBertModel")
    path = tmp_path / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    for name, value, message in (
        ("norm_bias", True, r"\$\.norm_bias"),
        ("hidden_activation", "silu", r"\$\.hidden_activation"),
        ("num_hidden_layers", 10**6, "expected tensors of 1,000,000 layers"),
        ("layer_types", ["sliding_attention"] * 5, r"\$\.layer_types: expected full_attention in"),
        ("intermediate_size", 21, r"mlp.Wi.weight: expected \[42, 24\], found \[40, 24\]"),
        ("num_attention_heads", 5, "num_heads: expected a divisor"),
        ("norm_eps", 1e15, r"\$\.norm_eps: expected float <= 0.01, received 10{15}\.0"),
        ("norm_eps", 0, r"\$\.norm_eps: expected float > 0.0, received 0"),
        ("mlp_dropout", 7, r"\$\.mlp_dropout: expected float < 1.0, received 7"),
        ("rope_parameters", rotary(-1e9), r"full_attention.rope_theta: expected float >= 1.0, rec"),
        (
            "rope_parameters",
            rotary(1e308),
            r"full_attention.rope_theta: expected float <= 10+.0, r",
        ),
        ("max_position_embeddings", 2**40, r"\$\.max_position_embeddings: expected int <= 2147483"),
    ):
        path.write_text(json.dumps({**settings, name: value}), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            TrainableEncoder.load(tmp_path)
