"""The choice of the engine for a model, and encoders with another backend."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.toy_encoders import Toy
from use_st5.encode.encoder import SentenceEncoder
from use_st5.engines.onnx_model import add_onnx_model
from use_st5.hub.model_manifest import ModelManifest
from use_st5.models.engines import family_engine


def test_what_an_encoder_knows(toy_use_dan: Toy, tmp_path: Path) -> None:
    folder = toy_use_dan.folders["int8"]
    one, other = use_st5.load(folder, backend="onnx"), use_st5.load(folder)
    assert one is use_st5.load(folder, backend="onnx")
    assert one is not other
    assert (one.backend, other.backend, one.model) == ("onnx", "tensorflow", None)
    for name in ("name", "identity", "dimension", "max_length", "card"):
        assert getattr(one, name) == getattr(other, name)
    assert one.truncated(["a b c"] * 3).tolist() == []
    with pytest.raises(ValueError, match="Expected an encoder of the backend 'tensorflow'"):
        one.save(tmp_path / "copy")


def test_it_encodes_and_compares_as_with_tensorflow(toy_use_dan: Toy) -> None:
    folder = toy_use_dan.folders["float32"]
    one, other = SentenceEncoder(folder, backend="onnx"), SentenceEncoder(folder)
    texts = ["the cat sat", "", "how old are you"]
    for metric in ("cosine", "angular", "dot"):
        np.testing.assert_allclose(
            one.similarity(texts, metric=metric), other.similarity(texts, metric=metric), atol=1e-6
        )
    single = one.encode("the cat", normalize_embeddings=True)
    assert (single.shape, single.dtype) == ((16,), np.float32)
    np.testing.assert_array_equal(one.encode(" ", on_empty="zero"), np.zeros(16))
    assert one.encode([]).shape == (0, 16)


def test_a_pickle_has_the_backend(toy_use_dan: Toy) -> None:
    encoder = use_st5.load(toy_use_dan.folders["int8"], backend="onnx")
    again = pickle.loads(pickle.dumps(encoder))
    assert again.backend == "onnx"
    np.testing.assert_array_equal(again.encode("the cat"), encoder.encode("the cat"))


def test_other_models_are_refused(toy_use_dan: Toy, tmp_path: Path) -> None:
    folder = shutil.copytree(toy_use_dan.folders["int8"], tmp_path / "other")
    record = folder / "use_st5.json"
    record.write_text(record.read_text("utf-8").replace('"use_dan"', '"other"'), encoding="utf-8")
    with pytest.raises(ValueError, match="models of the family other.*tensorflow"):
        SentenceEncoder(folder, backend="onnx")
    root = tf.train.Checkpoint()
    root.call = tf.function(lambda: tf.constant(1))
    tf.saved_model.save(root, str(tmp_path / "foreign"))
    with pytest.raises(ValueError, match=r"without use_st5.json"):
        SentenceEncoder(tmp_path / "foreign", backend="onnx")
    with pytest.raises(ValueError, match="Unknown backend: 'torch'"):
        use_st5.load("use_dan_en", backend="torch")  # type: ignore[arg-type]


@pytest.mark.parametrize("family", ["use_dan", "use_transformer", "bert"])
def test_damaged_configurations_are_refused(
    family: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of `config` are missing, or have another type."""
    if family != "use_dan":
        for module in ("onnx", "onnxruntime", "tokenizers"):
            pytest.importorskip(module, reason="the extra `onnx` is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    toy = request.getfixturevalue(f"toy_{family}").folders["float32"]
    folder = shutil.copytree(toy, tmp_path / "damaged")
    record = folder / "use_st5.json"
    content = json.loads(record.read_text("utf-8"))
    used = {
        "use_dan": ("activation", "embedding_dim", "hidden_dims"),
        "use_transformer": ("hidden_dim", "num_layers", "num_heads", "early_output", "dimension"),
        "bert": ("hidden_dim", "num_layers", "max_positions", "activation", "layer_norm_epsilon"),
    }
    damages = [{}, {"config": 1}, *({"config": _without(content, name)} for name in used[family])]
    for number, config in enumerate(damages):
        changed = {**content, "config": config, "model_hash": f"{number:064x}"}
        record.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(ValueError, match=rf"use_st5\.json: \$\.config: .* {family}, .*again"):
            SentenceEncoder(folder, backend="onnx")


def _without(content: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in content["config"]["config"].items() if key != name}


@pytest.mark.process
def test_commands_run_in_a_light_installation(
    fresh_python: Callable[..., str], repository: Path, tmp_path: Path
) -> None:
    command = (repository / "tests/engines/light.py", repository / "use_st5" / "__main__.py")
    texts = tmp_path / "texts.txt"
    texts.write_text("How old are you?\nThe train is late.\n", "utf-8")
    found = fresh_python(*command, "search", texts, "What is your age?", "--backend", "onnx")
    assert found.splitlines()[1].endswith("How old are you?")
    found = fresh_python(*command, "embed", texts, "--backend", "onnx")
    assert len(found.splitlines()) == 2
    found = fresh_python(*command, "similarity", "a", "a", "--backend", "onnx")
    assert found.splitlines()[1].split("\t")[2:] == ["1.000", "1.000"]


@pytest.mark.process
def test_an_exported_model_and_its_classifier_in_a_light_installation(
    fresh_python: Callable[..., str], repository: Path, toy_use_transformer: Toy, tmp_path: Path
) -> None:
    pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
    import keras

    folder, work = tmp_path / "tuned", tmp_path / "tuned.run"
    shutil.copytree(toy_use_transformer.folders["int8"], folder)
    add_onnx_model(folder, ModelManifest.read(folder), family_engine)
    work.mkdir()
    classes = keras.layers.Dense(2, activation="softmax", name="classes")
    keras.Sequential([keras.Input((16,)), classes]).save(work / "classifier.keras")
    (work / "classifier.json").write_text('{"labels": ["a", "b"], "accuracy": {}}')
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat\nhow old are you\n", "utf-8")
    command = (repository / "tests/engines/light.py", repository / "use_st5" / "__main__.py")
    found = fresh_python(
        *command, "classify", work / "classifier.keras", texts, "--backend", "onnx"
    )
    assert [line.split("\t")[2] for line in found.splitlines()[1:]] == [
        "the cat",
        "how old are you",
    ]
