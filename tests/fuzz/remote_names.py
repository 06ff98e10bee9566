"""Names that a remote store may list, and a check of the functions that read from it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import hypothesis
import tensorflow as tf
from hypothesis import strategies as st

from tests.fuzz.strings import FEW
from use_st5.io.files import download, names_in, remove, upload

_PARTS = ["..", ".", "", "a", "b.json", "saved_model.pb", "~", "..a"]
_PARTS += ["..\\x", "\\x", "C:", "C:x", "D:\\x", "a:b", "CON", "\n", "é", "\u202e", "x" * 200]


class Store:
    """A folder in memory, next to a file of somebody else, and the disk that it is copied to.

    Args:
        root: A folder to make.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.target = root / "deep" / "deeper" / "target"
        self.target.parent.mkdir(parents=True)
        (root / "precious").write_text("years")
        self.model = root.with_name(f"{root.name}_model")
        self.model.mkdir()
        (self.model / "use_st5.json").write_text('{"files": {}}')
        self._number = 0

    def check(self, names: list[str], uploading: list[str] | None) -> None:
        """Writes files of these names, reads them all, and looks for files in other places.

        Args:
            names: The names of the files. "/" at the start stands for the root of the disk.
            uploading: The files that the store's `use_st5.json` lists, if there is one.
        """
        self._number += 1
        bucket = re.sub(r"\W", "_", f"names{self.root}{self._number}")
        base, precious = f"ram://{bucket}/model", f"ram://{bucket}/precious"
        _write(precious, "years")
        for name in names:
            _write(f"{base}/{self._named(name)}", "x")
        if uploading is not None:
            record = json.dumps({"files": dict.fromkeys(map(self._named, uploading))})
            _write(f"{base}/use_st5.json", record)
        for read in (lambda: download(base, self.target), lambda: names_in(base),
                     lambda: upload(self.model, base), lambda: remove(base)):  # fmt: skip
            try:
                read()
            except (ValueError, OSError) as error:
                assert base in str(error) or str(self.target) in str(error), "no name is said"
            self._hold()
        assert tf.io.gfile.exists(precious), "what is another's was removed"

    def _named(self, name: str) -> str:
        return f"{self.root}{name}" if name.startswith("/") else name

    def _hold(self) -> None:
        """Removes the target, and checks that nothing else was written to the disk."""
        for path in sorted(self.target.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        if self.target.exists():
            self.target.rmdir() if self.target.is_dir() else self.target.unlink()
        found = {path.relative_to(self.root).as_posix() for path in self.root.rglob("*")}
        assert found == {"precious", "deep", "deep/deeper"}, "a file was written elsewhere"
        assert (self.root / "precious").read_text() == "years"


def remote_names(root: Path, *, seed: int | None = None) -> int:
    """Reads from stores with random file names.

    Args:
        root: A folder to make.
        seed: The seed of the names; None: always the same few.

    Returns:
        The number of stores that were read.
    """
    store = Store(root)
    few = hypothesis.settings(FEW, derandomize=seed is None)
    names = st.lists(st.lists(st.sampled_from(_PARTS), min_size=1, max_size=4).map("/".join))
    hostile = st.just("../precious")

    @few
    @hypothesis.given(names=names, uploading=st.none() | st.lists(hostile | st.just("a")))
    def check(names: list[str], uploading: list[str] | None) -> None:
        store.check(names, uploading)

    (check if seed is None else hypothesis.seed(seed)(check))()
    return store._number


def _write(path: str, text: str) -> None:
    try:
        tf.io.gfile.makedirs(path.rpartition("/")[0])
        with tf.io.gfile.GFile(path, "w") as file:
            file.write(text)
    except (tf.errors.OpError, ValueError):  # A name that the store in memory does not take.
        return
