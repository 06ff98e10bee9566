"""The weights of a transformers T5 under other names, and its outputs for some ids."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.models import t5_peer
from use_st5.models.t5.model import T5Config

PEER_IDS = np.array([[5, 17, 99, 1, 0, 0], [8, 1, 0, 0, 0, 0], [3, 4, 5, 6, 7, 1]], np.int32)

# Copies of the table.
_COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")


def own_config(activation: str) -> T5Config:
    """The configuration of `t5_peer.peer` as checkpoints of the original code have it.

    In them, T5 1.1 has an output layer, which transformers 5 ties to the table.
    """
    tied = activation == "relu"
    return replace(t5_peer.config(activation), tied_softmax=tied, scaled_softmax=tied)


def rename(name: str, patterns: dict[str, str]) -> str:
    """Returns a name, replaced according to the first pattern that matches it."""
    for pattern, replacement in patterns.items():
        if re.fullmatch(pattern, name):
            return re.sub(pattern, replacement, name)
    raise ValueError(f"no pattern for {name}")


def peer_arrays(peer: Any, rename: Callable[[str], str]) -> dict[str, np.ndarray]:
    """The arrays by their new names, each once, with the axes input × output.

    Args:
        peer: The model of transformers.
        rename: A tensor's name in transformers → its name in a checkpoint.
    """
    arrays = {}
    for name, tensor in peer.state_dict().items():
        tied = name == "lm_head.weight" and peer.config.feed_forward_proj == "relu"
        if name in _COPIES or tied:
            continue
        array = tensor.numpy()
        # torch stores dense kernels as their transposes; transformers transposed the bias.
        kept = name == "shared.weight" or array.ndim == 1
        arrays[rename(name)] = np.ascontiguousarray(array if kept else array.T)
    return arrays


def peer_outputs(peer: Any) -> tuple[np.ndarray, np.ndarray]:
    """Logits of the decoder's first step and the encoder's outputs for `PEER_IDS`."""
    import torch

    with torch.no_grad():
        out = peer(
            input_ids=torch.tensor(PEER_IDS).long(),
            attention_mask=torch.tensor(PEER_IDS != 0).long(),
            decoder_input_ids=torch.zeros(len(PEER_IDS), 1).long(),
        )
    return out.logits.numpy(), out.encoder_last_hidden_state.numpy()
