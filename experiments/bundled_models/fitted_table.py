"""The table of a USE-DAN whose mean rows come nearest to given vectors: linear least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.bundled_models.dan_student import Rows


def fitted_table(
    rows: Rows,
    texts: np.ndarray,
    vectors: np.ndarray,
    *,
    size: int,
    ridge: float = 0.05,
    steps: int = 14,
) -> np.ndarray:
    """The rows whose mean over a text's ids is nearest to the text's vector.

    It minimizes the sum over the texts of |mean - vector|² and `ridge` · |row|² over the rows, by
    conjugate gradients with the diagonal as preconditioner.

    Args:
        rows: The ids.
        texts: The numbers of the texts, `[texts]`.
        vectors: Centred vectors of them, float32 `[texts, width]`.
        size: Rows of the table.
        ridge: Pulls rows of rare ids towards 0.
        steps: After 14 the gradient is a thousandth of the first one.

    Returns:
        float32 `[size, width]`.
    """
    from scipy.sparse import csr_matrix

    ids, starts = rows.take(texts)
    ends = np.append(starts[1:], len(ids))
    weights = np.repeat(1 / (ends - starts), ends - starts).astype(np.float32)
    means: Any = csr_matrix((weights, ids, np.append(starts, len(ids))), (len(texts), size))
    means.sum_duplicates()
    transposed = means.T.tocsr()
    diagonal = np.asarray(means.multiply(means).sum(axis=0)).reshape(-1, 1) + np.float32(ridge)
    table = np.zeros((size, vectors.shape[1]), np.float32)
    residual = transposed @ vectors
    scaled = residual / diagonal
    direction, product = scaled, (residual * scaled).sum(axis=0)
    tiny = np.finfo(np.float32).tiny  # A teacher may have a number that is always 0.
    for _ in range(steps):
        changed = transposed @ (means @ direction) + ridge * direction
        length = product / np.maximum((direction * changed).sum(axis=0), tiny)
        table += length * direction
        residual = residual - length * changed
        scaled = residual / diagonal
        last, product = product, (residual * scaled).sum(axis=0)
        direction = scaled + product / np.maximum(last, tiny) * direction
    return table
