"""T5, T5 1.1 and mT5 from the TensorFlow checkpoints of Mesh TensorFlow, their first release."""

from __future__ import annotations

import os

from use_st5.convert.renamed_source import RenamedSource
from use_st5.convert.t5_checkpoint import T5Checkpoint
from use_st5.convert.t5_names import T5Names
from use_st5.convert.tensorflow_source import TensorFlowSource

TABLE = "shared/embedding"

# Adafactor's moments lie beside each weight, as `q_slot_v`, `q_slot_vr` and `q_slot_vc`.
_SLOT = "_slot_"
_STEP = "global_step"

_ENCODER = {
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
_DECODER = {
    **{
        role: name.replace("encoder", "decoder").replace("layer_001", "layer_002")
        for role, name in _ENCODER.items()
    },
    "cross_norm": "decoder/block_{n:03d}/layer_001/layer_norm/scale",
    "cross_query": "decoder/block_{n:03d}/layer_001/EncDecAttention/q",
    "cross_key": "decoder/block_{n:03d}/layer_001/EncDecAttention/k",
    "cross_value": "decoder/block_{n:03d}/layer_001/EncDecAttention/v",
    "cross_output": "decoder/block_{n:03d}/layer_001/EncDecAttention/o",
}
_NAMES = T5Names(
    table=TABLE,
    encoder=_ENCODER,
    decoder=_DECODER,
    logits="decoder/logits/kernel",
    transposed=frozenset({"position_bias"}),
)


def open_mesh_tensorflow_t5(path: str | os.PathLike[str]) -> T5Checkpoint:
    """Opens a checkpoint of the original T5 code; the optimizer's variables are left out.

    Args:
        path: `model.ckpt-N`, its index, or its folder.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        ValueError: It is damaged.
    """
    source = TensorFlowSource(path)
    names = [name for name in source.shapes() if _SLOT not in name and name != _STEP]
    return T5Checkpoint(RenamedSource(source, {_as_in_1_0(name): name for name in names}), _NAMES)


def _as_in_1_0(name: str) -> str:
    """Since T5 1.1 the norms are called otherwise."""
    if name.count("/") == 2:
        return name.replace("/rms_norm/", "/final_layer_norm/")
    return name.replace("/rms_norm/", "/layer_norm/")
