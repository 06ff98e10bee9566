"""T5, T5 1.1, mT5 and Sentence-T5 from T5X checkpoints."""

from __future__ import annotations

import os

from use_st5.convert.t5_checkpoint import T5Checkpoint
from use_st5.convert.t5_names import T5Names
from use_st5.convert.t5x_source import T5XSource

_ENCODER = {
    "position_bias": "encoder/relpos_bias/rel_embedding",
    "norm": "encoder/encoder_norm/scale",
    "attention_norm": "encoder/layers_{n}/pre_attention_layer_norm/scale",
    "query": "encoder/layers_{n}/attention/query/kernel",
    "key": "encoder/layers_{n}/attention/key/kernel",
    "value": "encoder/layers_{n}/attention/value/kernel",
    "output": "encoder/layers_{n}/attention/out/kernel",
    "feed_forward_norm": "encoder/layers_{n}/pre_mlp_layer_norm/scale",
    "inner": "encoder/layers_{n}/mlp/wi/kernel",
    "gate": "encoder/layers_{n}/mlp/wi_0/kernel",
    "linear": "encoder/layers_{n}/mlp/wi_1/kernel",
    "outer": "encoder/layers_{n}/mlp/wo/kernel",
}
_DECODER = {
    **{role: name.replace("encoder", "decoder") for role, name in _ENCODER.items()},
    "attention_norm": "decoder/layers_{n}/pre_self_attention_layer_norm/scale",
    "query": "decoder/layers_{n}/self_attention/query/kernel",
    "key": "decoder/layers_{n}/self_attention/key/kernel",
    "value": "decoder/layers_{n}/self_attention/value/kernel",
    "output": "decoder/layers_{n}/self_attention/out/kernel",
    "cross_norm": "decoder/layers_{n}/pre_cross_attention_layer_norm/scale",
    "cross_query": "decoder/layers_{n}/encoder_decoder_attention/query/kernel",
    "cross_key": "decoder/layers_{n}/encoder_decoder_attention/key/kernel",
    "cross_value": "decoder/layers_{n}/encoder_decoder_attention/value/kernel",
    "cross_output": "decoder/layers_{n}/encoder_decoder_attention/out/kernel",
}
_NAMES = T5Names(
    table="token_embedder/embedding",
    encoder=_ENCODER,
    decoder=_DECODER,
    logits="decoder/logits_dense/kernel",
    projection="projection_layer/kernel",
    transposed=frozenset({"position_bias"}),
)

# Layers of t5x's `scalable_t5` are one array each kind, of which the layer is an axis: below
# "encoder/layers", in older versions "encoder/encoder". It is another model: every layer has a
# relative position bias of its own (UMT5), while those of T5 and mT5 share that of the first.
_SCANNED = tuple(
    f"{stack}/{name}/" for stack in ("encoder", "decoder") for name in ("layers", stack)
)


def open_t5x_t5(path: str | os.PathLike[str]) -> T5Checkpoint:
    """Opens a T5X checkpoint of a T5, or of the dual encoder that Sentence-T5 is.

    Both towers of a dual encoder are one; `T5Checkpoint.load_sentence_t5` gives it its projection.

    Args:
        path: A folder `checkpoint_N`, or a file of the older form.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        ValueError: It is damaged, or its layers are stacked.
    """
    source = T5XSource(path)
    if stacked := [name for name in source.shapes() if name.startswith(_SCANNED)]:
        raise ValueError(
            f"{source.where}: expected an array for each layer, found {stacked[0]}: the layers are "
            "stacked, as t5x's scalable_t5 with scan_layers=True stores them. That is not T5's "
            "model, since each of its layers has a position bias of its own, as in UMT5. Use a "
            "checkpoint of t5x's t5 (T5, T5 1.1, mT5)."
        )
    return T5Checkpoint(source, _NAMES)
