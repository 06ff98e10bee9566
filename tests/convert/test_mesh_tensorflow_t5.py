"""On checkpoints with the published names, and on the real names and shapes of a small one.

The real file of T5X's test data has an index and no values, and no other was at hand.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tests.convert.peer_arrays import PEER_IDS, own_config, peer_arrays, peer_outputs, rename
from tests.models import t5_peer
from use_st5.convert.mesh_tensorflow_t5 import open_mesh_tensorflow_t5

# transformers → the names of T5 1.1; those of 1.0 follow.
NAMES = {
    r"shared\.weight": "shared/embedding",
    r"lm_head\.weight": "decoder/logits/kernel",
    r"(.+)\.final_layer_norm\.weight": r"\1/rms_norm/scale",
    r"(.+)\.block\.(.)\.layer\.(.)\.layer_norm\.weight": r"\1/block_00\2/layer_00\3/rms_norm/scale",
    r"(.+)\.block\.(.)\.layer\.(.)\.(\w+Attention)\.(.+?)(?:\.weight)": (
        r"\1/block_00\2/layer_00\3/\4/\5"
    ),
    r"(.+)\.block\.(.)\.layer\.(.)\.DenseReluDense\.(.+)\.weight": (
        r"\1/block_00\2/layer_00\3/DenseReluDense/\4/kernel"
    ),
}


def name_1_1(name: str) -> str:
    return rename(name, NAMES)


def name_1_0(name: str) -> str:
    final = name.count(".") == 2
    return rename(name, NAMES).replace("rms_norm", "final_layer_norm" if final else "layer_norm")


def write(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """A checkpoint of TensorFlow 1, with Adafactor's variables."""
    tensors = dict(tensors)
    for name in [*tensors]:
        tensors[f"{name}_slot_vr"] = tensors[f"{name}_slot_vc"] = np.ones(3, np.float32)
    tensors["global_step"] = np.int64(9)
    tf.raw_ops.SaveV2(
        prefix=str(path),
        tensor_names=[*tensors],
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(tensor) for tensor in tensors.values()],
    )


@pytest.mark.parametrize("activation", ["relu", "gated_gelu"])
def test_the_whole_model_against_transformers(tmp_path: Path, activation: str) -> None:
    pytest.importorskip("torch", reason="the extra `peers` is not installed")
    peer = t5_peer.peer(activation)
    tensors = peer_arrays(peer, name_1_0 if activation == "relu" else name_1_1)
    assert ("encoder/final_layer_norm/scale" in tensors) == (activation == "relu")
    write(tmp_path / "model.ckpt-9", tensors)
    checkpoint = open_mesh_tensorflow_t5(tmp_path / "model.ckpt-9")
    assert checkpoint.config == own_config(activation)
    logits, encoded = peer_outputs(peer)
    starts = np.zeros((len(PEER_IDS), 1), np.int32)
    output = checkpoint.load_t5()({"encoder_ids": PEER_IDS, "decoder_ids": starts})
    np.testing.assert_allclose(output, logits, atol=2e-5)
    vectors = checkpoint.load_sentence_t5(pooling="first")(PEER_IDS)
    np.testing.assert_allclose(vectors, encoded[:, 0], atol=1e-5)


def test_the_real_names_and_shapes(tmp_path: Path, data_dir: Path) -> None:
    folder = data_dir / "weights/t5x-testdata/t5x/testdata/mtf_tiny_t5"
    checkpoint = open_mesh_tensorflow_t5(folder)
    config = checkpoint.config
    assert (config.num_layers, config.num_decoder_layers, config.num_heads) == (2, 2, 2)
    assert (config.key_value_dim, config.activation) == (64, "gated_gelu")
    with pytest.raises(ValueError, match=r"expected data files of .*Copy the checkpoint again"):
        checkpoint.load_t5()  # all names and shapes fit; then there are no values
    rng = np.random.default_rng(0)
    tensors = {
        name: rng.normal(size=shape).astype(ml_dtypes.bfloat16)
        for name, shape in checkpoint.source.shapes().items()
    }
    write(tmp_path / "model.ckpt-0", tensors)
    model = open_mesh_tensorflow_t5(tmp_path / "model.ckpt-0").load_t5()
    bias = tensors["encoder/block_000/layer_000/SelfAttention/relative_attention_bias"]
    np.testing.assert_array_equal(model.encoder.position_bias.table, bias.astype("f").T)
    linear = tensors["decoder/block_001/layer_002/DenseReluDense/wi_1/kernel"].astype("f")
    np.testing.assert_array_equal(model.decoder.blocks[1].feed_forward.linear.kernel, linear)
