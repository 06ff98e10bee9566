"""Downloads from a hub on 127.0.0.1: which files, their hashes, and what can fail."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.fake_hub import COMMIT, FakeHub, contents, fake_hub
from use_st5.hub import client
from use_st5.hub.client import from_hugging_face, from_kaggle

FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights " * 1_000,
    "vocab.txt": b"[PAD]\n",
    "spiece.model": b"pieces",
    "pytorch_model.bin": b"a pickle",
    "modeling_own.py": b"a program",
    "modules.json": b'[{"path": ""}, {"path": "1_Pooling"}, {"path": "../2"}]',
    "1_Pooling/config.json": b'{"a": 1}',
    "1_Pooling/pytorch_model.bin": b"a pickle",
    "onnx/config.json": b"{}",
    "onnx/model.onnx": b"graph",
}
WANTED = {
    "config.json", "model.safetensors", "vocab.txt", "spiece.model", "modules.json",
    "1_Pooling/config.json",
}  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub(tmp_path, monkeypatch) as server:
        server.add("org/model", FILES)
        yield server


def test_no_file_that_can_hold_code_is_downloaded(hub: FakeHub) -> None:
    folder, commit = from_hugging_face("hf://org/model")
    assert contents(folder) == {name: FILES[name] for name in WANTED}
    assert commit == COMMIT
    assert {*hub.downloads()} == WANTED


def test_of_a_saved_model_its_own_files_are_downloaded(hub: FakeHub) -> None:
    names = ["saved_model.pb", "variables/variables.index", "assets/words.txt", "use_st5.json"]
    others = ["model.safetensors", "config.json", "run.py", "variables.bin"]
    hub.add("org/saved", {name: name.encode() for name in [*names, *others]})
    assert {*contents(from_hugging_face("hf://org/saved")[0])} == {*names}


def test_a_revision(hub: FakeHub) -> None:
    hub.add("org/model", {**FILES, "config.json": b'{"new": 1}'}, commit="b" * 40)
    hub.refs["org/model"]["v1"] = COMMIT
    for revision, expected in {"": b'{"new": 1}', "@v1": b"{}", f"@{COMMIT}": b"{}"}.items():
        folder, _ = from_hugging_face(f"hf://org/model{revision}")
        assert (folder / "config.json").read_bytes() == expected
    with pytest.raises(FileNotFoundError, match="hf://org/model@v2: expected a branch"):
        from_hugging_face("hf://org/model@v2")


@pytest.mark.parametrize("header", ["ETag", "X-Linked-ETag", "X-Repo-Commit"])
@pytest.mark.parametrize("etag", ['"{}"', "W/{}", '"{}', '"a/../{}"'])
def test_a_hub_cannot_name_a_place_outside_of_its_cache(
    hub: FakeHub, tmp_path: Path, header: str, etag: str
) -> None:
    """huggingface_hub makes a path of these headers, and reads or writes what is there."""
    victim = tmp_path / "victim" / "x"
    victim.parent.mkdir()
    for target in (victim, "../../../../victim/x"):
        hub.headers["config.json"] = {header: etag.format(target)}
        with pytest.raises(ValueError, match=f"expected a hash in {header}"):
            from_hugging_face("hf://org/model")
        assert not contents(victim.parent)
    hub.headers.clear()
    assert (from_hugging_face("hf://org/model")[0] / "config.json").read_bytes() == b"{}"


def test_a_hub_cannot_name_a_commit_outside_of_its_cache(hub: FakeHub, tmp_path: Path) -> None:
    before = contents(tmp_path)
    hub.commits[COMMIT] = "../../../../victim"
    with pytest.raises(ValueError, match="expected the hash of a commit, received '../"):
        from_hugging_face("hf://org/model")
    assert contents(tmp_path) == before
    assert not hub.downloads()


def test_an_interrupted_download(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the connection breaks repeatedly, the error says so; the next run fetches the rest."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    hub.broken["model.safetensors"] = 100
    with pytest.raises(OSError, match="hf://org/model: the transfer failed"):
        from_hugging_face("hf://org/model")
    hub.broken.clear()
    hub.asked.clear()
    folder, _ = from_hugging_face("hf://org/model")
    assert contents(folder) == {name: FILES[name] for name in WANTED}
    assert "model.safetensors" in hub.downloads()
    assert not {"modules.json", "config.json"} & {*hub.downloads()}, "they were complete"


def test_models_that_are_not_there(hub: FakeHub) -> None:
    with pytest.raises(FileNotFoundError, match="hf://org/other: no such model"):
        from_hugging_face("hf://org/other")
    hub.gated.add("org/model")
    with pytest.raises(PermissionError, match="accept the model's terms"):
        from_hugging_face("hf://org/model")
    hub.add("org/pickled", {"config.json": b"{}", "pytorch_model.bin": b"a pickle"})
    with pytest.raises(FileNotFoundError, match=r"found .*pytorch_model.bin.* Files"):
        from_hugging_face("hf://org/pickled")
    assert not hub.downloads()


def test_without_a_connection_the_cache_of_the_hub_is_used(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, `hf download` filled the cache of a machine that has no network."""
    folder, _ = from_hugging_face("hf://org/model")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.asked.clear()
    assert from_hugging_face(f"hf://org/model@{COMMIT}") == (folder, COMMIT)
    with pytest.raises(ConnectionError, match="hf://org/other: no connection to the hub"):
        from_hugging_face("hf://org/other")
    assert not hub.asked


@pytest.mark.parametrize("name", ["hf://", "hf://a/b/c", "hf://a b", "hf://a@", "hf://../a/b"])
def test_names_of_another_form(name: str) -> None:
    with pytest.raises(ValueError, match="Expected hf://ORG/NAME"):
        from_hugging_face(name)


def test_kaggle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is read from the folder that kagglehub returns."""
    folder = tmp_path / "2"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(b"1")
    asked = []

    def download(handle: str) -> str:
        asked.append(handle)
        if "absent" in handle:
            raise RuntimeError("404")
        return str(folder)

    monkeypatch.setitem(sys.modules, "kagglehub", SimpleNamespace(model_download=download))
    handle = "google/universal-sentence-encoder/tensorFlow2/universal-sentence-encoder"
    assert from_kaggle(f"kaggle://{handle}/2") == (folder, "2")
    assert asked == [f"{handle}/2"]
    with pytest.raises(OSError, match="kaggle://a/absent/c/d: .*RuntimeError: 404"):
        from_kaggle("kaggle://a/absent/c/d")
    with pytest.raises(ValueError, match="Expected kaggle://OWNER/MODEL/FRAMEWORK/VARIATION"):
        from_kaggle("kaggle://google/universal-sentence-encoder")


def test_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("huggingface_hub", "kagglehub"):
        monkeypatch.setitem(sys.modules, module, None)
    for name in ("hf://a/b", "kaggle://a/b/c/d"):
        with pytest.raises(ImportError, match=r"pip install .*\[hub-models\]"):
            getattr(client, "from_kaggle" if "kaggle" in name else "from_hugging_face")(name)
