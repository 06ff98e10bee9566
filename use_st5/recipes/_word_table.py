"""A table of word vectors to start from: what the teacher says of each word alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from use_st5.text.ngram_vocabulary import PIECE_MARK


def spelled(terms: Iterable[str]) -> list[str]:
    """Words and pieces of words without the pieces' mark, as a teacher reads them."""
    return [term.removeprefix(PIECE_MARK) or term for term in terms]


def word_table(vectors: np.ndarray, *, rows: int, dim: int, first: int, seed: int) -> np.ndarray:
    """Initial values of an embedding table.

    The teacher's vectors of single words are a good static encoder by themselves (the idea of
    Model2Vec, Tulkens and van Dongen 2024): they are centred and turned onto their first principal
    components. The mean squared entry of the table is 1, the size of sinusoidal positions.

    Args:
        vectors: The teacher's vectors, float `[words, teacher_dim]`.
        rows: Rows of the table; those without a word are drawn, at a third of the words' size.
        dim: Width of the table, at most `teacher_dim`.
        first: The row of the first word.
        seed: Of the drawn rows.

    Returns:
        float32 `[rows, dim]`.

    Raises:
        ValueError: The table is too wide or too short.
    """
    words, teacher_dim = vectors.shape
    if dim > teacher_dim or first + words > rows:
        raise ValueError(
            f"Expected vectors [at most {rows - first}, at least {dim}] for a table [{rows}, "
            f"{dim}] whose words begin at row {first}. Received: {list(vectors.shape)}"
        )
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, components = np.linalg.eigh(centred.T @ centred)  # by rising eigenvalue
    turned = centred @ components[:, ::-1][:, :dim]
    table = np.random.default_rng(seed).normal(scale=1 / 3, size=(rows, dim))
    table[first : first + words] = turned / np.sqrt(np.mean(turned**2))
    return table.astype(np.float32)
