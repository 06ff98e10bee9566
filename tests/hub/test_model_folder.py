"""Finding the folder of a model by its path or its name."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import use_st5
from tests.tiny_bert import write_sentence_bert
from use_st5.hub import model_folder as module
from use_st5.hub.model_folder import model_folder
from use_st5.trainable_encoder import TrainableEncoder


def test_a_folder_goes_before_a_bundled_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "bundled_names", lambda: ("mine",))
    monkeypatch.setattr(module, "bundled_folder", lambda name: tmp_path / "bundled" / name)
    monkeypatch.chdir(tmp_path)
    assert model_folder("mine") == tmp_path / "bundled" / "mine"
    (tmp_path / "mine").mkdir()
    assert model_folder("mine") == tmp_path / "bundled" / "mine"  # no SavedModel there
    (tmp_path / "mine" / "saved_model.pb").touch()
    assert model_folder("mine") == tmp_path / "mine"


def test_what_was_expected_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "bundled_names", lambda: ("use_dan_en",))
    with pytest.raises(FileNotFoundError, match="Did you mean 'use_dan_en'"):
        model_folder("use-dan-en")
    with pytest.raises(FileNotFoundError, match="write hf://org/use-dan$"):
        model_folder("org/use-dan")
    with pytest.raises(FileNotFoundError, match="the folder is empty"):
        model_folder(tmp_path)
    (tmp_path / "variables").mkdir()
    (tmp_path / "vocab.txt").touch()
    with pytest.raises(FileNotFoundError, match="found variables/, vocab.txt"):
        model_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match="found a file"):
        model_folder(tmp_path / "vocab.txt")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(FileNotFoundError, match=r"expected .*\.safetensors"):
        model_folder(tmp_path)


def test_a_checkpoint_is_converted_once_and_again_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = write_sentence_bert(tmp_path / "my bert")
    encoder = use_st5.load(source)
    expected = TrainableEncoder.load(source).encode(["a cat", ""])
    np.testing.assert_allclose(encoder.encode(["a cat", ""]), expected, atol=1e-6)
    assert encoder.name == "my bert"
    assert (tmp_path / "cache") in encoder.folder.parents
    assert use_st5.load(source) is encoder
    shutil.copy(write_sentence_bert(tmp_path / "b", seed=1) / "model.safetensors", source)
    changed = TrainableEncoder.load(source).encode(["a cat", ""])
    np.testing.assert_allclose(use_st5.load(source).encode(["a cat", ""]), changed, atol=1e-6)
    assert np.abs(changed - expected).max() > 1e-3
