"""The start of a student: near an average of the teacher's vectors of single words."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable

import keras
import numpy as np

from experiments.bundled_models.word_vocabulary import PIECE_MARK

# The factor on the initial kernels of the layers whose outputs a Transformer's blocks add.
_BRANCH_SCALE = 0.1
# T5's first pieces are padding, the end of a sentence and the unknown piece.
NUM_SPECIAL = 3
_SPACE = "\u2581"


def spelled(terms: Iterable[str]) -> list[str]:
    """Words and pieces of words without the pieces' mark, as a teacher reads them."""
    return [term.removeprefix(PIECE_MARK) or term for term in terms]


def spelled_pieces() -> list[str]:
    """T5's pieces from id `NUM_SPECIAL` on, without the space mark unless a piece is only that."""
    import tensorflow_text  # It needs TensorFlow, and training does not.

    vocabulary = importlib.resources.files("use_st5.tokenizers") / "vocabularies" / "t5.model"
    tokenizer = tensorflow_text.SentencepieceTokenizer(model=vocabulary.read_bytes())
    ids = np.arange(NUM_SPECIAL, int(tokenizer.vocab_size()), dtype=np.int32)
    names = (each.decode() for each in tokenizer.id_to_string(ids).numpy())
    return [name.removeprefix(_SPACE) or name for name in names]


def word_table(vectors: np.ndarray, *, rows: int, dim: int, first: int, seed: int) -> np.ndarray:
    """Initial values of an embedding table.

    The teacher's vectors of single words are a good static encoder by themselves (the idea of
    Model2Vec, Tulkens and van Dongen 2024): they are centred and turned onto their first principal
    components. The mean squared entry of the table is 1, the size of sinusoidal positions.

    Args:
        vectors: The teacher's vectors, float `[words, teacher_dim]`.
        rows: Rows of the table; rows without a word are random, at a third of the words' size.
        dim: Width of the table, at most `teacher_dim`.
        first: The row of the first word.
        seed: Seed of the random rows.

    Returns:
        float32 `[rows, dim]`.
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


def start_near_average(
    *, around: Iterable[keras.layers.Layer], branches: Iterable[keras.layers.Layer], seed: int
) -> None:
    """Makes a Transformer's vectors, before training, near an average of its table's rows.

    Args:
        around: The dense layers around the blocks; they become orthogonal, so they keep cosines.
        branches: The last dense layers of the blocks' residual branches, which become small.
        seed: Seed of the orthogonal kernels.
    """
    for dense in around:
        dense.kernel.assign(keras.initializers.Orthogonal(seed=seed)(dense.kernel.shape))
    for dense in branches:
        dense.kernel.assign(_BRANCH_SCALE * dense.kernel)
