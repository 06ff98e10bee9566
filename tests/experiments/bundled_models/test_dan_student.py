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
    table = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    return Student(table, 10, 4, Settings(steps=200, **settings))  # type: ignore[arg-type]


def batch(seed: int = 0) -> dict[str, np.ndarray]:
    vectors = np.random.default_rng(seed).normal(size=(3, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {"teacher": vectors, "same": np.eye(3, dtype=bool), "scores": np.zeros(0, np.float32)}


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
    ours = student()
    before = ours.table.clone()
    ours.step(100, *ROWS.take(np.arange(3)), **batch())
    changed = (ours.table != before).any(1).tolist()
    assert changed == [False, True, True, True, True, True, False, False]


def test_cosines_become_those_of_the_teacher_also_of_short_vectors() -> None:
    ours, given = student(short=(5,), table_rate=0.02), batch()
    ids, starts = ROWS.take(np.arange(3))
    losses = [ours.step(number, ids, starts, **given) for number in range(1, 200)]
    assert losses[-1] < 0.05 * losses[0]
    vectors = ours.vectors(ours.table, torch.tensor(ids), torch.tensor(starts)).detach().numpy()
    expected = given["teacher"] @ given["teacher"].T
    for width in (5, 10):
        short = vectors[:, :width] / np.linalg.norm(vectors[:, :width], axis=1, keepdims=True)
        np.testing.assert_allclose(short @ short.T, expected, atol=0.1)


def test_scores_of_pairs_by_hand() -> None:
    ours = student(similarity=0.0, score=2.0)
    given = {name: torch.tensor(each) for name, each in batch().items()}
    vectors = torch.tensor(np.eye(10, dtype=np.float32)[[0, 1, 2, 3, 4, 3, 5]])
    without = ours._loss(vectors[:3], **given)
    given["scores"] = torch.tensor([1.0, 0.5])
    # The first pair is one text twice, cosine 1; the other's texts are orthogonal.
    loss = ours._loss(vectors, **given)
    assert (loss - without).item() == pytest.approx(2.0 * (0.0 + 0.25) / 2)


def test_orders_and_rates() -> None:
    numbers = shuffled(np.random.default_rng(0), 7, 3)
    rounds = np.stack([np.concatenate([next(numbers), next(numbers)]) for _ in range(4)])
    assert all(len({*each}) == 6 for each in rounds)
    assert len({*rounds.ravel()}) == 7
    rates = [schedule(step, 300) for step in (50, 100, 200, 300)]
    assert rates == pytest.approx([0.5, 1.0, 0.5, 0.0])
