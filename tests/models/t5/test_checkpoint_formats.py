"""Which checkpoints are a T5's, and Mesh TensorFlow's with the published names.

Beside them the real names and shapes of a small one: the real file of T5X's test data has an index
and no values, and no other was at hand.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tests.models import t5_peer
from tests.models.t5.peer_arrays import PEER_IDS, own_config, peer_arrays, peer_outputs, rename
from use_st5.convert.checkpoint import Checkpoint, open_checkpoint
from use_st5.models.t5.checkpoint_formats import MESH_TENSORFLOW, MODEL_GARDEN, t5_tensors, table_of
from use_st5.models.t5.checkpoints import knows, read_sentence_t5, read_t5
from use_st5.models.t5.config import T5Config
from use_st5.models.t5.t5 import T5

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
    checkpoint = open_checkpoint(tmp_path / "model.ckpt-9")
    model = read_t5(checkpoint)
    assert model.config == own_config(activation)
    logits, encoded = peer_outputs(peer)
    starts = np.zeros((len(PEER_IDS), 1), np.int32)
    output = model({"encoder_ids": PEER_IDS, "decoder_ids": starts})
    np.testing.assert_allclose(output, logits, atol=2e-5)
    vectors = read_sentence_t5(checkpoint, pooling="first")(PEER_IDS)
    np.testing.assert_allclose(vectors, encoded[:, 0], atol=1e-5)


def test_the_real_names_and_shapes(tmp_path: Path, data_dir: Path) -> None:
    folder = data_dir / "weights/t5x-testdata/t5x/testdata/mtf_tiny_t5"
    checkpoint = open_checkpoint(folder)
    with pytest.raises(ValueError, match=r"expected data files of .*Copy the checkpoint again"):
        read_t5(checkpoint)  # all names and shapes fit; then there are no values
    rng = np.random.default_rng(0)
    tensors = {
        name: rng.normal(size=shape).astype(ml_dtypes.bfloat16)
        for name, shape in checkpoint.source.shapes().items()
    }
    write(tmp_path / "model.ckpt-0", tensors)
    model = read_t5(open_checkpoint(tmp_path / "model.ckpt-0"))
    config = model.config
    assert (config.num_layers, config.num_decoder_layers, config.num_heads) == (2, 2, 2)
    assert (config.key_value_dim, config.activation) == (64, "gated_gelu")
    bias = tensors["encoder/block_000/layer_000/SelfAttention/relative_attention_bias"]
    np.testing.assert_array_equal(model.encoder.position_bias.table, bias.astype("f").T)
    linear = tensors["decoder/block_001/layer_002/DenseReluDense/wi_1/kernel"].astype("f")
    np.testing.assert_array_equal(model.decoder.blocks[1].feed_forward.linear.kernel, linear)


def save_names(prefix: Path, *names: str) -> Checkpoint:
    zeros = [tf.zeros(2)] * len(names)
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=zeros
    )
    return open_checkpoint(prefix)


def test_checkpoints_of_tensorflow_are_known_by_their_names(tmp_path: Path) -> None:
    norm = "encoder/output_norm/weight/.ATTRIBUTES/VARIABLE_VALUE"
    mesh = save_names(tmp_path / "a", "shared/embedding", "shared/embedding_slot_vr")
    garden = save_names(tmp_path / "b", f"model/{norm}")
    for checkpoint, names in ((mesh, MESH_TENSORFLOW), (garden, MODEL_GARDEN)):
        assert table_of(checkpoint) is t5_tensors(checkpoint)[1] is names
        assert knows(checkpoint)
    other = save_names(tmp_path / "c", "bert/embeddings")
    assert not knows(other)
    with pytest.raises(ValueError, match="c: expected a T5 of Mesh TensorFlow or of the Model"):
        t5_tensors(other)
    two = save_names(tmp_path / "d", f"a/{norm}", f"b/{norm}")
    with pytest.raises(ValueError, match="expected one T5 of the Model Garden, found 2 with enc"):
        t5_tensors(two)


def test_a_model_of_the_model_garden(tmp_path: Path) -> None:
    """Written by its names; `test_model_garden` has the library itself."""
    model = T5(T5Config(30, 2, 16, 24, 3, 4, num_decoder_layers=1))
    model.build()
    tensors = {name: t.variable.numpy() for name, t in MODEL_GARDEN.targets(model).items()}
    tensors["shared_embedding/embeddings"] = tensors.pop(MODEL_GARDEN.table)
    stored = {f"a/model/{name}/.ATTRIBUTES/VARIABLE_VALUE": t for name, t in tensors.items()}
    stored |= {
        "a/model/encoder/x/.OPTIMIZER_SLOT/a/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE": np.ones(2),
        "a/model/other/.ATTRIBUTES/VARIABLE_VALUE": np.ones(2),
        "a/optimizer/encoder/.ATTRIBUTES/VARIABLE_VALUE": np.ones(2),
    }
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "ckpt"),
        tensor_names=[*stored],
        shape_and_slices=[""] * len(stored),
        tensors=[tf.constant(tensor) for tensor in stored.values()],
    )
    read = read_t5(open_checkpoint(tmp_path / "ckpt.index"))
    assert read.config == model.config
    for ours, theirs in zip(read.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
