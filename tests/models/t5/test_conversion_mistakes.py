"""Known mistakes in conversions of Sentence-T5, each made on purpose.

Each is made in the independent encoder of `numpy_t5`, or in its arrays, and must move its vector
away from ours, which equals the right one. Users have met the mistakes (a) to (k).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import erf

from tests.convert.t5x_writer import write_file
from tests.models.t5 import numpy_t5
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.models.t5.checkpoint import read_sentence_t5
from use_st5.models.t5.model import T5_PRESETS, T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5

IDS = [5, 17, 9, 4, 3, 31, 8, 22, 41, 6, 11, 1]
PROJECTION = np.random.default_rng(1).normal(size=(8, 6)).astype(np.float32)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def right(tensors: numpy_t5.Arrays) -> np.ndarray:
    """The sentence vector as the original computes it."""
    return unit(numpy_t5.encode(tensors, IDS).mean(0) @ PROJECTION)


@pytest.fixture(params=[True, False], ids=["gated", "plain"])
def tensors(request: pytest.FixtureRequest) -> numpy_t5.Arrays:
    return numpy_t5.arrays(gated=request.param)


@pytest.fixture
def ours(tensors: numpy_t5.Arrays, tmp_path: Path) -> np.ndarray:
    """Our vector from the checkpoint, after a check that it is the right one."""
    write_file(tmp_path / "file", {**tensors, "projection_layer/kernel": PROJECTION})
    vector = read_sentence_t5(open_checkpoint(tmp_path / "file"))(np.array([IDS]))[0]
    np.testing.assert_allclose(vector, right(tensors), atol=1e-5)
    return np.asarray(vector)


def assert_another(ours: np.ndarray, mistaken: np.ndarray) -> None:
    assert np.abs(ours - mistaken).max() > 1e-3


def scaled(tensors: numpy_t5.Arrays, part: str, factor: float) -> numpy_t5.Arrays:
    return {n: t * factor if part in n else t for n, t in tensors.items()}


def test_a_the_end_of_the_sentence_is_in_the_mean(
    ours: np.ndarray, tensors: numpy_t5.Arrays
) -> None:
    encoded = numpy_t5.encode(tensors, IDS)
    assert_another(ours, unit(encoded[:-1].mean(0) @ PROJECTION))
    assert_another(ours, unit(numpy_t5.encode(tensors, IDS[:-1]).mean(0) @ PROJECTION))


def test_c_scores_are_not_divided_by_the_root_of_the_width(
    ours: np.ndarray, tensors: numpy_t5.Arrays
) -> None:
    assert_another(ours, right(scaled(tensors, "/query/", 3**-0.5)))


def test_d_the_norm_has_no_mean_and_a_small_epsilon(
    ours: np.ndarray, tensors: numpy_t5.Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    def layer_norm(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6) * scale

    def coarse(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-2) * scale

    for mistake in (layer_norm, coarse):
        monkeypatch.setattr(numpy_t5, "_norm", mistake)
        assert_another(ours, right(tensors))


def test_e_one_bias_for_the_stack_in_buckets_of_both_directions(
    ours: np.ndarray, tensors: numpy_t5.Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SentenceT5(T5Config(9, 3, 8, 8, 2, 4), pooling="decoder")
    model.build()
    tables = [weight.path for weight in model.weights if "position_bias" in weight.path]
    assert len(tables) == 2, "one for the encoder, one for the decoder, whatever their layers"

    def of_a_decoder(distance: np.ndarray, count: int) -> np.ndarray:
        return np.minimum(np.maximum(-distance, 0), count - 1)

    monkeypatch.setattr(numpy_t5, "_bucket", of_a_decoder)
    assert_another(ours, right(tensors))


def test_f_the_projection_is_there_and_comes_before_the_norm(
    ours: np.ndarray, tensors: numpy_t5.Arrays
) -> None:
    mean = numpy_t5.encode(tensors, IDS).mean(0)
    assert ours.shape == (6,)
    assert abs(np.linalg.norm(unit(mean) @ PROJECTION) - 1) > 1e-3, "norm first is not of length 1"
    for preset in ("t5_base", "t5_large", "t5_3b", "t5_11b"):
        assert SentenceT5.from_preset(preset, num_layers=1).dimension == 768


def test_g_relu_for_t5_and_the_tanh_gelu_for_its_successors(
    ours: np.ndarray, tensors: numpy_t5.Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, config in T5_PRESETS.items():
        if name.startswith(("t5_1_1", "mt5")):
            assert config.activation == "gated_gelu"
        elif name in ("t5_small", "t5_base", "t5_large", "t5_3b", "t5_11b"):
            assert config.activation == "relu"

    def other(part: numpy_t5.Arrays, x: np.ndarray) -> np.ndarray:
        inner = "mlp/wi_0/kernel" if "mlp/wi_0/kernel" in part else "mlp/wi/kernel"
        gate = x @ part[inner]
        linear = x @ part["mlp/wi_1/kernel"] if "mlp/wi_1/kernel" in part else 1.0
        return gate / 2 * (1 + erf(gate / np.sqrt(2))) * linear @ part["mlp/wo/kernel"]

    monkeypatch.setattr(numpy_t5, "_feed_forward", other)
    # The exact gelu differs from its tanh form by 5e-4 at most, which is visible: rounding is 1e-6.
    assert np.abs(ours - right(tensors)).max() > 1e-5


def test_k_the_first_of_the_gated_pair_is_the_activated_one(tmp_path: Path) -> None:
    tensors: dict[str, Any] = numpy_t5.arrays(gated=True)
    write_file(tmp_path / "file", {**tensors, "projection_layer/kernel": PROJECTION})
    vector = np.asarray(read_sentence_t5(open_checkpoint(tmp_path / "file"))(np.array([IDS]))[0])
    other = {"wi_0": "wi_1", "wi_1": "wi_0"}
    swapped = {
        "/".join(other.get(part, part) for part in name.split("/")): tensor
        for name, tensor in tensors.items()
    }
    assert_another(vector, right(swapped))
