"""The training of a USE-DAN in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.bundled_models.dan_student import Rows, Settings, Student, schedule, shuffled
from use_st5.models import USEDAN

torch = pytest.importorskip("torch", reason="needs PyTorch (extra peers)")

IDS = [[3, 1, 4], [1, 5], [2]]
ROWS = Rows(np.concatenate(IDS), np.array([0, 3, 5, 6]))


def student(**settings: object) -> Student:
    rng = np.random.default_rng(0)
    shapes = [(8, 6), (6, 6), (6, 6), (6, 10), (10, 10), (6, 10)]
    weights = [rng.normal(scale=0.4, size=shape).astype(np.float32) for shape in shapes]
    given = Settings(steps=200, **{"short": (), **settings})  # type: ignore[arg-type]
    return Student(*weights, teacher_widths=[4], settings=given)


NO_SCORES = np.zeros(0, np.float32)


def teacher() -> np.ndarray:
    vectors = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_rows_of_some_texts() -> None:
    ids, starts = ROWS.take(np.array([2, 0]))
    assert ids.tolist() == [2, 3, 1, 4]
    assert starts.tolist() == [0, 1]


def test_vectors_are_those_of_the_keras_model() -> None:
    ours = student()
    model = USEDAN.from_preset(
        "use_dan_en", num_embeddings=8, embedding_dim=6, hidden_dims=(6, 6, 10, 10)
    )
    model.build()
    kernels = [kernel.detach().numpy() for kernel in ours.kernels]
    model.set_weights([ours.table.numpy(), *kernels])
    ids, starts = ROWS.take(np.arange(3))
    found = ours.vectors(ours.table, torch.tensor(ids), torch.tensor(starts))
    padded = np.array([[*row, 0, 0][:3] for row in IDS])
    np.testing.assert_allclose(found.detach().numpy(), np.asarray(model(padded)), atol=1e-6)


def test_a_step_changes_only_the_rows_that_it_reads() -> None:
    ours, texts = student(), np.arange(3)
    before = ours.table.clone()
    ours.step(100, *ROWS.take(texts), [(texts, teacher())], NO_SCORES)
    changed = (ours.table != before).any(1).tolist()
    assert changed == [False, True, True, True, True, True, False, False]


def test_cosines_become_those_of_the_teacher_also_of_short_vectors() -> None:
    ours, texts = student(short=(5,), table_rate=0.02), np.arange(3)
    ids, starts = ROWS.take(texts)
    steps = range(1, 200)
    losses = [ours.step(each, ids, starts, [(texts, teacher())], NO_SCORES) for each in steps]
    assert losses[-1] < 0.05 * losses[0]
    vectors = ours.vectors(ours.table, torch.tensor(ids), torch.tensor(starts)).detach().numpy()
    for width in (5, 10):
        short = vectors[:, :width] / np.linalg.norm(vectors[:, :width], axis=1, keepdims=True)
        np.testing.assert_allclose(short @ short.T, teacher() @ teacher().T, atol=0.1)


def test_a_repeated_text_has_no_cosine_with_itself() -> None:
    ours, twice = student(), np.array([0, 1, 2, 2])
    repeated = torch.tensor(np.eye(10, dtype=np.float32)[[0, 1, 2, 5]])
    rows = np.append(teacher(), teacher()[2:], axis=0)
    cosines = teacher() @ teacher().T
    errors = cosines[~np.eye(3, dtype=bool)] ** 2
    of_both = ours.loss(repeated, [(twice, rows)], NO_SCORES)
    expected = 10 * (errors.sum() + 2 * (cosines[2, :2] ** 2).sum()) / 16
    with_none = student(similarity=0.0).loss(repeated, [(twice, rows)], NO_SCORES)
    assert (of_both - with_none).item() == pytest.approx(expected, rel=1e-4)


def test_scores_of_pairs_by_hand() -> None:
    ours, texts = student(similarity=0.0, score=2.0), np.arange(3)
    vectors = torch.tensor(np.eye(10, dtype=np.float32)[[0, 1, 2, 3, 4, 3, 5]])
    without = ours.loss(vectors[:3], [(texts, teacher())], NO_SCORES)
    # The first pair is one text twice, cosine 1; the other's texts are orthogonal.
    loss = ours.loss(vectors, [(texts, teacher())], np.array([1.0, 0.5], np.float32))
    assert (loss - without).item() == pytest.approx(2.0 * (0.0 + 0.25) / 2)


def test_orders_and_rates() -> None:
    numbers = shuffled(np.random.default_rng(0), 7, 3)
    rounds = np.stack([np.concatenate([next(numbers), next(numbers)]) for _ in range(4)])
    assert all(len({*each}) == 6 for each in rounds)
    assert len({*rounds.ravel()}) == 7
    rates = [schedule(step, 300) for step in (50, 100, 200, 300)]
    assert rates == pytest.approx([0.5, 1.0, 0.5, 0.0])
