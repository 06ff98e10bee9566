"""`use-st5 push`: its output and its uploads."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import Result

import use_st5
from tests.fake_hub import FakeHub, contents, fake_hub
from tests.toy_encoders import Toy

NAME = "hf://me/mine"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with fake_hub(tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture
def folder(toy_use_dan: Toy, tmp_path: Path) -> Path:
    """A model without a licence."""
    shutil.copytree(toy_use_dan.folders["float32"], tmp_path / "toy")
    return tmp_path / "toy"


def test_nothing_is_uploaded_unasked(
    use: Callable[..., Result], hub: FakeHub, folder: Path
) -> None:
    done = use("push", str(folder), NAME, "--license", "MIT", "--language", "de")
    assert done.exit_code == 0, done.output
    assert "language:\n- de\nlibrary_name: use_st5\nlicense: mit\n" in done.stdout
    assert "saved_model.pb\t" in done.stdout
    assert "nothing was uploaded; --yes" in done.stderr
    assert not hub.asked


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of huggingface_hub
def test_what_is_uploaded_is_loaded_by_its_name(
    use: Callable[..., Result], hub: FakeHub, folder: Path
) -> None:
    (folder / "notes.txt").write_text("mine alone")
    done = use("push", str(folder), NAME, "--license", "mit", "--metric", "spearmanr", "--yes")
    assert done.exit_code == 0, done.output
    assert hub.tokens >= {"Bearer hf_secret"}
    assert "notes.txt" not in hub.uploaded
    expected = {name for name in contents(folder) if name != "notes.txt"} | {"README.md"}
    assert {*hub.uploaded} == expected
    card = pytest.importorskip("huggingface_hub").ModelCard(hub.uploaded["README.md"].decode())
    assert (card.data.license, card.data.metrics) == ("mit", ["spearmanr"])
    hub.add("me/mine", dict(hub.uploaded))
    again = use_st5.load(NAME)
    again.manifest.check_contents(again.folder)
    assert again.identity == use_st5.load(folder).identity
    assert (again.encode(["a b"]) == use_st5.load(folder).encode(["a b"])).all()
    done = use("push", str(again.folder), NAME, "--license", "other", "--language", "no")
    assert "language:\n- 'no'\n" in done.stdout


def test_what_is_refused(
    use: Callable[..., Result], hub: FakeHub, folder: Path, tmp_path: Path
) -> None:
    assert use("push", str(folder), "models/mine").exit_code == 2
    for name in ("hf://mine", "hf://me/mine@v1"):
        done = use("push", str(folder), name, "--license", "mit", "--yes")
        assert "Expected hf://ORG/NAME to upload to" in done.output, done.output
    assert "give its --license" in use("push", str(folder), NAME).output
    (folder / "variables" / "variables.index").write_bytes(b"changed")
    assert "variables.index" in use("push", str(folder), NAME, "--license", "mit").output
    (folder / "use_st5.json").unlink()
    done = use("push", str(folder), NAME, "--license", "mit")
    assert "of another origin" in done.output
    assert not hub.uploaded


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, b"<html>Log in</html>"), "expected JSON of the hub"),
        ((401, b""), "refused"),
        ((403, b""), "refused"),
    ],
)
def test_answers_of_a_proxy_and_of_a_hub_that_refuses(
    use: Callable[..., Result], hub: FakeHub, folder: Path, answer: tuple[int, bytes], said: str
) -> None:
    hub.answer = answer
    done = use("push", str(folder), NAME, "--license", "mit", "--yes")
    assert f"error: {NAME}: {said}" in done.stderr
    assert ("HF_TOKEN" if answer[0] > 400 else "HF_ENDPOINT") in done.stderr
    assert "Run again" not in done.stderr


def test_kaggle(use: Callable[..., Result], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def upload(handle: str, place: str, **options: str) -> None:
        names = {name for name in contents(Path(place))}
        asked.append((handle, "saved_model.pb" in names, options["license_name"]))

    monkeypatch.setitem(sys.modules, "kagglehub", SimpleNamespace(model_upload=upload))
    name = "kaggle://me/mine/tensorFlow2/small"
    done = use("push", str(folder), name, "--license", "mit", "--yes")
    assert done.exit_code == 0, done.output
    assert asked == [("me/mine/tensorFlow2/small", True, "mit")]
