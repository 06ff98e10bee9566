from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from use_st5.encode.similarity import unit_rows
from use_st5.search import find_communities, mine_paraphrases


def peer(vectors: np.ndarray, threshold: float, count: int) -> list[tuple[float, int, int]]:
    """Compares each pair by itself, and sorts all of them."""
    units = unit_rows(vectors)
    found = [
        (float(np.float32(np.clip(units[i] @ units[j], -1, 1))), i, j)
        for i in range(len(units))
        for j in range(i + 1, len(units))
        if units[i] @ units[j] >= threshold
    ]
    return sorted(found, key=lambda pair: (-pair[0], *pair[1:]))[:count]


def mined(vectors: np.ndarray, **options: object) -> list[tuple[float, int, int]]:
    pairs, cosines = mine_paraphrases(vectors, **options)
    assert (pairs.dtype, cosines.dtype, pairs.shape[1:]) == (np.int64, np.float32, (2,))
    return [(score, *pair) for score, pair in zip(cosines.tolist(), pairs.tolist(), strict=True)]


@pytest.mark.parametrize("block", [(1, 1), (7, 5), (5, 7), (1024, 4096)])
@pytest.mark.parametrize(("threshold", "count"), [(-1.0, 10_000), (0.5, 10_000), (-1.0, 40)])
def test_it_finds_what_sorting_all_pairs_finds_whatever_the_blocks(
    block: tuple[int, int], threshold: float, count: int
) -> None:
    vectors = np.random.default_rng(0).standard_normal((60, 4)).astype(np.float32)
    vectors[[7, 20]] = vectors[3], 2 * vectors[3]  # The length of a vector does not matter.
    found = mined(vectors, threshold=threshold, max_pairs=count, block=block)
    expected = peer(vectors, threshold, count)
    assert [pair[1:] for pair in found] == [pair[1:] for pair in expected]
    np.testing.assert_allclose([pair[0] for pair in found], [pair[0] for pair in expected])


def test_vectors_of_length_1_are_not_copied() -> None:
    vectors = np.random.default_rng(0).standard_normal((5000, 256))
    units, numbers = unit_rows(vectors).astype(np.float32), vectors.astype(np.float32)
    tracemalloc.start()
    found = mined(units, threshold=0.2, block=(64, 256))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < units.nbytes
    assert {pair[1:] for pair in found} == {pair[1:] for pair in mined(numbers, threshold=0.2)}


def test_by_hand() -> None:
    vectors = np.array([[1, 0], [0, 2], [3, 0], [0, 0], [4, 3]])
    assert mined(vectors, threshold=0.6) == [
        *[(1.0, 0, 2), (np.float32(0.8), 0, 4), (np.float32(0.8), 2, 4)],
        (np.float32(0.6), 1, 4),
    ]
    # A zero row has a cosine of 0 with every other one.
    assert [pair for pair in mined(vectors, threshold=0.0) if 3 in pair[1:]] == [
        (0.0, row, 3) if row < 3 else (0.0, 3, row) for row in (0, 1, 2, 4)
    ]


@pytest.mark.parametrize("block", [(8, 8), (16, 64), (1024, 4096)])
def test_many_equal_rows_give_the_first_pairs(block: tuple[int, int]) -> None:
    found = mined(np.ones((200, 3)), threshold=-1, max_pairs=250, block=block)
    expected = [(1.0, i, j) for i in range(2) for j in range(i + 1, 200)]
    assert found == expected[:250]


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows_have_no_pairs(rows: int) -> None:
    assert mined(np.ones((rows, 3))) == []


def test_what_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="expected finite numbers"):
        mine_paraphrases(np.array([[1.0, np.nan], [1.0, 2.0]]))


def test_the_other_library_finds_the_same() -> None:
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    util = pytest.importorskip("sentence_transformers.util", reason="the extra `peers`")
    vectors = np.random.default_rng(1).standard_normal((300, 16)).astype(np.float32)
    theirs = util.paraphrase_mining_embeddings(torch.from_numpy(vectors), top_k=299, max_pairs=500)
    pairs, cosines = mine_paraphrases(vectors, threshold=-1, max_pairs=500)
    assert [pair[1:] for pair in theirs] == pairs.tolist()
    np.testing.assert_allclose([pair[0] for pair in theirs], cosines, atol=1e-6)


def test_communities() -> None:
    angles = np.radians([0, 10, 20, 90, 95, 180, 0])[:, None]
    vectors = np.hstack([np.cos(angles), np.sin(angles)])
    vectors = np.concatenate([vectors, np.zeros((1, 2))])
    near = math.cos(math.radians(15))
    groups = find_communities(vectors, threshold=near, min_size=1, block=(3, 2))
    # Row 1 has the most neighbours. A row without a direction is alone.
    assert [sorted(group) for group in groups] == [[0, 1, 2, 6], [3, 4], [5], [7]]
    (found,) = find_communities(vectors, threshold=near, min_size=3)
    assert (found[0], sorted(found)) == (1, [0, 1, 2, 6])
    for rows, threshold in ((np.ones((50, 3)), 0.9), (vectors, -1.0)):
        (whole,) = find_communities(rows, threshold=threshold, min_size=2)
        assert sorted(whole) == [*range(len(rows))]
    assert find_communities(vectors, min_size=9) == []
