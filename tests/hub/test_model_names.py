"""Names of models: bundled ones, folders, and hubs: one download, then the same files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import use_st5
from tests.fake_hub import COMMIT, FakeHub, contents, fake_hub
from tests.tiny_bert import write_sentence_bert
from tests.toy_encoders import Toy
from use_st5.hub import model_names as module
from use_st5.hub.cache import MODELS, entries
from use_st5.hub.model_names import (
    bundled_folder,
    bundled_names,
    download_advice,
    forget,
    local_source,
    model_folder,
    model_name,
    recorded,
    short_name,
)
from use_st5.layers.saved_model_layer import SavedModelLayer

WORDS = ["dog", "cat", "person", "music"]
TEXTS = ["a dog is a kind of animal", "music", ""]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    with fake_hub(tmp_path, monkeypatch) as server:
        server.add("org/tiny", contents(write_sentence_bert(tmp_path / "tiny")))
        yield server


def test_a_checkpoint_of_the_hub_is_loaded_by_its_name(hub: FakeHub, tmp_path: Path) -> None:
    encoder = use_st5.load("hf://org/tiny")
    expected = use_st5.TrainableEncoder.load(tmp_path / "tiny").encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)
    assert encoder.name == "tiny"
    assert encoder.manifest.metadata["source"] == f"hf://org/tiny@{COMMIT}"
    assert [(each.kind, each.origin) for each in entries()] == [(MODELS, f"hf://org/tiny@{COMMIT}")]
    # The second time nothing is requested from the hub, and nothing is converted.
    hub.asked.clear()
    assert use_st5.load(Path("hf://org/tiny")) is encoder
    trainable = use_st5.TrainableEncoder.load("hf://org/tiny")
    np.testing.assert_allclose(trainable.encode(TEXTS), expected, atol=1e-6)
    layer = SavedModelLayer("hf://org/tiny")
    np.testing.assert_allclose(layer(TEXTS), expected, atol=1e-5)
    assert layer.handle == "hf://org/tiny"
    assert not hub.asked
    assert len(entries()) == 1


@pytest.mark.end_to_end
def test_a_new_commit_is_seen_when_the_name_is_forgotten(hub: FakeHub, tmp_path: Path) -> None:
    first = use_st5.load("hf://org/tiny").encode(TEXTS)
    second = contents(write_sentence_bert(tmp_path / "second", seed=1))
    hub.add("org/tiny", second, commit="b" * 40)
    assert (use_st5.load("hf://org/tiny").encode(TEXTS) == first).all()
    assert forget("hf://org/tiny")
    assert not forget("hf://org/tiny")
    assert not np.allclose(use_st5.load("hf://org/tiny").encode(TEXTS), first)
    assert (use_st5.load(f"hf://org/tiny@{COMMIT}").encode(TEXTS) == first).all()


def test_a_folder_that_is_gone_is_downloaded_again(hub: FakeHub) -> None:
    name = "hf://org/tiny"
    shutil.rmtree(local_source(name))
    assert (local_source(name) / "model.safetensors").is_file()
    assert [each.name for each in recorded()] == [name]


def test_an_exported_model_comes_from_the_hub_as_it_is(
    hub: FakeHub, toy_use_dan: Toy, tmp_path: Path
) -> None:
    hub.add("org/exported", contents(toy_use_dan.folder))
    encoder = use_st5.load("hf://org/exported")
    assert encoder.folder.is_relative_to(tmp_path / "huggingface")
    assert (encoder.encode(TEXTS) == use_st5.load(toy_use_dan.folder).encode(TEXTS)).all()
    assert not entries()


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_second_process_needs_no_network(
    hub: FakeHub, fresh_python: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"import use_st5; print(use_st5.load('hf://org/tiny').encode({TEXTS!r}).tolist())"
    first = fresh_python("-c", code)
    hub.asked.clear()
    hub.files.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert fresh_python("-c", code) == first
    assert not hub.asked


@pytest.mark.parametrize(
    ("given", "name", "short"),
    [
        ("hf://org/name@v1", "hf://org/name@v1", "name"),
        (Path("https://a.b/use.tar.gz?x=1"), "https://a.b/use.tar.gz?x=1", "use"),
        (
            "kaggle://google/use/tensorFlow2/large/2",
            "kaggle://google/use/tensorFlow2/large/2",
            "large",
        ),
        ("gs://bucket/name", None, "name"),
        ("models/mine", None, "mine"),
    ],
)
def test_which_paths_are_names(given: str | Path, name: str | None, short: str) -> None:
    assert model_name(given) == name
    assert short_name(given) == short


def make_model(folder: Path) -> None:
    """Makes a folder that looks like a SavedModel."""
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package folder in an otherwise empty checkout."""
    folder = tmp_path / "use_st5"
    folder.mkdir()
    monkeypatch.setattr(module, "_PACKAGE", folder)
    return folder


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sentence-transformers/t5", "write hf://sentence-transformers/t5"),
        ("all-MiniLM-L6-v2", "write hf://OWNER/all-MiniLM-L6-v2"),
        ("../t5", ""),
        ("a/b/c", ""),
    ],
)
def test_how_a_model_of_a_hub_comes_here(name: str, said: str) -> None:
    found = download_advice(name)
    assert said in found
    assert bool(said) == bool(found)


def test_bundled_models_lie_in_the_checkout_or_in_the_wheel(package: Path) -> None:
    assert bundled_names() == ()
    models = package.parent / "saved_models"
    make_model(models / "b")
    make_model(models / "a")
    (models / "README.md").write_text("")
    assert bundled_names() == ("a", "b")
    assert bundled_folder("a") == models / "a"
    make_model(package / "saved_models" / "c")
    assert bundled_names() == ("c",)
    assert bundled_folder("c") == package / "saved_models" / "c"
    with pytest.raises(FileNotFoundError, match="Bundled here: c"):
        bundled_folder("../saved_models/c")


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
    with pytest.raises(FileNotFoundError, match="Bundled models: use_dan_en"):
        model_folder("use-dan-en")
    with pytest.raises(FileNotFoundError, match="write hf://org/use-dan"):
        model_folder("org/use-dan")
    with pytest.raises(FileNotFoundError, match=r"found \[\]"):
        model_folder(tmp_path)
    (tmp_path / "variables").mkdir()
    (tmp_path / "vocab.txt").touch()
    with pytest.raises(FileNotFoundError, match="found .*'variables', 'vocab.txt'"):
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
    expected = use_st5.TrainableEncoder.load(source).encode(["a cat", ""])
    np.testing.assert_allclose(encoder.encode(["a cat", ""]), expected, atol=1e-6)
    assert encoder.name == "my bert"
    assert (tmp_path / "cache") in encoder.folder.parents
    assert use_st5.load(source) is encoder
    shutil.copy(write_sentence_bert(tmp_path / "b", seed=1) / "model.safetensors", source)
    changed = use_st5.TrainableEncoder.load(source).encode(["a cat", ""])
    np.testing.assert_allclose(use_st5.load(source).encode(["a cat", ""]), changed, atol=1e-6)
    assert np.abs(changed - expected).max() > 1e-3
