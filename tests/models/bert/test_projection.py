"""Dense layers and layer norms behind the pooling, against sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import use_st5
from tests.corpora_folder import WORDS
from tests.tiny_bert import VOCABULARY, write_tiny_bert
from use_st5 import TrainableEncoder
from use_st5.models.bert.model import BertConfig, SentenceBert
from use_st5.models.bert.projection import NormConfig, ProjectionConfig, config_of

TEXTS = [f"a {word} is a kind of {other}" for word in VOCABULARY[5:15] for other in WORDS[:5]]
# Each item is "norm", or a width, whether there is a bias, and torch's activation.
Chain = list[Any]


def peer_with(folder: Path, chain: Chain, *, normalize: bool) -> Any:
    """A tiny model of sentence-transformers with random modules behind the pooling."""
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    peers = pytest.importorskip("sentence_transformers.models")
    from sentence_transformers import SentenceTransformer

    torch.manual_seed(0)
    modules: list[Any] = [peers.Transformer(str(write_tiny_bert(folder, head=False)))]
    modules.append(peers.Pooling(8, pooling_mode="mean"))
    width = 8
    for each in chain:
        if each == "norm":
            modules.append(peers.LayerNorm(width))
            continue
        units, bias, activation = each
        modules.append(peers.Dense(width, units, bias=bias, activation_function=activation))
        width = units
    if normalize:
        modules.append(peers.Normalize())
    for module in modules[2:]:
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter)
    return SentenceTransformer(modules=modules, device="cpu").eval()


CHAINS: dict[str, tuple[Callable[[Any], Chain], bool]] = {
    "several activations": (
        lambda nn: [(12, True, nn.Tanh()), (7, False, nn.GELU()), (9, True, nn.Sigmoid())],
        False,
    ),
    # As EmbeddingGemma has them.
    "two without activation": (
        lambda nn: [(24, False, nn.Identity()), (6, False, nn.Identity())],
        True,
    ),
    "a norm first": (lambda nn: ["norm", (5, True, nn.ReLU()), "norm"], False),
    "a norm alone": (lambda nn: ["norm"], True),
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_vectors_are_those_of_sentence_transformers(name: str, tmp_path: Path) -> None:
    """They are compared when read, exported, read again, and run on ONNX Runtime."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    made, normalize = CHAINS[name]
    peer = peer_with(tmp_path / "tiny", made(torch.nn), normalize=normalize)
    peer.save(str(tmp_path / "peer"))
    expected = peer.encode(TEXTS)
    encoder = TrainableEncoder.load(tmp_path / "peer")
    assert encoder.dimension == expected.shape[1]
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    for precision, atol in (("float32", 1e-5), ("int8", 0.2)):
        encoder.export(tmp_path / precision, precision=precision)
        for backend in ("tensorflow", "onnx"):
            if backend == "onnx":
                pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
            found = use_st5.load(tmp_path / precision, backend=backend).encode(TEXTS)
            np.testing.assert_allclose(found, expected, atol=atol)
    again = TrainableEncoder.load(tmp_path / "float32")
    np.testing.assert_allclose(again.encode(TEXTS), expected, atol=1e-5)


def test_the_configuration_of_a_model_makes_it_again() -> None:
    config = BertConfig(12, 1, 8, 16, 2)
    after = (NormConfig(), ProjectionConfig(5, False, "relu"), NormConfig(1e-3))
    model = SentenceBert(config, after=after)
    model.build()
    again = SentenceBert.from_config(model.get_config())
    assert (again.after, again.dense, again.dimension) == (after, None, 5)
    plain = SentenceBert(config, dense=ProjectionConfig(6))
    assert "after" not in plain.get_config(), "older versions read it"
    assert plain.dimension == 6


def test_the_fields_tell_the_layers_apart() -> None:
    assert config_of({"epsilon": 1e-5}) == NormConfig()
    fields = {"units": 3, "use_bias": False, "activation": "gelu"}
    assert config_of(fields) == ProjectionConfig(3, False, "gelu")
