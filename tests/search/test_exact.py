from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from use_st5.encode.similarity import unit_rows
from use_st5.search import exact_search
from use_st5.search.exact import rescored


def peer(queries: np.ndarray, corpus: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Computes each inner product by itself, and sorts all of them."""
    products = np.einsum("qd,rd->qr", queries, corpus, dtype=np.float64).astype(np.float32)
    rows = np.argsort(-products, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(products, rows, axis=1), rows


@pytest.mark.parametrize("k", [1, 4, 123])
@pytest.mark.parametrize("block", [(1, 1), (5, 7), (3, 1000)])
def test_it_finds_what_sorting_finds_whatever_the_blocks(k: int, block: tuple[int, int]) -> None:
    """Whole numbers have exact products, and many of them are equal."""
    generator = np.random.default_rng(0)
    queries, corpus = (generator.integers(-3, 4, (rows, 5)).astype("f") for rows in (37, 123))
    scores, rows = exact_search(queries, corpus, k=k, block=block)
    wanted_scores, wanted_rows = peer(queries, corpus, k)
    np.testing.assert_array_equal(rows, wanted_rows)
    np.testing.assert_array_equal(scores, wanted_scores)
    assert (scores.dtype, rows.dtype) == (np.float32, np.int64)


def test_by_hand() -> None:
    corpus = np.array([[1, 0], [0, 2], [-3, 0], [1, 0]])
    scores, rows = exact_search(np.array([[1, 0], [0, 1], [-1, -1]]), corpus, k=3, block=(2, 3))
    assert rows.tolist() == [[0, 3, 1], [1, 0, 2], [2, 0, 3]]
    assert scores.tolist() == [[1, 1, 0], [2, 0, 0], [3, -1, -1]]


@pytest.mark.parametrize(
    ("queries", "corpus", "options", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), {"k": 1}, r"one dim, received \[2, 3\] and \[2, 4\]"),
        (np.ones((2, 3)), np.ones((2, 3)), {"k": 3}, "k: expected 1 to 2, .* received 3"),
        (np.full((2, 3), np.nan), np.ones((2, 3)), {"k": 1}, "queries: expected finite numbers"),
        (np.ones((2, 3)), np.full((2, 3), np.inf), {"k": 1}, "corpus: expected finite numbers"),
    ],
)
def test_errors(queries: np.ndarray, corpus: np.ndarray, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exact_search(queries, corpus, **options)


@pytest.mark.process
def test_memory_is_that_of_a_block(fresh_python: Callable[..., str]) -> None:
    # All products at once would take 5,000 × 20,000 × 4 bytes = 400 MB.
    code = """
import resource, sys
import numpy as np
from use_st5.encode.similarity import unit_rows
from use_st5.search import exact_search
from use_st5.search.exact import rescored
vectors = np.random.default_rng(0).standard_normal((20_000, 8)).astype(np.float32)
exact_search(vectors[:100], vectors, k=4)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
exact_search(vectors[:5_000], vectors, k=4)
print(peak() - before, "tensorflow" in sys.modules)
"""
    grown, tensorflow = fresh_python("-c", code).split()
    assert int(grown) < 150
    assert tensorflow == "False"


@pytest.mark.parametrize("rows", [3000, 6000])
def test_many_equal_rows_and_a_rising_corpus(rows: int) -> None:
    """The case with most candidates: half the rows are equal, the others come nearer and nearer."""
    generator = np.random.default_rng(0)
    rising = np.linspace(-1, 1, rows // 2)[:, None] * np.ones(16)
    same = np.repeat(generator.standard_normal((1, 16)), rows // 2, axis=0)
    corpus = np.concatenate([rising, same]).astype(np.float32)
    queries = np.concatenate([np.ones((2, 16)), same[:2]]).astype(np.float32)
    found = exact_search(queries, corpus, k=5, block=(3, 1000))
    wanted = peer(queries, corpus, 5)
    np.testing.assert_array_equal(found[1], wanted[1])
    np.testing.assert_array_equal(found[0], wanted[0])


def test_rescoring_by_hand() -> None:
    vectors = np.array([[1.0, 0], [0, 1], [2, 0], [1, 0]], np.float32)
    candidates = np.array([[3, 0, 2], [1, -1, -1]])
    scores, rows = rescored(np.array([[1.0, 0], [0, 3]]), vectors, candidates, k=3)
    assert rows.tolist() == [[2, 0, 3], [1, -1, -1]]
    assert scores.tolist() == [[2, 1, 1], [3, -np.inf, -np.inf]]


def test_it_finds_what_sentence_transformers_finds() -> None:
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    util = pytest.importorskip("sentence_transformers.util")
    generator = np.random.default_rng(0)
    queries, corpus = (generator.standard_normal((n, 96)).astype(np.float32) for n in (120, 9000))
    for unit, score in ((False, util.dot_score), (True, util.cos_sim)):
        if unit:
            queries, corpus = unit_rows(queries), unit_rows(corpus)
        scores, rows = exact_search(queries, corpus, k=10)
        found = util.semantic_search(
            torch.from_numpy(queries), torch.from_numpy(corpus), top_k=10, score_function=score
        )
        assert [[hit["corpus_id"] for hit in line] for line in found] == rows.tolist()
        wanted = [[hit["score"] for hit in line] for line in found]
        np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-5)
