"""Differences between our T5 and that of transformers, with random weights of the small shapes.

    python benchmarks/t5_parity.py

Each model of transformers is saved to a folder, read as `use-st5 convert` reads it, and both are
run on the same ids, one text alone (no padding) and eight texts of 5 to 200 tokens (padded). The
table gives the largest absolute difference of the encoder's outputs and of the decoder's first
output, both in float32, and the largest output. Needs the extra `peers`.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import torch
import transformers

from use_st5.convert.checkpoint import open_checkpoint
from use_st5.models.t5.checkpoint import read_sentence_t5

# Name → (class of the configuration, its arguments). mT5's table is cut from 250,112 rows to the
# size of T5's: rows are looked up independently, so more of them would test nothing else.
SHAPES: dict[str, tuple[type, dict[str, Any]]] = {
    "T5 1.0 small": (transformers.T5Config, {"num_layers": 6, "num_heads": 8, "d_ff": 2048}),
    "T5 1.1 small": (
        transformers.T5Config,
        {"num_layers": 8, "num_heads": 6, "d_ff": 1024, "feed_forward_proj": "gated-gelu"},
    ),
    "mT5 small": (
        transformers.MT5Config,
        {"num_layers": 8, "num_heads": 6, "d_ff": 1024, "feed_forward_proj": "gated-gelu"},
    ),
}


def main() -> None:
    """Prints the table."""
    print("| model | ids | encoder | first decoder output | largest output |")
    print("|---|---|---|---|---|")
    for name, (config, arguments) in SHAPES.items():
        torch.manual_seed(0)
        kind = {
            transformers.T5Config: transformers.T5ForConditionalGeneration,
            transformers.MT5Config: transformers.MT5ForConditionalGeneration,
        }[config]
        peer = kind(config(vocab_size=32_128, d_model=512, d_kv=64, **arguments)).eval()
        with tempfile.TemporaryDirectory() as folder:
            peer.save_pretrained(folder)
            checkpoint = open_checkpoint(folder)
            encoder = read_sentence_t5(checkpoint)
            first = read_sentence_t5(checkpoint.chosen(pooling="decoder"))
        for label, ids in batches().items():
            print(f"| {name} | {label} | {' | '.join(differences(peer, encoder, first, ids))} |")


def batches() -> dict[str, np.ndarray]:
    """Ids that end in the end-of-sentence token, 0 = padding."""
    rng = np.random.default_rng(0)
    padded = np.zeros((8, 200), np.int32)
    for row, length in enumerate(np.linspace(5, 200, 8).astype(int)):
        padded[row, :length] = [*rng.integers(3, 32_000, length - 1), 1]
    return {"alone": padded[7:], "padded": padded}


def differences(peer: Any, encoder: Any, first: Any, ids: np.ndarray) -> list[str]:
    """Largest differences of encoder and decoder, and the largest output."""
    tokens = ids != 0
    with torch.no_grad():
        out = peer(
            input_ids=torch.tensor(ids).long(),
            attention_mask=torch.tensor(tokens).long(),
            decoder_input_ids=torch.zeros(len(ids), 1).long(),
            output_hidden_states=True,
        )
    expected = out.encoder_last_hidden_state.numpy()[tokens]
    decoded = out.decoder_hidden_states[-1].numpy()[:, 0]
    encoded = np.asarray(encoder.encoder(encoder.embedding(ids), tokens=tokens))[tokens]
    return [
        f"{np.abs(encoded - expected).max():.1e}",
        f"{np.abs(np.asarray(first(ids)) - decoded).max():.1e}",
        f"{max(np.abs(expected).max(), np.abs(decoded).max()):.1f}",
    ]


if __name__ == "__main__":
    main()
