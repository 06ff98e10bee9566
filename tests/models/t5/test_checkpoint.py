"""T5X and Mesh TensorFlow; other files test the Model Garden's and transformers' folders."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tests.convert.t5x_writer import write_file, write_folder
from tests.models.t5 import numpy_t5
from tests.models.t5 import peer as t5_peer
from tests.models.t5.peer import (
    PEER_IDS,
    encoder_outputs,
    own_config,
    peer_arrays,
    peer_outputs,
    read_t5,
    rename,
)
from tests.models.tensorflow_checkpoint import write_checkpoint
from use_st5.convert.checkpoint import Checkpoint, open_checkpoint
from use_st5.convert.weights import WeightSource
from use_st5.models.t5.checkpoint import (
    MESH_TENSORFLOW,
    MODEL_GARDEN,
    can_read,
    read_sentence_t5,
    t5_tensors,
    table_of,
)
from use_st5.models.t5.family import FAMILY
from use_st5.models.t5.model import T5_ROWS
from use_st5.tokenizers.sentencepiece_tokenizer import T5_VOCABULARY, SentencePieceTokenizer

IDS = [5, 17, 9, 4, 3, 31, 8, 1]

# transformers → T5X.
E, D, BOTH = (rf"{stack}\.block\.(.)\.layer\." for stack in ("encoder", "decoder", "(.+)"))
NAMES = {
    r"shared\.weight": "token_embedder/embedding",
    r"lm_head\.weight": "decoder/logits_dense/kernel",
    r"(.+)\.final_layer_norm\.weight": r"\1/\1_norm/scale",
    r"(.+)\.block.*relative_attention_bias\.weight": r"\1/relpos_bias/rel_embedding",
    E + r"0\.SelfAttention\.(.)\.weight": r"encoder/layers_\1/attention/\2/kernel",
    D + r"0\.SelfAttention\.(.)\.weight": r"decoder/layers_\1/self_attention/\2/kernel",
    D + r"1\.EncDecAttention\.(.)\.weight": (
        r"decoder/layers_\1/encoder_decoder_attention/\2/kernel"
    ),
    E + r"0\.layer_norm\.weight": r"encoder/layers_\1/pre_attention_layer_norm/scale",
    D + r"0\.layer_norm\.weight": r"decoder/layers_\1/pre_self_attention_layer_norm/scale",
    D + r"1\.layer_norm\.weight": r"decoder/layers_\1/pre_cross_attention_layer_norm/scale",
    BOTH + r".\.layer_norm\.weight": r"\1/layers_\2/pre_mlp_layer_norm/scale",
    BOTH + r".\.DenseReluDense\.(.+)\.weight": r"\1/layers_\2/mlp/\3/kernel",
}
KERNELS = {"/q/": "/query/", "/k/": "/key/", "/v/": "/value/", "/o/": "/out/"}


@pytest.mark.parametrize("gated", [True, False])
def test_an_encoder_against_numpy(tmp_path: Path, gated: bool) -> None:
    tensors = numpy_t5.arrays(gated=gated)
    write_folder(tmp_path / "checkpoint_1", tensors)
    checkpoint = open_checkpoint(tmp_path / "checkpoint_1")
    config = read_sentence_t5(checkpoint).config
    assert config.num_decoder_layers is None
    assert (config.num_heads, config.key_value_dim) == (2, 3)
    output = encoder_outputs(checkpoint, np.array([[*IDS, 0, 0]]))[0, : len(IDS)]
    np.testing.assert_allclose(output, numpy_t5.encode(tensors, IDS), atol=1e-5)


def test_a_dual_encoder_projects_and_normalises(tmp_path: Path) -> None:
    tensors = numpy_t5.arrays()
    kernel = np.random.default_rng(1).normal(size=(8, 6)).astype(np.float32)
    write_file(tmp_path / "file", {**tensors, "projection_layer/kernel": kernel})
    checkpoint = open_checkpoint(tmp_path / "file")
    vector = read_sentence_t5(checkpoint)(np.array([[*IDS, 0, 0, 0]]))[0]
    expected = numpy_t5.encode(tensors, IDS).mean(0) @ kernel
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)
    first = read_sentence_t5(checkpoint.chosen(pooling="first"))(np.array([IDS]))[0]
    expected = numpy_t5.encode(tensors, IDS)[0] @ kernel
    np.testing.assert_allclose(first, expected / np.linalg.norm(expected), atol=1e-5)
    with pytest.raises(ValueError, match=r"Unknown: projection_layer/kernel\."):
        read_t5(checkpoint)
    with pytest.raises(ValueError, match="Missing: decoder/decoder_norm/scale"):
        read_sentence_t5(checkpoint.chosen(pooling="decoder"))


def test_kernels_for_each_head(tmp_path: Path) -> None:
    tensors = numpy_t5.arrays()
    split = {
        name: tensor.reshape(2, 3, 8) if name.endswith("out/kernel") else tensor.reshape(8, 2, 3)
        for name, tensor in tensors.items()
        if "/attention/" in name
    }
    write_folder(tmp_path / "checkpoint_1", {**tensors, **split})
    output = encoder_outputs(open_checkpoint(tmp_path / "checkpoint_1"), np.array([IDS]))[0]
    np.testing.assert_allclose(output, numpy_t5.encode(tensors, IDS), atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "gated_gelu"])
def test_the_whole_model_against_transformers(tmp_path: Path, activation: str) -> None:
    pytest.importorskip("torch", reason="the extra `peers` is not installed")
    peer = t5_peer.peer(activation)
    write_folder(tmp_path / "c", peer_arrays(peer, t5x_name), chunk=40)
    checkpoint = open_checkpoint(tmp_path / "c")
    logits, encoded = peer_outputs(peer)
    model = read_t5(checkpoint)
    assert model.config == own_config(activation)
    starts = np.zeros((len(PEER_IDS), 1), np.int32)
    output = model({"encoder_ids": PEER_IDS, "decoder_ids": starts})
    np.testing.assert_allclose(output, logits, atol=2e-5)
    mask = (PEER_IDS != 0)[..., None]
    vectors = read_sentence_t5(checkpoint)(PEER_IDS)
    np.testing.assert_allclose(vectors, (encoded * mask).sum(1) / mask.sum(1), atol=1e-5)


def t5x_name(name: str) -> str:
    """The name in T5X of a tensor of transformers."""
    renamed = rename(name, NAMES)
    for letter, word in KERNELS.items():
        renamed = renamed.replace(letter, word)
    return renamed


def test_the_real_dual_encoder(data_dir: Path) -> None:
    """It is from the original code of Sentence-T5, with initial values."""
    folder = data_dir / "weights/t5x_retrieval-de_t5_tiny/t5x_retrieval/testdata"
    checkpoint = open_checkpoint(folder / "test_de_t5_tiny.checkpoint_1000")
    model, tensors = read_sentence_t5(checkpoint), real(checkpoint.source)
    assert (model.config.num_layers, model.config.activation) == (2, "relu")
    assert model.dimension == 768
    vector = model(np.array([IDS]))[0]
    expected = numpy_t5.encode(tensors, IDS).mean(0) @ tensors["projection_layer/kernel"]
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


def test_the_real_file(data_dir: Path) -> None:
    checkpoint = open_checkpoint(
        data_dir / "weights/t5x-testdata/t5x/testdata/test_t5_tiny.checkpoint_0"
    )
    model = read_t5(checkpoint)
    assert (model.config.num_heads, model.config.key_value_dim) == (4, 3)
    tensors = real(checkpoint.source)
    np.testing.assert_array_equal(model.logits.kernel, tensors["decoder/logits_dense/kernel"])
    output = encoder_outputs(checkpoint, np.array([IDS]))[0]
    np.testing.assert_allclose(output, numpy_t5.encode(tensors, IDS), atol=1e-5)


def real(source: WeightSource) -> dict[str, np.ndarray]:
    return {name: source.read(name) for name in source.shapes()}


def test_bfloat16_with_a_projection_in_float32(tmp_path: Path) -> None:
    kernel = np.eye(8, 6, dtype=np.float32)
    write_file(tmp_path / "file", {**numpy_t5.arrays(), "projection_layer/kernel": kernel})
    checkpoint = open_checkpoint(tmp_path / "file")
    model = read_sentence_t5(checkpoint, dtype="bfloat16")
    assert {v.dtype for v in model.encoder.weights} == {"bfloat16"}
    assert model.projection.kernel.dtype == "float32"
    whole = read_sentence_t5(checkpoint)(np.array([[5, 6, 1]]))
    np.testing.assert_allclose(model(np.array([[5, 6, 1]])), whole, atol=0.05)


def test_the_vocabulary_is_named_or_that_of_the_table(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    table = np.zeros((T5_ROWS, 8), np.float32)
    write_file(tmp_path / "t5", {**numpy_t5.arrays(), "token_embedder/embedding": table})
    for vocabulary in (None, T5_VOCABULARY):
        model, tokenizer = FAMILY.read(
            open_checkpoint(tmp_path / "t5").chosen(vocabulary=vocabulary)
        )
        assert model.config.vocabulary_size == T5_ROWS
        assert tokenizer.vocabulary == SentencePieceTokenizer().vocabulary
    write_file(tmp_path / "small", numpy_t5.arrays())
    small = open_checkpoint(tmp_path / "small")
    assert can_read(small)
    with pytest.raises(ValueError, match=r"has 50 rows, T5's has 32,128.*--vocabulary"):
        FAMILY.read(small)
    with pytest.raises(ValueError, match="32,000 pieces, but the table has 50 rows"):
        FAMILY.read(small.chosen(vocabulary=T5_VOCABULARY))


# transformers → the names of T5 1.1; those of 1.0 follow.
MESH_NAMES = {
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
    return rename(name, MESH_NAMES)


def name_1_0(name: str) -> str:
    final = name.count(".") == 2
    norm = "final_layer_norm" if final else "layer_norm"
    return rename(name, MESH_NAMES).replace("rms_norm", norm)


def write(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Writes a checkpoint of TensorFlow 1, with Adafactor's variables."""
    tensors = dict(tensors)
    for name in [*tensors]:
        tensors[f"{name}_slot_vr"] = tensors[f"{name}_slot_vc"] = np.ones(3, np.float32)
    tensors["global_step"] = np.int64(9)
    write_checkpoint(path, tensors)


@pytest.mark.parametrize("activation", ["relu", "gated_gelu"])
def test_mesh_tensorflow_against_transformers(tmp_path: Path, activation: str) -> None:
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
    vectors = read_sentence_t5(checkpoint.chosen(pooling="first"))(PEER_IDS)
    np.testing.assert_allclose(vectors, encoded[:, 0], atol=1e-5)


def test_the_real_names_and_shapes(tmp_path: Path, data_dir: Path) -> None:
    folder = data_dir / "weights/t5x-testdata/t5x/testdata/mtf_tiny_t5"
    with pytest.raises(ValueError, match="bytes of data"):
        open_checkpoint(folder)  # the index is whole, but the values are missing
    shapes = tf.train.load_checkpoint(str(folder / "model.ckpt-0")).get_variable_to_shape_map()
    rng = np.random.default_rng(0)
    tensors = {
        name: rng.normal(size=shape).astype(ml_dtypes.bfloat16) for name, shape in shapes.items()
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
    write_checkpoint(prefix, dict.fromkeys(names, np.zeros(2, np.float32)))
    return open_checkpoint(prefix)


def test_checkpoints_of_tensorflow_are_known_by_their_names(tmp_path: Path) -> None:
    norm = "encoder/output_norm/weight/.ATTRIBUTES/VARIABLE_VALUE"
    mesh = save_names(tmp_path / "a", "shared/embedding", "shared/embedding_slot_vr")
    garden = save_names(tmp_path / "b", f"model/{norm}")
    for checkpoint, names in ((mesh, MESH_TENSORFLOW), (garden, MODEL_GARDEN)):
        assert table_of(checkpoint) is t5_tensors(checkpoint)[1] is names
        assert can_read(checkpoint)
    other = save_names(tmp_path / "c", "bert/embeddings")
    assert not can_read(other)
    with pytest.raises(ValueError, match="c: expected a T5 of Mesh TensorFlow or the Model"):
        t5_tensors(other)
    two = save_names(tmp_path / "d", f"a/{norm}", f"b/{norm}")
    with pytest.raises(ValueError, match="expected one T5, found those of a/, b/"):
        t5_tensors(two)
