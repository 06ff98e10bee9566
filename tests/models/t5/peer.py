"""A T5 of transformers: its weights in ours and under other names, and its outputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.weights import Target, assign_weights, check_shapes
from use_st5.models.t5.checkpoint import open_t5, read_sentence_t5
from use_st5.models.t5.model import T5, T5Config

SHAPE = {"num_layers": 3, "num_decoder_layers": 2, "num_heads": 6}


def config(activation: str) -> T5Config:
    """A tiny shape whose heads together are wider than the model."""
    return T5Config(
        100,
        hidden_dim=32,
        intermediate_dim=64,
        key_value_dim=8,
        activation=activation,
        # transformers 5 ties the output layer of 1.1 too, but does not scale before it.
        scaled_softmax=activation == "relu",
        **SHAPE,
    )


def peer(activation: str, seed: int = 0) -> Any:
    """Transformers' T5 of that shape with random weights, norms among them."""
    import torch
    import transformers

    torch.manual_seed(seed)
    model = transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=100,
            d_model=32,
            d_kv=8,
            d_ff=64,
            feed_forward_proj={"relu": "relu", "gated_gelu": "gated-gelu"}[activation],
            tie_word_embeddings=activation == "relu",
            **SHAPE,
        )
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


PEER_IDS = np.array([[5, 17, 99, 1, 0, 0], [8, 1, 0, 0, 0, 0], [3, 4, 5, 6, 7, 1]], np.int32)

# Copies of the table.
_COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")


def own_config(activation: str) -> T5Config:
    """The configuration of `peer` as checkpoints of the original code have it.

    In them, T5 1.1 has an output layer, which transformers 5 ties to the table.
    """
    tied = activation == "relu"
    return replace(config(activation), tied_softmax=tied, scaled_softmax=tied)


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


def read_t5(checkpoint: Checkpoint) -> T5:
    """A T5 with the weights of a checkpoint."""
    names, config, source = open_t5(checkpoint)
    expected = names.shapes(config, source, decoder=True)
    transposed = "logits" in names.transposed
    if not config.tied_softmax:
        shape = (config.hidden_dim, config.vocabulary_size)
        expected[names.logits] = shape[::-1] if transposed else shape
    check_shapes(expected, source, left_out=lambda name: name == names.logits)
    model = T5(config)
    model.build()
    mapping = names.targets(model)
    if model.logits is not None:
        mapping[names.logits] = Target(model.logits.kernel, transposed=transposed)
    assign_weights(mapping, source)
    return model


def encoder_outputs(checkpoint: Checkpoint, ids: Any) -> np.ndarray:
    """The outputs of a checkpoint's encoder for ids, float32 `[batch, length, dim]`."""
    model = read_sentence_t5(checkpoint)
    return np.asarray(model.encoder(model.embedding(ids), tokens=np.not_equal(ids, 0)))
