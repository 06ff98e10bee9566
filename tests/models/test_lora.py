"""Adapters: apply, train, save, load and merge."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import safetensors.numpy
from safetensors import safe_open

from use_st5.models.lora import LoRAAdapters, apply_lora, load_lora
from use_st5.models.t5.model import T5, T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.models.use_dan.model import USEDAN


def test_after_merging_there_is_nothing_to_save_or_merge(tmp_path: Path) -> None:
    adapters = apply_lora(sentence_t5())
    adapters.merge()
    assert not adapters.tensors
    with pytest.raises(ValueError, match="were already merged"):
        adapters.merge()
    with pytest.raises(ValueError, match="were already merged"):
        adapters.save(tmp_path / "adapters.safetensors")
    assert not [*tmp_path.iterdir()]


CONFIG = T5Config(60, 2, 16, 24, 2, key_value_dim=6, activation="gated_gelu")
IDS = np.array([[5, 9, 33, 1], [7, 1, 0, 0]], np.int32)


def sentence_t5(**changes: object) -> SentenceT5:
    keras.utils.set_random_seed(3)
    model = SentenceT5(CONFIG, projection_dim=None, normalize=False, **changes)
    model.build()
    return model


def moved(adapters: LoRAAdapters) -> LoRAAdapters:
    """Changes adapters like a training: B is no longer zero."""
    rng = np.random.default_rng(0)
    for name, tensor in adapters.tensors.items():
        if name.endswith(".b"):
            tensor.assign(rng.normal(scale=0.05, size=tensor.shape))
    return adapters


def test_all_linear_layers_and_no_other() -> None:
    adapters = apply_lora(sentence_t5(), targets="all_linear", rank=2)
    assert [path.removeprefix("encoder/block_0/") for path in adapters.layers[:7]] == [
        *(f"attention/{name}" for name in ("query", "key", "value", "output")),
        *(f"feed_forward/{name}" for name in ("inner", "linear", "outer")),
    ]
    assert len(adapters.layers) == 14


def test_a_decoder_is_adapted_too_cross_attention_included() -> None:
    model = T5(CONFIG)
    model.build()
    layers = apply_lora(model, rank=2).layers
    assert len(layers) == 2 * 2 + 2 * 4
    assert "decoder/block_1/cross/value" in layers
    plain = SentenceT5(T5Config(60, 1, 16, 24, 2), pooling="decoder")
    plain.build()
    # T5 1.0 has no gate: two layers of the feed-forward, not three.
    assert len(apply_lora(plain, targets="all_linear").layers) == 4 + 2 + 8 + 2


def test_layers_of_one_shape_start_from_different_a_and_a_seed_repeats_them() -> None:
    first = apply_lora(sentence_t5(), seed=1).tensors
    again = apply_lora(sentence_t5(), seed=1).tensors
    other = apply_lora(sentence_t5(), seed=2).tensors
    drawn = [np.asarray(tensor) for name, tensor in first.items() if name.endswith(".a")]
    assert len({each.tobytes() for each in drawn}) == 4
    assert all(0.9 / 4 < np.abs(each).max() <= 1 / 4 for each in drawn)
    name = next(iter(first))
    np.testing.assert_array_equal(first[name], again[name])
    assert not np.array_equal(first[name], other[name])


def test_only_adapters_train_and_the_optimizer_has_slots_for_them_alone() -> None:
    model = sentence_t5()
    adapters = apply_lora(model, rank=2)
    assert {id(v) for v in model.trainable_variables} == {id(v) for v in adapters.tensors.values()}
    optimizer = keras.optimizers.Adam(0.1)
    model.compile(optimizer, loss="mse", jit_compile=False)
    frozen = [np.asarray(v) for v in model.non_trainable_variables]
    before = np.asarray(model(IDS))
    model.fit(IDS, np.ones((2, 16), "f"), epochs=3, verbose=0)
    assert np.abs(np.asarray(model(IDS)) - before).max() > 1e-3
    for value, variable in zip(frozen, model.non_trainable_variables, strict=True):
        np.testing.assert_array_equal(value, variable)
    # Two moments of each adapter, the step and the learning rate.
    assert sum(int(np.prod(v.shape)) for v in optimizer.variables) == 2 * adapters.parameters + 2


def test_functions_traced_before_are_forgotten() -> None:
    model = sentence_t5()
    before = model.predict(IDS, verbose=0)
    adapters = moved(apply_lora(model))
    after = model.predict(IDS, verbose=0)
    assert np.abs(after - before).max() > 1e-3
    adapters.merge()
    np.testing.assert_allclose(model.predict(IDS, verbose=0), after, atol=1e-5)


@pytest.mark.parametrize("targets", [["projection"], ["query", "gate"], [], "queries"])
def test_targets_that_match_no_layer(targets: str | list[str]) -> None:
    model = sentence_t5()
    trainable = len(model.trainable_variables)
    with pytest.raises(ValueError, match="'query'.*'value'|query_value"):
        apply_lora(model, targets=targets)
    assert len(model.trainable_variables) == trainable


def test_models_that_cannot_have_adapters() -> None:
    with pytest.raises(ValueError, match="linear layers, received a USEDAN"):
        apply_lora(USEDAN.from_preset("use_dan_en", num_embeddings=10))
    with pytest.raises(ValueError, match="Expected a built model"):
        apply_lora(SentenceT5(CONFIG))
    model = sentence_t5()
    for settings in ({"rank": 0}, {"rank": 13}, {"alpha": 0.0}, {"alpha": float("nan")}):
        with pytest.raises(ValueError, match="rank from 1 to 12|alpha: expected a positive"):
            apply_lora(model, **settings)
    apply_lora(model)
    with pytest.raises(ValueError, match="without adapters, found some"):
        apply_lora(model, targets="all_linear")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_saved_adapters_on_a_fresh_base(tmp_path: Path, dtype: str) -> None:
    model = sentence_t5(dtype=dtype)
    adapters = moved(apply_lora(model, targets="all_linear", rank=3, alpha=5.0))
    path = tmp_path / "adapters.safetensors"
    adapters.save(path)
    # The file holds only the adapters, in float32.
    assert path.stat().st_size < 4 * adapters.parameters + 8192
    other = sentence_t5(dtype=dtype)
    loaded = load_lora(other, path)
    np.testing.assert_array_equal(other(IDS), model(IDS))
    assert (loaded.rank, loaded.alpha, loaded.targets) == (3, 5.0, adapters.targets)
    assert loaded.layers == adapters.layers
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_files_that_hold_no_adapters(tmp_path: Path) -> None:
    path = tmp_path / "adapters.safetensors"
    with pytest.raises(FileNotFoundError, match="adapters"):
        load_lora(sentence_t5(), path)
    path.write_bytes(b"no safetensors at all")
    with pytest.raises(ValueError, match="expected a safetensors file"):
        load_lora(sentence_t5(), path)
    safetensors.numpy.save_file({"a": np.zeros(3)}, path)
    with pytest.raises(ValueError, match=r"no metadata 'use_st5\.lora'"):
        load_lora(sentence_t5(), path)


def test_adapters_of_another_shape_are_refused_and_the_model_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "adapters.safetensors"
    apply_lora(sentence_t5()).save(path)
    other = SentenceT5(T5Config(60, 3, 32, 24, 2, key_value_dim=6, activation="gated_gelu"))
    other.build()
    with pytest.raises(ValueError, match=r"num_layers: 2, this model 3; hidden_dim"):
        load_lora(other, path)
    assert len(other.trainable_variables) == len(other.variables)


def test_tensors_that_do_not_fit_their_metadata(tmp_path: Path) -> None:
    path = tmp_path / "adapters.safetensors"
    apply_lora(sentence_t5(), rank=4).save(path)
    with safe_open(path, framework="np") as file:
        (key, facts), *_ = file.metadata().items()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    wrong = json.dumps(json.loads(facts) | {"rank": 3})
    safetensors.numpy.save_file(tensors, path, metadata={key: wrong})
    with pytest.raises(ValueError, match=r"the shape \(16, 3\), found \(16, 4\)"):
        load_lora(sentence_t5(), path)
