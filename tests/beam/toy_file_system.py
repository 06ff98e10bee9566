"""A file system of Apache Beam other than the local one: `toy://` names files below a root.

Beam finds it among the subclasses of `FileSystem`, as it finds those of S3 or Google's storage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apache_beam.io.filesystem import FileMetadata, FileSystem
from apache_beam.io.localfilesystem import LocalFileSystem


class ToyFileSystem(LocalFileSystem):
    """Passes every call on to the local file system."""

    root = Path()

    @classmethod
    def scheme(cls) -> str:
        return "toy"

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path: str) -> tuple[str, str]:
        head, _, tail = path.rpartition("/")
        return head, tail

    def has_dirs(self) -> bool:
        return False

    def _here(self, path: str) -> str:
        return str(self.root / path.removeprefix("toy://"))

    def _there(self, path: str) -> str:
        return f"toy://{Path(path).relative_to(self.root).as_posix()}"

    def match(self, patterns: list[str], limits: Any = None) -> Any:
        return FileSystem.match(self, patterns, limits)

    def _list(self, folder: str) -> Any:
        for path in self.root.rglob("*"):
            if path.is_file() and self._there(str(path)).startswith(folder):
                yield FileMetadata(self._there(str(path)), path.stat().st_size)

    def mkdirs(self, path: str) -> None:
        Path(self._here(path)).mkdir(parents=True)

    def create(self, path: str, *arguments: Any, **options: Any) -> Any:
        Path(self._here(path)).parent.mkdir(parents=True, exist_ok=True)
        return super().create(self._here(path), *arguments, **options)

    def open(self, path: str, *arguments: Any, **options: Any) -> Any:
        return super().open(self._here(path), *arguments, **options)

    def rename(self, sources: list[str], targets: list[str]) -> None:
        super().rename([*map(self._here, sources)], [*map(self._here, targets)])

    def exists(self, path: str) -> bool:
        return super().exists(self._here(path))

    def size(self, path: str) -> int:
        return super().size(self._here(path))

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, self.size(path))

    def checksum(self, path: str) -> str:
        return super().checksum(self._here(path))

    def delete(self, paths: list[str]) -> None:
        super().delete([*map(self._here, paths)])
