"""The contrastive loss with a guide that masks false negatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.losses.fixed_encoder import FixedEncoder, log_softmax, one_id, over_replicas, unit
from use_st5.losses import GISTEmbedLoss

ROWS = 6
RNG = np.random.default_rng(3)
TABLE = RNG.standard_normal((3 * ROWS, 5)).astype(np.float32)
GUIDE = {
    f"guide_{name}": RNG.standard_normal((ROWS, 3)).astype(np.float32)
    for name in ("anchor", "positive", "negative")
}
IDS = {
    name: one_id(ROWS, start=ROWS * place)
    for place, name in enumerate(("anchor", "positive", "negative"))
}
BATCH = IDS | GUIDE


def test_a_case_by_hand() -> None:
    """Under the guide the second positive is nearer to the first anchor than its own one."""
    ours = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], np.float32)
    guide = {
        "guide_anchor": np.array([[1, 0], [0, 1]], np.float32),
        "guide_positive": np.array([[3, 4], [4, 3]], np.float32),
    }
    batch = {"anchor": one_id(2), "positive": one_id(2, start=2)}
    value, metrics = GISTEmbedLoss(guide_dim=2, temperature=1.0)(FixedEncoder(ours), batch | guide)
    # cos(a0, p0) = 0.6 under the guide, but cos(a0, p1) = 0.8 and cos(p0, p1) = 0.96: both are left
    # out; cos(a0, a1) = 0 stays. The same holds for row 1. So a row is 1 against 0.
    assert float(value) == pytest.approx(np.log(1 + np.exp(-1)), abs=1e-6)
    assert float(metrics["accuracy"]) == 1.0


@pytest.mark.parametrize("strategy", ["absolute", "relative"])
@pytest.mark.parametrize("negatives", [False, True])
@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_value_and_gradient_are_those_of_sentence_transformers(
    monkeypatch: pytest.MonkeyPatch, strategy: Any, negatives: bool, margin: float
) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch (extra peers)")
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    from sentence_transformers.sentence_transformer.losses import gist_embed

    names = ("anchor", "positive", "negative")[: 2 + negatives]
    table = torch.tensor(TABLE, requires_grad=True)
    vectors = {
        "model": [table[IDS[name][:, 0]] for name in names],
        "guide": [torch.tensor(GUIDE[f"guide_{name}"]) for name in names],
    }
    monkeypatch.setattr(gist_embed, "embed_columns", lambda model, features: vectors[model])
    theirs = gist_embed.GISTEmbedLoss.__new__(gist_embed.GISTEmbedLoss)
    torch.nn.Module.__init__(theirs)
    settings = {"temperature": 0.3, "margin": margin, "margin_strategy": strategy}
    further = {"contrast_anchors": True, "contrast_positives": True, "must_retokenize": False}
    further |= {"gather_across_devices": False, "model": "model", "guide": "guide"}
    further |= {"similarity_fct": torch.nn.CosineSimilarity(dim=-1)}
    further |= {"cross_entropy_loss": torch.nn.CrossEntropyLoss()}
    for name, value in (settings | further).items():
        setattr(theirs, name, value)
    expected = theirs([], None)
    expected.backward()

    loss = GISTEmbedLoss(guide_dim=3, hard_negatives=negatives, **settings)
    encoder = FixedEncoder(TABLE)
    encoder.table = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        value, _ = loss(encoder, BATCH)
    gradient = tf.convert_to_tensor(tape.gradient(value, encoder.table))
    assert float(value) == pytest.approx(float(expected.detach()), abs=1e-6)
    np.testing.assert_allclose(gradient, table.grad, atol=1e-6)


def test_a_guide_that_tells_nothing_apart_leaves_the_negatives() -> None:
    """With a guide whose cosines are all equal, no candidate is above the positive."""
    flat = {name: np.ones_like(vectors) for name, vectors in GUIDE.items()}
    value, _ = GISTEmbedLoss(guide_dim=3, temperature=0.5)(FixedEncoder(TABLE), IDS | flat)
    a, p = unit(TABLE[:ROWS]), unit(TABLE[ROWS : 2 * ROWS])
    own = np.where(np.eye(ROWS, dtype=bool), -np.inf, 0.0)
    rows = np.hstack([a @ p.T, a @ a.T + own, p @ p.T + own]) / 0.5
    assert float(value) == pytest.approx(-np.diag(log_softmax(rows)).mean(), abs=1e-5)


def test_equal_texts_are_no_negatives_of_each_other() -> None:
    """A second row with the same anchor and positive changes nothing for the first."""
    far = {name: np.eye(3, dtype=np.float32)[[0, 0, 1]] for name in GUIDE}
    ids = {"anchor": np.array([[0], [0], [2]]), "positive": np.array([[6], [6], [8]])}
    loss = GISTEmbedLoss(guide_dim=3, temperature=0.5)
    twice = loss(FixedEncoder(TABLE), {name: x.astype(np.int32) for name, x in ids.items()} | far)
    a, p = unit(TABLE[[0, 0, 2]]), unit(TABLE[[6, 6, 8]])
    rows = np.hstack([a @ p.T, a @ a.T, p @ p.T]) / 0.5
    for block in range(3):
        for i in range(3):
            for j in range(3):
                if {i, j} == {0, 1} or (i == j and block > 0):
                    rows[i, 3 * block + j] = -np.inf
    assert float(twice[0]) == pytest.approx(-np.diag(log_softmax(rows)).mean(), abs=1e-5)


def test_replicas_share_their_candidates() -> None:
    loss = GISTEmbedLoss(guide_dim=3, temperature=0.5, hard_negatives=True)
    together = float(loss(FixedEncoder(TABLE), BATCH)[0])
    assert over_replicas(loss, FixedEncoder(TABLE), BATCH, 2) == pytest.approx(together, rel=1e-6)
