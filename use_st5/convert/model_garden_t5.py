"""T5 from checkpoints of the TensorFlow Model Garden (tf-models-official)."""

from __future__ import annotations

import os

from use_st5.convert.renamed_source import RenamedSource
from use_st5.convert.t5_checkpoint import T5Checkpoint
from use_st5.convert.t5_names import T5Names
from use_st5.convert.tensorflow_source import TensorFlowSource

# A name by which the format is known.
NORM = "encoder/output_norm/weight"
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"

_PARTS = ("encoder/", "decoder/", "shared_embedding/")
_SLOTS = "/.OPTIMIZER_SLOT/"

# One table serves both where the model shares it; the checkpoint then has one of these names.
_TABLE = "encoder/input_embed/embeddings"
_SHARED = ("shared_embedding/embeddings", "decoder/target_embed/embeddings")

_ENCODER = {
    "position_bias": "encoder/relative_embedding/relative_attention_bias/embeddings",
    "norm": NORM,
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
_DECODER = {
    **{role: name.replace("encoder", "decoder") for role, name in _ENCODER.items()},
    "cross_norm": "decoder/decoder_layers/{n}/cross_attention/layer_norm/weight",
    "cross_query": "decoder/decoder_layers/{n}/cross_attention/cross_attention/q/w",
    "cross_key": "decoder/decoder_layers/{n}/cross_attention/cross_attention/k/w",
    "cross_value": "decoder/decoder_layers/{n}/cross_attention/cross_attention/v/w",
    "cross_output": "decoder/decoder_layers/{n}/cross_attention/cross_attention/o/w",
}
_NAMES = T5Names(table=_TABLE, encoder=_ENCODER, decoder=_DECODER, logits="decoder/logits_dense/w")


def open_model_garden_t5(path: str | os.PathLike[str]) -> T5Checkpoint:
    """Opens a checkpoint of `official.nlp.modeling.models.t5.T5Transformer`.

    It may have been written by `tf.train.Checkpoint(model=model)`, with the `checkpoint_items` of
    the model, or by the Model Garden's trainer. Optimizers are left out. Tables that encoder and
    decoder do not share, and position biases of each layer, do not fit our T5 and are reported.
    Tensors do not tell whether `rescale_query` or `layer_sharing` was set; both must be False.

    Args:
        path: The checkpoint's prefix, its index, or its folder.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        ValueError: It is damaged, or not that of such a model.
    """
    source = TensorFlowSource(path)
    suffix = NORM + VALUE
    roots = [name.removesuffix(suffix) for name in source.shapes() if name.endswith(suffix)]
    if len(roots) != 1:
        raise ValueError(
            f"{source.where}: expected a T5 of the Model Garden, found {len(roots)} with {NORM}."
        )
    names = {
        name[len(roots[0]) : -len(VALUE)]: name
        for name in source.shapes()
        if name.startswith(roots[0]) and name.endswith(VALUE) and _SLOTS not in name
    }
    names = {name: full for name, full in names.items() if name.startswith(_PARTS)}
    for shared in _SHARED:
        if _TABLE not in names and shared in names:
            names[_TABLE] = names.pop(shared)
    return T5Checkpoint(RenamedSource(source, names), _NAMES)
