"""`use-st5 push` and `use-st5 cache`: uploading models; listing and removing downloads."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from typer.testing import Result

import use_st5
from tests.fake_hub import FakeHub, contents, fake_hub
from tests.toy_encoders import Toy
from use_st5.hub.cache import ARCHIVES, MODELS, entries, kept_content
from use_st5.hub.model_names import Fetched, _record, recorded

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


MODEL, URL = "hf://org/model", "https://example.com/a.zip"


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("USE_ST5_CACHE_GB", raising=False)
    places = ((MODELS, "m", f"{MODEL}@1", 3_000), (ARCHIVES, "a", URL, 5_000))
    for part, key, origin, size in places:
        content = kept_content(part, key, origin, Path.mkdir)
        (content / "file").write_bytes(b"x" * size)
    for name in (MODEL, URL):
        fetched = Fetched(name=name, identity="1", folder=str(tmp_path))
        _record(name).write_bytes(msgspec.json.encode(fetched))


def test_it_lists_names_and_sizes(use: Callable[..., Result], filled: None, tmp_path: Path) -> None:
    done = use("cache")
    assert done.exit_code == 0, done.output
    rows = [line.split("\t")[:2] for line in done.stdout.splitlines()[1:]]
    assert sorted(rows) == [[f"{MODEL}@1", "models"], [URL, "archives"]]
    assert f"{tmp_path / 'cache' / 'use_st5'}; limit 20,000.0 MB" in done.stderr


def test_a_name_is_removed_and_forgotten(use: Callable[..., Result], filled: None) -> None:
    done = use("cache", "--clear", MODEL)
    assert done.exit_code == 0, done.output
    assert [each.origin for each in entries()] == [URL]
    assert [each.name for each in recorded()] == [URL]


def test_everything_is_removed(use: Callable[..., Result], filled: None) -> None:
    assert use("cache", "--clear").exit_code == 0
    assert not entries()
    assert not recorded()


def test_an_unknown_name_removes_nothing(use: Callable[..., Result], filled: None) -> None:
    done = use("cache", "--clear", MODEL, "hf://org/other")
    assert done.exit_code == 1
    assert "found none of ['hf://org/other']" in done.output
    assert len(entries()) == 2
