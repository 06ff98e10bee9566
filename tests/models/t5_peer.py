"""Copies the weights of a transformers T5 into ours, name by name."""

from __future__ import annotations

from typing import Any

from use_st5.layers.attention import MultiHeadAttention
from use_st5.models.t5.model import T5Config, T5Stack

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


def copy_stack(ours: T5Stack, theirs: Any) -> None:
    """Copies an encoder or a decoder."""
    first = theirs.block[0].layer[0].SelfAttention
    put(ours.position_bias.table, first.relative_attention_bias.weight)
    for block, their_block in zip(ours.blocks, theirs.block, strict=True):
        parts = their_block.layer
        put(block.attention_norm.scale, parts[0].layer_norm.weight)
        _copy_attention(block.attention, parts[0].SelfAttention)
        if block.decoder:
            put(block.cross_norm.scale, parts[1].layer_norm.weight)
            _copy_attention(block.cross, parts[1].EncDecAttention)
        put(block.feed_forward_norm.scale, parts[-1].layer_norm.weight)
        _copy_feed_forward(block.feed_forward, parts[-1].DenseReluDense)
    put(ours.norm.scale, theirs.final_layer_norm.weight)


def put(variable: Any, tensor: Any, *, transposed: bool = False) -> None:
    """Assigns a torch tensor; torch's dense kernels are transposed."""
    array = tensor.detach().numpy()
    variable.assign(array.T if transposed else array)


def _copy_attention(ours: MultiHeadAttention, theirs: Any) -> None:
    pairs = {"query": "q", "key": "k", "value": "v", "output_dense": "o"}
    for name, their_name in pairs.items():
        put(getattr(ours, name).kernel, getattr(theirs, their_name).weight, transposed=True)


def _copy_feed_forward(ours: Any, theirs: Any) -> None:
    if ours.linear is not None:
        put(ours.inner.kernel, theirs.wi_0.weight, transposed=True)
        put(ours.linear.kernel, theirs.wi_1.weight, transposed=True)
    else:
        put(ours.inner.kernel, theirs.wi.weight, transposed=True)
    put(ours.outer.kernel, theirs.wo.weight, transposed=True)
