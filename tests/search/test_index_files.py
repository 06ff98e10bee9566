from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.search.damages import answer, write_index
from use_st5.search.vector_index import VectorIndex


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_every_damaged_byte_is_found_by_verify(kind: str, tmp_path: Path) -> None:
    """Changes many bytes of each file in turn: reading names the file, or only `verify` does."""
    if kind == "hnsw":
        pytest.importorskip("faiss", reason="the extra `search` is not installed")
    folder = tmp_path / "index"
    write_index(folder, kind)
    whole = answer(folder)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for place in range(0, len(content), 17):
            changed = bytearray(content)
            changed[place] ^= 1 << place % 8
            path.write_bytes(changed)
            try:
                VectorIndex(folder).verify()
            except ValueError as error:
                assert str(folder) in str(error), f"{path.name}: byte {place}: {error}"
                known = "Make the index again with `use-st5 index", "Update use_st5"
                assert any(each in str(error) for each in known), error
            else:  # A name or a number of the record that no check can know, or a blank.
                assert path.name == "index.json", f"{path.name}: byte {place}"
        path.write_bytes(content)
    assert answer(folder) == whole


@pytest.mark.parametrize("name", ["graph.faiss", "starts.npy"])
def test_what_is_read_whole_is_compared_when_the_index_opens(name: str, tmp_path: Path) -> None:
    """FAISS trusts the lengths in its file: one changed byte could cost 12 GiB."""
    pytest.importorskip("faiss", reason="the extra `search` is not installed")
    write_index(tmp_path / "index", "hnsw")
    path = tmp_path / "index" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}: expected the bytes .* Make the index again"):
        VectorIndex(tmp_path / "index")


def test_texts_that_are_no_utf8_are_named(tmp_path: Path) -> None:
    write_index(tmp_path / "index", "exact")
    array = np.fromfile(tmp_path / "index" / "texts.utf8", np.uint8)
    array[2] = 255
    array.tofile(tmp_path / "index" / "texts.utf8")
    with pytest.raises(ValueError, match=r"texts\.utf8: expected UTF-8"):
        answer(tmp_path / "index")
