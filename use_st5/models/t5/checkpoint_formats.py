"""What each format of checkpoints calls the tensors of a T5."""

from __future__ import annotations

from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.weight_source import RenamedSource, WeightSource
from use_st5.models.t5.checkpoint_names import T5Names

_HF_ENCODER = {
    "position_bias": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "norm": "encoder.final_layer_norm.weight",
    "attention_norm": "encoder.block.{n}.layer.0.layer_norm.weight",
    "query": "encoder.block.{n}.layer.0.SelfAttention.q.weight",
    "key": "encoder.block.{n}.layer.0.SelfAttention.k.weight",
    "value": "encoder.block.{n}.layer.0.SelfAttention.v.weight",
    "output": "encoder.block.{n}.layer.0.SelfAttention.o.weight",
    "feed_forward_norm": "encoder.block.{n}.layer.1.layer_norm.weight",
    "inner": "encoder.block.{n}.layer.1.DenseReluDense.wi.weight",
    "gate": "encoder.block.{n}.layer.1.DenseReluDense.wi_0.weight",
    "linear": "encoder.block.{n}.layer.1.DenseReluDense.wi_1.weight",
    "outer": "encoder.block.{n}.layer.1.DenseReluDense.wo.weight",
}
_HF_DECODER = {
    **{
        role: name.replace("encoder", "decoder").replace("layer.1", "layer.2")
        for role, name in _HF_ENCODER.items()
    },
    "cross_norm": "decoder.block.{n}.layer.1.layer_norm.weight",
    "cross_query": "decoder.block.{n}.layer.1.EncDecAttention.q.weight",
    "cross_key": "decoder.block.{n}.layer.1.EncDecAttention.k.weight",
    "cross_value": "decoder.block.{n}.layer.1.EncDecAttention.v.weight",
    "cross_output": "decoder.block.{n}.layer.1.EncDecAttention.o.weight",
}
HUGGING_FACE = T5Names(
    table="shared.weight",
    encoder=_HF_ENCODER,
    decoder=_HF_DECODER,
    logits="lm_head.weight",
    # torch's dense kernels are.
    transposed=frozenset(
        {"query", "key", "value", "output", "inner", "gate", "linear", "outer", "logits"}
        | {"cross_query", "cross_key", "cross_value", "cross_output"}
    ),
)

_T5X_ENCODER = {
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
_T5X_DECODER = {
    **{role: name.replace("encoder", "decoder") for role, name in _T5X_ENCODER.items()},
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
T5X = T5Names(
    table="token_embedder/embedding",
    encoder=_T5X_ENCODER,
    decoder=_T5X_DECODER,
    logits="decoder/logits_dense/kernel",
    projection="projection_layer/kernel",
    transposed=frozenset({"position_bias"}),
)

# As in T5 1.0; see `_as_in_1_0`.
_MESH_ENCODER = {
    "position_bias": "encoder/block_000/layer_000/SelfAttention/relative_attention_bias",
    "norm": "encoder/final_layer_norm/scale",
    "attention_norm": "encoder/block_{n:03d}/layer_000/layer_norm/scale",
    "query": "encoder/block_{n:03d}/layer_000/SelfAttention/q",
    "key": "encoder/block_{n:03d}/layer_000/SelfAttention/k",
    "value": "encoder/block_{n:03d}/layer_000/SelfAttention/v",
    "output": "encoder/block_{n:03d}/layer_000/SelfAttention/o",
    "feed_forward_norm": "encoder/block_{n:03d}/layer_001/layer_norm/scale",
    "inner": "encoder/block_{n:03d}/layer_001/DenseReluDense/wi/kernel",
    "gate": "encoder/block_{n:03d}/layer_001/DenseReluDense/wi_0/kernel",
    "linear": "encoder/block_{n:03d}/layer_001/DenseReluDense/wi_1/kernel",
    "outer": "encoder/block_{n:03d}/layer_001/DenseReluDense/wo/kernel",
}
_MESH_DECODER = {
    **{
        role: name.replace("encoder", "decoder").replace("layer_001", "layer_002")
        for role, name in _MESH_ENCODER.items()
    },
    "cross_norm": "decoder/block_{n:03d}/layer_001/layer_norm/scale",
    "cross_query": "decoder/block_{n:03d}/layer_001/EncDecAttention/q",
    "cross_key": "decoder/block_{n:03d}/layer_001/EncDecAttention/k",
    "cross_value": "decoder/block_{n:03d}/layer_001/EncDecAttention/v",
    "cross_output": "decoder/block_{n:03d}/layer_001/EncDecAttention/o",
}
MESH_TENSORFLOW = T5Names(
    table="shared/embedding",
    encoder=_MESH_ENCODER,
    decoder=_MESH_DECODER,
    logits="decoder/logits/kernel",
    transposed=frozenset({"position_bias"}),
)

_GARDEN_ENCODER = {
    "position_bias": "encoder/relative_embedding/relative_attention_bias/embeddings",
    "norm": "encoder/output_norm/weight",
    "attention_norm": "encoder/encoder_layers/{n}/self_attention/layer_norm/weight",
    "query": "encoder/encoder_layers/{n}/self_attention/self_attention/q/w",
    "key": "encoder/encoder_layers/{n}/self_attention/self_attention/k/w",
    "value": "encoder/encoder_layers/{n}/self_attention/self_attention/v/w",
    "output": "encoder/encoder_layers/{n}/self_attention/self_attention/o/w",
    "feed_forward_norm": "encoder/encoder_layers/{n}/ffn_layer_norm/weight",
    "inner": "encoder/encoder_layers/{n}/ffn/wi/0/w",
    "gate": "encoder/encoder_layers/{n}/ffn/wi/0/w",
    "linear": "encoder/encoder_layers/{n}/ffn/wi/1/w",
    "outer": "encoder/encoder_layers/{n}/ffn/wo/w",
}
_GARDEN_DECODER = {
    **{role: name.replace("encoder", "decoder") for role, name in _GARDEN_ENCODER.items()},
    "cross_norm": "decoder/decoder_layers/{n}/cross_attention/layer_norm/weight",
    "cross_query": "decoder/decoder_layers/{n}/cross_attention/cross_attention/q/w",
    "cross_key": "decoder/decoder_layers/{n}/cross_attention/cross_attention/k/w",
    "cross_value": "decoder/decoder_layers/{n}/cross_attention/cross_attention/v/w",
    "cross_output": "decoder/decoder_layers/{n}/cross_attention/cross_attention/o/w",
}
MODEL_GARDEN = T5Names(
    table="encoder/input_embed/embeddings",
    encoder=_GARDEN_ENCODER,
    decoder=_GARDEN_DECODER,
    logits="decoder/logits_dense/w",
)

# Of Hugging Face: copies of the table, the first of them in some folders the only one, and a bias
# that the original model never used.
_COPY = "encoder.embed_tokens.weight"
_DUPLICATES = {
    _COPY,
    "decoder.embed_tokens.weight",
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
}

# Layers of t5x's `scalable_t5` are one array each kind, of which the layer is an axis: below
# "encoder/layers", in older versions "encoder/encoder". It is another model: every layer has a
# relative position bias of its own (UMT5), while those of T5 and mT5 share that of the first.
_SCANNED = tuple(
    f"{stack}/{name}/" for stack in ("encoder", "decoder") for name in ("layers", stack)
)

# Of the Model Garden: what belongs to the model, and the names of a table that both stacks share.
_PARTS = ("encoder/", "decoder/", "shared_embedding/")
_SHARED = ("shared_embedding/embeddings", "decoder/target_embed/embeddings")


def table_of(checkpoint: Checkpoint) -> T5Names | None:
    """The table by whose names a T5 is to be read; None: the tensors are not those of one.

    Of a folder its settings say whether it is a T5; T5X's files hold nothing else.
    """
    if checkpoint.folder is not None:
        return HUGGING_FACE
    if checkpoint.format == "T5X":
        return T5X
    if MESH_TENSORFLOW.table in checkpoint.source.shapes():
        return MESH_TENSORFLOW
    return MODEL_GARDEN if _gardens(checkpoint.source) else None


def t5_tensors(checkpoint: Checkpoint) -> tuple[WeightSource, T5Names]:
    """The tensors of a T5 in a checkpoint, and the table by which they are called.

    A checkpoint of the Model Garden is one of `official.nlp.modeling.models.t5.T5Transformer`,
    written by `tf.train.Checkpoint(model=model)`, with the `checkpoint_items` of the model, or by
    the Model Garden's trainer. Tables that encoder and decoder do not share, and position biases of
    each layer, do not fit our T5 and are reported. Tensors do not tell whether `rescale_query` or
    `layer_sharing` was set; both must be False.

    Raises:
        ValueError: They are not those of a T5, or its layers are stacked.
    """
    source, names = checkpoint.source, table_of(checkpoint)
    if names is None:
        raise ValueError(
            f"{source.where}: expected a T5 of Mesh TensorFlow or of the Model Garden, found "
            f"neither {MESH_TENSORFLOW.table} nor {MODEL_GARDEN.encoder['norm']}."
        )
    if names is HUGGING_FACE:
        source = _without_copies(source)
    elif names is T5X:
        _check_unstacked(source)
    elif names is MESH_TENSORFLOW:
        source = RenamedSource(source, {_as_in_1_0(name): name for name in source.shapes()})
    else:
        source = _of_garden(source)
    return source, names


def _without_copies(source: WeightSource) -> WeightSource:
    """The table goes by one name; its copies, and what no model has, are not seen."""
    names = {name: name for name in source.shapes() if name not in _DUPLICATES}
    if HUGGING_FACE.table not in names and _COPY in source.shapes():
        names[HUGGING_FACE.table] = _COPY
    return RenamedSource(source, names)


def _check_unstacked(source: WeightSource) -> None:
    if stacked := [name for name in source.shapes() if name.startswith(_SCANNED)]:
        raise ValueError(
            f"{source.where}: expected an array for each layer, found {stacked[0]}: the layers are "
            "stacked, as t5x's scalable_t5 with scan_layers=True stores them. That is not T5's "
            "model, since each of its layers has a position bias of its own, as in UMT5. Use a "
            "checkpoint of t5x's t5 (T5, T5 1.1, mT5)."
        )


def _as_in_1_0(name: str) -> str:
    """Since T5 1.1 the norms of Mesh TensorFlow are called otherwise."""
    if name.count("/") == 2:
        return name.replace("/rms_norm/", "/final_layer_norm/")
    return name.replace("/rms_norm/", "/layer_norm/")


def _gardens(source: WeightSource) -> list[str]:
    """Of each model of the Model Garden what stands before the names of the table."""
    norm = MODEL_GARDEN.encoder["norm"]
    return [name.removesuffix(norm) for name in source.shapes() if name.endswith(norm)]


def _of_garden(source: WeightSource) -> WeightSource:
    """What belongs to the model, and the table by one name."""
    root, *others = _gardens(source)
    if others:
        raise ValueError(
            f"{source.where}: expected one T5 of the Model Garden, found {1 + len(others)} with "
            f"{MODEL_GARDEN.encoder['norm']}."
        )
    below = {name.removeprefix(root): name for name in source.shapes() if name.startswith(root)}
    names = {name: stored for name, stored in below.items() if name.startswith(_PARTS)}
    for shared in _SHARED:
        if MODEL_GARDEN.table not in names and shared in names:
            names[MODEL_GARDEN.table] = names.pop(shared)
    return RenamedSource(source, names)
