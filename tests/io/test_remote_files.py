"""Remote files: TensorFlow's in-memory file system, `ram://`, replaces gs:// and the like."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.toy_encoders import Toy
from use_st5.hub.model_manifest import check_replaceable
from use_st5.io.files import (
    as_written,
    atomic_path,
    cached_path,
    check_inner,
    exists,
    is_inner,
    joined,
    names_in,
    open_local,
    remote_path,
    remove,
    sole_writer,
    staging_path,
    upload,
)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def base(request: pytest.FixtureRequest) -> str:
    """An in-memory folder that only this test uses."""
    return f"ram://{request.node.name.replace('[', '_').replace(']', '')}"


def written(path: str, text: str) -> str:
    tf.io.gfile.makedirs(path.rpartition("/")[0])
    if tf.io.gfile.exists(path):  # Otherwise `ram://` would append.
        tf.io.gfile.remove(path)
    with tf.io.gfile.GFile(path, "w") as file:
        file.write(text)
    return path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gs://bucket/a b/c.tsv", "gs://bucket/a b/c.tsv"),
        (Path("gs://bucket/runs/"), "gs://bucket/runs"),
        ("ram://x/", "ram://x"),
        ("C:/Users/x", None),
        ("/tmp/gs:/x", None),
        ("https://example.org/x", None),
        ("hf://datasets/x", None),
        ("plain", None),
        ("gs:", None),
    ],
)
def test_which_paths_are_remote(path: str | Path, expected: str | None) -> None:
    assert remote_path(path) == expected


def test_a_changed_file_is_copied_again(base: str) -> None:
    path = written(f"{base}/pairs.tsv", "one")
    first = cached_path(path)
    assert (first.name, first.read_text()) == ("pairs.tsv", "one")
    assert cached_path(path) == first
    written(path, "another")
    assert cached_path(path).read_text() == "another"
    assert cached_path(first) == first
    with pytest.raises(FileNotFoundError, match=r"nothing.tsv: expected a file or a folder"):
        cached_path(f"{base}/nothing.tsv")


def test_local_and_remote_paths_are_read_the_same_way(base: str, tmp_path: Path) -> None:
    path = written(f"{base}/folder/a.txt", "one")
    (tmp_path / "a.txt").write_text("one")
    for folder in (f"{base}/folder", Path(f"{base}/folder"), tmp_path):
        assert names_in(folder) == ["a.txt"]
        assert exists(folder)
        assert not exists(f"{folder}/b.txt")
        with open_local(f"{folder}/a.txt") as local:
            assert local.read_text() == "one"
        with open_local(f"{folder}/b.txt") as local:
            assert not local.exists()
    assert (as_written(Path(path)), as_written(tmp_path)) == (path, str(tmp_path))
    assert names_in(f"{base}/none") == names_in(tmp_path / "none") == []
    assert staging_path(path) == staging_path(path) != staging_path(f"{path}2")
    check_inner(path)
    for whole in ("gs://bucket", "gs://bucket/"):
        with pytest.raises(ValueError, match="gs://bucket: expected a path in the bucket"):
            check_inner(whole)
    with pytest.raises(ValueError, match="s4://x: expected a scheme"):
        exists("s4://x")


MODEL = ("inner/z.json", "saved_model.pb", "inner/weights")


def folder(base: Path, content: str, names: tuple[str, ...] = MODEL) -> Path:
    """Writes the folder of a model whose files all hold `content`."""
    for name in names:
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(content)
    (base / "use_st5.json").write_text(json.dumps({"files": dict.fromkeys(names, content)}))
    return base


def contents(path: str) -> dict[str, str]:
    """Returns the files of a folder as use_st5 reads them: name → text."""
    with open_local(path) as local:
        return {
            each.relative_to(local).as_posix(): each.read_text()
            for each in local.rglob("*")
            if each.is_file()
        }


def stored(path: str) -> dict[str, str]:
    """Returns the files that are stored below a path: name → text."""
    found = {}
    for place, _, names in tf.io.gfile.walk(path):
        for name in names:
            full = f"{place}/{name}"
            found[full.removeprefix(f"{path}/")] = tf.io.gfile.GFile(full).read()
    return found


class Killed(BaseException):
    """Simulates, inside a process, that the process is killed."""


def watched(monkeypatch: pytest.MonkeyPatch, see: Callable[[str, tuple[Any, ...]], None]) -> None:
    """Calls `see` before each operation that changes a remote file."""
    files = tf.io.gfile
    for name in ("rename", "remove", "copy"):
        whole = getattr(files, name)

        def seen(*args: Any, name: str = name, whole: Any = whole, **options: Any) -> Any:
            see(name, args)
            return whole(*args, **options)

        monkeypatch.setattr(files, name, seen)


def test_a_model_is_replaced_file_by_file(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(folder(tmp_path / "old", "old", (*MODEL, "assets/old")), f"{base}/model")
    written(f"{base}/model/notes.txt", "years")
    written(f"{base}/model/other/saved_model.pb", "another's")
    steps: list[str] = []
    watched(monkeypatch, lambda name, args: steps.append(f"{name} {args[-1]}"))
    upload(folder(tmp_path / "new", "new", (*MODEL, "assets/new")), f"{base}/model")
    assert [step.replace(f"{base}/model/", "") for step in steps[1:]] == [
        *("remove saved_model.pb", "remove inner/z.json", "remove inner/weights"),
        *("remove assets/old", "copy use_st5.json.use_st5.new", "rename use_st5.json"),
        *("copy assets/new", "copy inner/weights", "copy inner/z.json", "copy saved_model.pb"),
    ]
    found = stored(f"{base}/model")
    assert "assets/new" in found.pop("use_st5.json")
    assert found == {
        **dict.fromkeys((*MODEL, "assets/new"), "new"),
        "notes.txt": "years",
        "other/saved_model.pb": "another's",
    }
    remove(f"{base}/model")
    assert not tf.io.gfile.exists(f"{base}/model")


def test_a_killed_writer_leaves_the_old_model_or_none_and_can_be_started_again(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (
        folder(tmp_path / each, each, (*MODEL, f"assets/{each}")) for each in ("old", "new")
    )
    both = [contents(str(each)) for each in (old, new)]
    number = 0
    for number in range(100):
        path, left = f"{base}/{number}/model", [number]
        upload(old, path)
        written(f"{path}/notes.txt", "years")

        def see(name: str, args: tuple[Any, ...], left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed(name, args)

        try:
            with monkeypatch.context() as patch:
                watched(patch, see)
                upload(new, path)
        except Killed:
            found = contents(path)
            assert found["notes.txt"] == "years"
            if "saved_model.pb" in found:
                model = {name: each for name, each in found.items() if ".new" not in name}
                assert model == {**both[0], "notes.txt": "years"}, f"after {number} changes"
            assert "use_st5.json" in names_in(path)
            upload(new, path)
            assert stored(path) == {**both[1], "notes.txt": "years"}
        else:
            break
    assert number > 8


def test_other_files_are_not_replaced_and_are_no_model(base: str, tmp_path: Path) -> None:
    written(f"{base}/model/README.md", "years")
    new = folder(tmp_path / "new", "new", (*MODEL, "README.md"))
    with pytest.raises(FileExistsError, match=r"none of your files, found .*README\.md"):
        upload(new, f"{base}/model")
    assert stored(f"{base}/model") == {"README.md": "years"}
    with pytest.raises(FileExistsError, match=r"a model of use_st5.*Found .*README"):
        check_replaceable(f"{base}/model")
    for content in ("{}", "no json", '{"files": {"../x": {"bytes": 1}}}'):
        written(f"{base}/model/use_st5.json", content)
        with pytest.raises(FileExistsError, match="without a use_st5.json"):
            check_replaceable(f"{base}/model")
    written(f"{base}/precious", "years")
    written(f"{base}/model/use_st5.json", '{"files": {"../precious": 1}}')
    with pytest.raises(ValueError, match="received '../precious'"):
        upload(new, f"{base}/model")
    assert exists(f"{base}/precious")
    for path, local in ((f"{base}/model", new / "README.md"), (f"{base}/model/README.md", new)):
        with pytest.raises(FileExistsError, match="expected a (file|folder) or none"):
            upload(local, path)


@pytest.mark.parametrize(
    "name",
    ["../up.py", "a/../../up.py", "a\\up.py", "..\\up.py", "C:up.py", "D:\\up.py", "a/.."],
)
def test_a_name_that_points_outside_is_refused_and_nothing_is_written(
    base: str, tmp_path: Path, name: str
) -> None:
    written(f"{base}/model/{name}", "import this")
    written(f"{base}/model/saved_model.pb", "x")
    before = {*tmp_path.rglob("*")}
    for read in (cached_path, use_st5.load, names_in, contents, remove):
        if read is names_in and "/" in name and not name.startswith(".."):
            continue  # It lists only the first part of a name.
        with pytest.raises(ValueError, match="expected names inside this folder"):
            read(f"{base}/model")
    caches = {tmp_path / "cache", tmp_path / "cache/use_st5", tmp_path / "cache/use_st5/remote"}
    assert {*tmp_path.rglob("*")} <= before | caches
    assert exists(f"{base}/model/saved_model.pb")


def test_a_name_that_could_not_be_downloaded_is_not_uploaded(base: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a\\b").touch()
    with pytest.raises(ValueError, match=r"expected names inside this folder, received 'a"):
        upload(tmp_path / "model", f"{base}/model")
    assert not exists(f"{base}/model")


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_only_the_user_may_read_the_cache(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache/use_st5/remote"
    cache.mkdir(parents=True, mode=0o755)
    cached_path(written(f"{base}/a.txt", "one"))
    assert cache.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(os, "getuid", lambda: cache.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="expected a folder of this user"):
        cached_path(f"{base}/a.txt")


def test_atomic_path_uploads_only_after_success(base: str) -> None:
    with sole_writer(f"{base}/a.txt"), atomic_path(Path(f"{base}/a.txt")) as temporary:
        temporary.write_text("a")
    assert cached_path(f"{base}/a.txt").read_text() == "a"
    with pytest.raises(RuntimeError), atomic_path(f"{base}/b.txt") as temporary:
        temporary.write_text("b")
        raise RuntimeError
    with pytest.raises(FileNotFoundError, match="Expected a file"), atomic_path(f"{base}/b.txt"):
        pass
    assert names_in(base) == ["a.txt"]
    with (
        pytest.raises(ValueError, match="expected a local folder"),
        sole_writer(f"{base}/run", inside=True),
    ):
        pass


def test_a_model_is_exported_loaded_and_trained_again(base: str, toy_use_dan: Toy) -> None:
    encoder = use_st5.TrainableEncoder(toy_use_dan.model, toy_use_dan.tokenizer)
    encoder.export(f"{base}/model")
    written(f"{base}/model/notes.txt", "years")
    encoder.export(f"{base}/model")
    assert {"notes.txt", "saved_model.pb"} < {*names_in(f"{base}/model")}
    assert tf.saved_model.load(f"{base}/model")(tf.constant(["the cat"])).shape == (1, 16)
    texts = ["the cat sat", "how old are you"]
    expected = encoder.encode(texts)
    np.testing.assert_allclose(use_st5.load(f"{base}/model").encode(texts), expected, atol=1e-6)
    encoder = use_st5.TrainableEncoder.load(f"{base}/model")
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [names_in, cached_path, lambda path: upload(Path(__file__), path)],
)
def test_errors_of_a_store_name_the_path(
    base: str, monkeypatch: pytest.MonkeyPatch, call: Callable[[str], Any]
) -> None:
    """TensorFlow quotes the store's answer, of many lines, before the path, or without a path."""

    def refused(*_: object) -> None:
        raise tf.errors.PermissionDeniedError(None, None, "HTTP response code 403 with body '{\n}'")

    for name in ("exists", "isdir", "walk", "listdir"):
        monkeypatch.setattr(tf.io.gfile, name, refused)
    with pytest.raises(
        OSError, match=f"^{base}/file: .*PermissionDeniedError: HTTP .* 403 .*Check"
    ):
        call(f"{base}/file")


def test_names_below_a_folder_on_every_system(tmp_path: Path) -> None:
    for name in ("", "a", "a/b.txt", "..a", "a..", "a/...", "10:30.txt", "é", "."):
        assert is_inner(name)
        assert joined(tmp_path, name, where="there") == tmp_path / name
    for name in ("/a", "..", "a/../../b", "\\a", "a\\b", "..\\b", "C:\\a", "C:/a", "C:a", "a\0"):
        assert not is_inner(name)
        with pytest.raises(ValueError, match="there: expected names"):
            joined(tmp_path, name, where="there")


def test_a_link_that_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="found a link"):
        joined(tmp_path / "folder", "link/x", where="there")
