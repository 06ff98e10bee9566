from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.encode.similarity import unit_rows
from use_st5.search.exact import exact_search
from use_st5.search.hnsw import NearGraph


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    """Rows of length 1 around 40 centres, as texts of 40 topics would lie."""
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((40, 32))
    rows = centres[generator.integers(40, size=2000)] + 0.5 * generator.standard_normal((2000, 32))
    return unit_rows(rows).astype(np.float32)


def test_it_finds_what_an_exact_search_finds_and_survives_a_file(
    vectors: np.ndarray, tmp_path: Path
) -> None:
    pytest.importorskip("faiss", reason="the extra `search` is not installed")
    graph = NearGraph.of(vectors)
    near = graph.near(vectors[:50], count=80)
    _, rows = exact_search(vectors[:50], vectors, k=10)
    assert near.shape == (50, 80)
    assert np.mean([len({*a} & {*b}) for a, b in zip(near, rows, strict=True)]) > 9.5
    graph.write(tmp_path / "graph.faiss")
    again = NearGraph.read(tmp_path / "graph.faiss")
    assert again.shape == (2000, 32)
    np.testing.assert_array_equal(again.near(vectors[:50], count=80), near)


def test_another_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="the extra `search` is not installed")
    (tmp_path / "graph.faiss").write_bytes(b"no graph")
    with pytest.raises(ValueError, match=r"graph\.faiss: expected a graph of FAISS"):
        NearGraph.read(tmp_path / "graph.faiss")


def test_without_faiss_the_extra_is_named(
    vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(ImportError, match=r"\[search\]"):
        NearGraph.of(vectors)
