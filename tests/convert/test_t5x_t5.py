from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.convert import numpy_t5
from tests.convert.peer_arrays import PEER_IDS, own_config, peer_arrays, peer_outputs, rename
from tests.convert.t5x_writer import write_file, write_folder
from tests.models import t5_peer
from use_st5.convert.t5x_t5 import open_t5x_t5
from use_st5.convert.weight_source import WeightSource

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
    checkpoint = open_t5x_t5(tmp_path / "checkpoint_1")
    assert checkpoint.config.num_decoder_layers is None
    assert (checkpoint.config.num_heads, checkpoint.config.key_value_dim) == (2, 3)
    encoder = checkpoint.load_t5(with_decoder=False)
    output = encoder({"encoder_ids": np.array([[*IDS, 0, 0]])})[0, : len(IDS)]
    np.testing.assert_allclose(output, numpy_t5.encode(tensors, IDS), atol=1e-5)


def test_a_dual_encoder_projects_and_normalises(tmp_path: Path) -> None:
    tensors = numpy_t5.arrays()
    kernel = np.random.default_rng(1).normal(size=(8, 6)).astype(np.float32)
    write_file(tmp_path / "file", {**tensors, "projection_layer/kernel": kernel})
    checkpoint = open_t5x_t5(tmp_path / "file")
    vector = checkpoint.load_sentence_t5()(np.array([[*IDS, 0, 0, 0]]))[0]
    expected = numpy_t5.encode(tensors, IDS).mean(0) @ kernel
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)
    first = checkpoint.load_sentence_t5(pooling="first")(np.array([IDS]))[0]
    expected = numpy_t5.encode(tensors, IDS)[0] @ kernel
    np.testing.assert_allclose(first, expected / np.linalg.norm(expected), atol=1e-5)
    with pytest.raises(ValueError, match=r"Left over: projection_layer/kernel\."):
        checkpoint.load_t5(with_decoder=False)
    with pytest.raises(ValueError, match="Missing: decoder/decoder_norm/scale"):
        checkpoint.load_sentence_t5(pooling="decoder")


def test_kernels_for_each_head(tmp_path: Path) -> None:
    tensors = numpy_t5.arrays()
    split = {
        name: tensor.reshape(2, 3, 8) if name.endswith("out/kernel") else tensor.reshape(8, 2, 3)
        for name, tensor in tensors.items()
        if "/attention/" in name
    }
    write_folder(tmp_path / "checkpoint_1", {**tensors, **split})
    encoder = open_t5x_t5(tmp_path / "checkpoint_1").load_t5(with_decoder=False)
    output = encoder({"encoder_ids": np.array([IDS])})[0]
    np.testing.assert_allclose(output, numpy_t5.encode(tensors, IDS), atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "gated_gelu"])
def test_the_whole_model_against_transformers(tmp_path: Path, activation: str) -> None:
    pytest.importorskip("torch", reason="the extra `peers` is not installed")
    peer = t5_peer.peer(activation)
    write_folder(tmp_path / "c", peer_arrays(peer, t5x_name), chunk=40)
    checkpoint = open_t5x_t5(tmp_path / "c")
    assert checkpoint.config == own_config(activation)
    logits, encoded = peer_outputs(peer)
    model = checkpoint.load_t5()
    starts = np.zeros((len(PEER_IDS), 1), np.int32)
    output = model({"encoder_ids": PEER_IDS, "decoder_ids": starts})
    np.testing.assert_allclose(output, logits, atol=2e-5)
    mask = (PEER_IDS != 0)[..., None]
    vectors = checkpoint.load_sentence_t5()(PEER_IDS)
    np.testing.assert_allclose(vectors, (encoded * mask).sum(1) / mask.sum(1), atol=1e-5)


def t5x_name(name: str) -> str:
    """The name in T5X of a tensor of transformers."""
    renamed = rename(name, NAMES)
    for letter, word in KERNELS.items():
        renamed = renamed.replace(letter, word)
    return renamed


def test_the_real_dual_encoder(data_dir: Path) -> None:
    """Of the original code base of Sentence-T5, with initial values."""
    folder = data_dir / "weights/t5x_retrieval-de_t5_tiny/t5x_retrieval/testdata"
    checkpoint = open_t5x_t5(folder / "test_de_t5_tiny.checkpoint_1000")
    assert (checkpoint.config.num_layers, checkpoint.config.activation) == (2, "relu")
    assert checkpoint.projection_dim == 768
    tensors, vector = real(checkpoint.source), checkpoint.load_sentence_t5()(np.array([IDS]))[0]
    expected = numpy_t5.encode(tensors, IDS).mean(0) @ tensors["projection_layer/kernel"]
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


def test_the_real_file(data_dir: Path) -> None:
    checkpoint = open_t5x_t5(
        data_dir / "weights/t5x-testdata/t5x/testdata/test_t5_tiny.checkpoint_0"
    )
    assert (checkpoint.config.num_heads, checkpoint.config.key_value_dim) == (4, 3)
    model = checkpoint.load_t5()
    tensors = real(checkpoint.source)
    np.testing.assert_array_equal(model.logits.kernel, tensors["decoder/logits_dense/kernel"])
    output = checkpoint.load_t5(with_decoder=False)({"encoder_ids": np.array([IDS])})[0]
    np.testing.assert_allclose(output, numpy_t5.encode(tensors, IDS), atol=1e-5)


def real(source: WeightSource) -> dict[str, np.ndarray]:
    return {name: source.read(name) for name in source.shapes()}


@pytest.mark.parametrize("layers", ["encoder/encoder", "decoder/layers"])
def test_stacked_layers_are_refused_with_the_reason(tmp_path: Path, layers: str) -> None:
    write_file(tmp_path / "file", {f"{layers}/mlp/wo/kernel": np.zeros((2, 2, 2))})
    with pytest.raises(ValueError, match=f"found {layers}.* stacked, .* as in UMT5"):
        open_t5x_t5(tmp_path / "file")
