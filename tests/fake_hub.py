"""A hub on 127.0.0.1 that answers huggingface_hub as Hugging Face's does, and can fail."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

COMMIT = "a" * 40
_LFS = (".safetensors", ".model", ".bin", ".pb")


class FakeHub(ThreadingHTTPServer):
    """Repositories of files, by name and commit.

    Attributes:
        files: Repository → commit → file → content.
        refs: Repository → branch or tag → commit.
        asked: The paths of all requests, each with its method.
        tokens: The values of the header `Authorization` in the requests.
        broken: File → how many bytes of it are sent before the connection ends.
        breaks: How often `broken` has an effect.
        changed: File → other content of the same size, which is sent in place of its own.
        headers: File → headers of the answers about it, which replace its own.
        commits: Commit → what the hub says in its place.
        answer: Status and content of the answer to every request, in place of its own.
        gated: Repositories whose terms must be accepted.
        uploaded: File → content of what was committed.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, dict[str, dict[str, bytes]]] = {}
        self.refs: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.broken: dict[str, int] = {}
        self.breaks = 1_000
        self.changed: dict[str, bytes] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.commits: dict[str, str] = {}
        self.answer: tuple[int, bytes] | None = None
        self.gated: set[str] = set()
        self.uploaded: dict[str, bytes] = {}
        self.objects: dict[str, bytes] = {}

    @property
    def url(self) -> str:
        """The URL of the hub."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add(self, repository: str, files: dict[str, bytes], commit: str = COMMIT) -> None:
        """Adds a commit, which becomes the newest of its repository."""
        self.files.setdefault(repository, {})[commit] = files
        self.refs.setdefault(repository, {})["main"] = commit

    def downloads(self) -> list[str]:
        """The files that were sent."""
        gets = (each for each in self.asked if each.startswith("GET ") and "/resolve/" in each)
        return [each.split("/resolve/")[1].partition("/")[2] for each in gets]


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_HEAD(self) -> None:  # noqa: N802
        self._answer()

    def do_GET(self) -> None:  # noqa: N802
        self._answer()

    def do_PUT(self) -> None:  # noqa: N802
        self._note()
        self.server.objects[self.path.rsplit("/", 1)[1]] = self._body()
        self._send(200, b"")

    def do_POST(self) -> None:  # noqa: N802
        self._note()
        body, path = self._body(), urlsplit(self.path).path
        if path == "/api/repos/create":
            asked = json.loads(body)
            self._json({"url": f"{self.server.url}/{asked['organization']}/{asked['name']}"})
        elif "/preupload/" in path:
            asked = json.loads(body)["files"]
            mode = {True: "lfs", False: "regular"}
            found = [
                {"path": each["path"], "uploadMode": mode[each["path"].endswith(_LFS)]}
                | {"shouldIgnore": False}
                for each in asked
            ]
            self._json({"files": found})
        elif path.endswith("/info/lfs/objects/batch"):
            objects = [
                each | {"actions": {"upload": {"href": f"{self.server.url}/put/{each['oid']}"}}}
                for each in json.loads(body)["objects"]
            ]
            self._json({"transfer": "basic", "objects": objects})
        elif "/commit/" in path:
            self._commit(body)
        elif path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        else:
            self._send(404, b"")

    def _commit(self, body: bytes) -> None:
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                self.server.uploaded[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.server.uploaded[value["path"]] = self.server.objects[value["oid"]]
        repository = urlsplit(self.path).path.removeprefix("/api/models/").partition("/commit/")[0]
        url = f"{self.server.url}/{repository}/commit/{COMMIT}"
        self._json({"success": True, "commitOid": COMMIT, "commitUrl": url, "hookOutput": ""})

    def _answer(self) -> None:
        self._note()
        path = unquote(urlsplit(self.path).path)
        if path == "/api/whoami-v2":
            self._json({"name": "me", "type": "user", "orgs": []})
        elif found := re.fullmatch(r"/api/models/(.+?)(?:/revision/(.+))?", path):
            self._info(found[1], found[2] or "main")
        elif found := re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path):
            self._file(found[1], found[2], found[3])
        else:
            self._send(404, b"")

    def _info(self, repository: str, revision: str) -> None:
        if (commit := self._commit_of(repository, revision)) is None:
            return
        siblings = []
        for name, content in self.server.files[repository][commit].items():
            sha1 = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            entry: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": sha1}
            if name.endswith(_LFS):
                sha256 = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 128}
            siblings.append(entry)
        sha = self.server.commits.get(commit, commit)
        self._json({"id": repository, "modelId": repository, "sha": sha, "siblings": siblings})

    def _file(self, repository: str, revision: str, name: str) -> None:
        if (commit := self._commit_of(repository, revision)) is None:
            return
        content = self.server.files[repository][commit][name]
        etag = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        if name.endswith(_LFS):
            etag = hashlib.sha256(content).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        headers |= self.server.headers.get(name, {})
        content = self.server.changed.get(name, content)
        start = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        status = 200
        if start and self.command == "GET":
            status, total = 206, len(content)
            content = content[int(start[1]) :]
            headers["Content-Range"] = f"bytes {start[1]}-{total - 1}/{total}"
        cut = self.server.broken.get(name)
        if cut is not None and self.command == "GET" and self.server.breaks > 0:
            self.server.breaks -= 1
            self._send(status, content, headers, sent=content[:cut])
            self.close_connection = True
            return
        self._send(status, content, headers)

    def _commit_of(self, repository: str, revision: str) -> str | None:
        commits = self.server.files.get(repository)
        commit = self.server.refs.get(repository, {}).get(revision, revision)
        code = "" if commits and commit in commits else "RevisionNotFound"
        if commits is None:
            code = "RepoNotFound"
        elif repository in self.server.gated:
            code = "GatedRepo"
        if code:
            self._send(403 if code == "GatedRepo" else 404, b"", {"X-Error-Code": code})
            return None
        return commit

    def _note(self) -> None:
        self.server.asked.append(f"{self.command} {urlsplit(self.path).path}")
        self.server.tokens.add(self.headers.get("Authorization"))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(
        self,
        status: int,
        content: bytes,
        headers: dict[str, str] | None = None,
        sent: bytes | None = None,
    ) -> None:
        if self.server.answer:
            status, content = self.server.answer
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content if sent is None else sent)


@contextmanager
def fake_hub(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """Starts a hub for huggingface_hub in this process and its children, with empty caches."""
    constants = pytest.importorskip(
        "huggingface_hub.constants", reason="the extra `hub-models` is not installed"
    )
    with FakeHub() as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        values = {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(home / "huggingface"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        # huggingface_hub read these settings from the environment when it was imported.
        cache = str(home / "huggingface" / "hub")
        template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", cache)
        monkeypatch.setattr(constants, "HF_HOME", values["HF_HOME"])
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # another protocol
        yield hub
        hub.shutdown()


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    files = (each for each in folder.rglob("*") if each.is_file())
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in files}
