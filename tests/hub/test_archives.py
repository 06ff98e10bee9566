"""Models in archives by URL."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import use_st5
from tests.fake_hub import contents
from tests.toy_encoders import Toy
from use_st5.export.folders import write_archive
from use_st5.hub import client
from use_st5.hub.client import from_archive

# Path → content, and how many bytes of it are sent (None: all).
FILES: dict[str, tuple[bytes, int | None]] = {}
REDIRECTS: dict[str, str] = {}


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:  # noqa: N802
        if self.path in REDIRECTS:
            self.send_response(302)
            self.send_header("Location", REDIRECTS[self.path])
            self.end_headers()
            return
        content, sent = FILES.get(self.path, (None, None))
        self.send_response(200 if content is not None else 404)
        if self.path != "/endless.tgz":
            self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write((content or b"")[:sent])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    FILES.clear()


def tar(entries: dict[str, bytes | tarfile.TarInfo]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, given in entries.items():
            info = given if isinstance(given, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(given, bytes):
                info.size = len(given)
            archive.addfile(info, io.BytesIO(given) if isinstance(given, bytes) else None)
    return buffer.getvalue()


def zipped(entries: dict[Any, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_the_archive_of_an_export_is_loaded_by_its_url(
    url: str, toy_use_dan: Toy, tmp_path: Path
) -> None:
    folder = toy_use_dan.folders["float32"]
    write_archive(folder, tmp_path / "toy.tar.gz")
    FILES["/toy.tar.gz"] = ((tmp_path / "toy.tar.gz").read_bytes(), None)
    loaded = use_st5.load(f"{url}/toy.tar.gz")
    assert (loaded.encode(["a b"]) == use_st5.load(folder).encode(["a b"])).all()
    FILES.clear()  # The second run needs no server.
    assert use_st5.load(f"{url}/toy.tar.gz") is loaded
    assert use_st5.TrainableEncoder.load(f"{url}/toy.tar.gz").dimension == loaded.dimension


@pytest.mark.parametrize("pack", [tar, zipped])
def test_what_is_unpacked(url: str, pack: object) -> None:
    files = {"saved_model.pb": b"1", "variables/variables.index": b"22"}
    FILES["/flat.zip"] = pack(files), None
    FILES["/one.tar.gz"] = pack({f"./model/{name}": each for name, each in files.items()}), None
    for name in ("flat.zip", "one.tar.gz"):
        assert contents(from_archive(f"{url}/{name}")[0]) == files


def link() -> tarfile.TarInfo:
    info = tarfile.TarInfo("link")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return info


def zip_link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (tar({"../out": b"1"}), "outside the destination"),
        (tar({"link": link()}), "a link"),
        (zipped({zip_link(): b"/etc/passwd"}), "a link"),
        (b"no archive", "a tar or zip archive"),
        (tar({"a": b"1" * 5_000})[:40], "a tar or zip archive"),
        (tar({"zeros": bytes(3_000_000)}), "expected at most"),
    ],
    # If test names contained gzip's timestamp, two processes would not collect the same tests.
    ids=("above", "link", "link_by_zip", "text", "cut", "too_large"),
)
def test_archives_that_are_refused(
    url: str, content: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_SMALL", 1_000_000)
    FILES["/a.tgz"] = content, None
    with pytest.raises(ValueError, match=said):
        from_archive(f"{url}/a.tgz")
    assert not list((tmp_path / "cache/use_st5/archives").iterdir())
    assert not (tmp_path / "out").exists()


def test_unpacking_writes_nothing_outside(url: str, tmp_path: Path) -> None:
    FILES["/a.tgz"] = tar({"/out": b"1", "b": b"2"}), None
    FILES["/a.zip"] = zipped({"a/../../out": b"1", "b": b"2"}), None
    for name in ("a.tgz", "a.zip"):
        folder, _ = from_archive(f"{url}/{name}")
        assert {path.name for path in tmp_path.rglob("*") if path.is_file()} >= {"out", "b"}
        assert contents(folder).keys() <= {"out", "a/out", "b"}
    assert not Path("/out").exists()


def tar_with_large_headers(kind: str) -> bytes:
    """A small archive with headers of 64 MB, which `tarfile` alone would keep in memory."""
    info, content = tarfile.TarInfo("a"), bytes(2**26)
    if kind == "sparse":  # Each block of its map says that another one follows.
        info.type = tarfile.GNUTYPE_SPARSE
        content = (bytes(504) + b"\1" + bytes(7)) * 2**17
    elif kind == "pax sparse":
        numbers = {"major": "1", "minor": "0", "name": "a", "realsize": "0"}
        info.pax_headers = {f"GNU.sparse.{name}": each for name, each in numbers.items()}
        content = b"100000000\n" + b"0\n" * 2**25
    elif kind == "global":
        info.type = tarfile.XGLTYPE
    else:
        info.type = {"name": tarfile.GNUTYPE_LONGNAME, "link": tarfile.GNUTYPE_LONGLINK}.get(
            kind, tarfile.XHDTYPE
        )
    info.size = len(content)
    header = bytearray(info.tobuf(tarfile.PAX_FORMAT))
    if kind == "sparse":
        header[482] = 1
        header[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(header))[0]
    return gzip.compress(header + content, 1)


@pytest.mark.parametrize("kind", ["name", "link", "pax", "global", "sparse", "pax sparse"])
def test_large_headers_are_refused_unread(url: str, kind: str) -> None:
    content = tar_with_large_headers(kind)
    assert len(content) < 1_000_000
    FILES["/a.tgz"] = content, None
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 65,536 bytes of headers"):
            from_archive(f"{url}/a.tgz")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("pack", [tar, zipped])
def test_many_files_are_refused(
    url: str, pack: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_MEMBERS", 2)
    FILES["/a.zip"] = pack({"a": b"", "b": b""}), None
    FILES["/b.zip"] = pack({"a": b"", "b": b"", "c": b""}), None
    from_archive(f"{url}/a.zip")
    with pytest.raises(ValueError, match="expected at most 2 files"):
        from_archive(f"{url}/b.zip")


@pytest.mark.parametrize("name", ["a.tgz", "endless.tgz"])
def test_no_download_is_larger_than_the_cache(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_SMALL", 1_000_000)
    monkeypatch.setenv("USE_ST5_CACHE_GB", "0.002")
    FILES[f"/{name}"] = bytes(30_000_000), None
    with pytest.raises(OSError, match=r"at most 2,000,000 bytes; set USE_ST5_CACHE_GB"):
        from_archive(f"{url}/{name}")


def test_no_redirect_leads_to_an_unsafe_address(url: str) -> None:
    FILES["/a.zip"] = zipped({"a": b"1"}), None
    REDIRECTS["/near.zip"] = f"{url}/a.zip"
    REDIRECTS["/far.zip"] = f"{url}/a.zip".replace("127.0.0.1", "127.0.0.2")
    assert contents(from_archive(f"{url}/near.zip")[0]) == {"a": b"1"}
    with pytest.raises(ValueError, match=r"begins with https://, received http://127\.0\.0\.2"):
        from_archive(f"{url}/far.zip")


def test_downloads_that_fail(url: str) -> None:
    FILES["/cut.zip"] = zipped({"a": b"1" * 5_000}), 100
    with pytest.raises(ValueError, match="a tar or zip archive"):
        from_archive(f"{url}/cut.zip")
    with pytest.raises(ConnectionError, match="404"):
        from_archive(f"{url}/absent.zip")
    with pytest.raises(ConnectionError, match="the download failed"):
        from_archive("http://127.0.0.1:9/a.zip")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://example.com/model.tar.gz", "begins with https"),
        ("https://example.com/model.pb", "the URL of an archive"),
        ("https://tfhub.dev/google/universal-sentence-encoder/4", "now on Kaggle"),
    ],
)
def test_other_addresses_are_refused_unasked(address: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        from_archive(address)
