from __future__ import annotations

import numpy as np
import pytest

from use_st5.search import mine_bitext

# Their cosines are [[.8, .6, 0], [.6, 0, .6]].
FOREIGN = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]])
ENGLISH = np.array([[0.8, 0.6, 0, 0], [0.6, 0, 0.8, 0], [0, 0.6, 0, 0.8]])


def test_by_hand() -> None:
    """Means of the two largest cosines: foreign rows .7 and .6, English rows .7, .3 and .3.

    The first foreign row has the margins .8/.7 and .6/.5, so that the second English row is its
    best, though the first is nearer. The second foreign row has .6/.65 and .6/.45. The best row for
    the first English one is the first foreign one, which is taken.
    """
    pairs, margins = mine_bitext(FOREIGN, ENGLISH, k=2)
    assert pairs.tolist() == [[1, 2], [0, 1]]
    assert margins == pytest.approx([0.6 / 0.45, 0.6 / 0.5])


def test_with_one_neighbour_by_hand() -> None:
    """Mutual neighbours have a margin of 1: the first rows, and the second with the third.

    The second foreign row proposes the first English one, which is no farther than the third and
    comes before it; their margin is .6/.7.
    """
    pairs, margins = mine_bitext(FOREIGN, ENGLISH, k=1)
    assert pairs.tolist() == [[0, 0], [1, 2]]
    assert margins == pytest.approx([1.0, 1.0])


def naive(x: np.ndarray, y: np.ndarray, k: int) -> list[tuple[int, int, float]]:
    """Margins of all pairs from the paper's equation; proposals and greedy choice in loops."""
    cosines = x @ y.T / np.linalg.norm(x, axis=1)[:, None] / np.linalg.norm(y, axis=1)
    x_means = np.sort(cosines, axis=1)[:, -k:].mean(axis=1)
    y_means = np.sort(cosines, axis=0)[-k:].mean(axis=0)
    margins = cosines / (x_means[:, None] / 2 + y_means / 2)
    proposals = set()
    for i, row in enumerate(cosines):
        near = np.argsort(-row)[:k]
        proposals.add((i, int(near[np.argmax(margins[i, near])])))
    for j, column in enumerate(cosines.T):
        near = np.argsort(-column)[:k]
        proposals.add((int(near[np.argmax(margins[near, j])]), j))
    chosen: list[tuple[int, int, float]] = []
    for i, j in sorted(proposals, key=lambda pair: -margins[pair]):
        if margins[i, j] > 0 and all(i != one and j != other for one, other, _ in chosen):
            chosen.append((i, j, margins[i, j]))
    return chosen


@pytest.mark.parametrize("k", [1, 2, 4, 50])
@pytest.mark.parametrize("shape", [(30, 45), (45, 30), (3, 40)])
def test_it_mines_what_the_equations_give(k: int, shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(shape)
    # A common direction keeps the means of cosines above 0, as encoders do.
    x, y = (generator.standard_normal((rows, 6)) + 1.0 for rows in shape)
    pairs, margins = mine_bitext(x, y, k=k)
    wanted = {(i, j): margin for i, j, margin in naive(x, y, k)}
    # Their order does not count, since mutual neighbours tie if k is 1.
    mined = dict(zip(map(tuple, pairs.tolist()), margins, strict=True))
    assert mined == pytest.approx(wanted, abs=1e-5)


def test_no_row_is_used_twice_and_margins_fall() -> None:
    generator = np.random.default_rng(2)
    pairs, margins = mine_bitext(generator.random((50, 3)), generator.random((20, 3)))
    assert len({one for one, _ in pairs.tolist()}) == len(pairs)
    assert len({other for _, other in pairs.tolist()}) == len(pairs)
    assert np.all(np.diff(margins) <= 0)
    assert margins[-1] > 0


def test_a_zero_vector_and_an_opposite_one_pair_with_nothing() -> None:
    pairs, _ = mine_bitext(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert pairs.shape == (0, 2)


def test_what_is_far_from_everything_pairs_with_nothing() -> None:
    """The second row of the second text has a negative cosine and a negative mean with all."""
    first, second = (
        np.stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))], axis=1)
        for angles in ([0, 90], [94, 200, 5])
    )
    pairs, _ = mine_bitext(first, second, k=2)
    assert sorted(pairs.tolist()) == [[0, 2], [1, 0]]
