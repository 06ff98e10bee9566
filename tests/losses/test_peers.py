"""Values and gradients are those of sentence-transformers on the same vectors (extra peers)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.losses.fixed_encoder import FixedEncoder, one_id
from use_st5.losses import BatchTripletLoss, ScoredPairLoss, TaskLoss, TripletLoss

torch = pytest.importorskip("torch", reason="needs PyTorch (extra peers)")
peers = pytest.importorskip("sentence_transformers.sentence_transformer.losses")

ROWS = 8
VECTORS = np.random.default_rng(3).standard_normal((3 * ROWS, 5)).astype(np.float32)
COLUMNS = [one_id(ROWS, start=ROWS * place) for place in range(3)]
SCORES = np.array([0.9, 0.1, 0.5, 0.5, 0.0, 1.0, 0.3, 0.5], np.float32)
LABELS = np.array([0, 1, 0, 2, 1, 2, 0, 1], np.int32)


def value_and_gradient(loss: TaskLoss, batch: dict[str, Any]) -> tuple[float, np.ndarray]:
    encoder = FixedEncoder(VECTORS)
    encoder.table = tf.Variable(VECTORS)
    with tf.GradientTape() as tape:
        value, _ = loss(encoder, batch)
    gradient = tf.convert_to_tensor(tape.gradient(value, encoder.table))
    return float(value), gradient.numpy()


TRIPLET_DISTANCES = {
    name: getattr(peers.TripletDistanceMetric, name.upper()) for name in ("cosine", "euclidean")
}
BATCH_DISTANCES = {
    name: getattr(peers.BatchHardTripletLossDistanceFunction, f"{name}_distance")
    for name in TRIPLET_DISTANCES
}
BATCH_PEERS = {"hard": "Hard", "semi_hard": "SemiHard", "all": "All"}
CASES = [
    (ScoredPairLoss(objective="cosent", temperature=0.5), peers.CoSENTLoss(None, scale=2.0)),
    (ScoredPairLoss(objective="angle", temperature=0.5), peers.AnglELoss(None, scale=2.0)),
    *(
        (TripletLoss(distance=name, margin=0.4), peers.TripletLoss(None, distance, 0.4))
        for name, distance in TRIPLET_DISTANCES.items()
    ),
    *(
        (
            BatchTripletLoss(mining=mining, distance=name, margin=0.4),
            getattr(peers, f"Batch{peer}TripletLoss")(None, distance, 0.4),
        )
        for name, distance in BATCH_DISTANCES.items()
        for mining, peer in BATCH_PEERS.items()
    ),
    (
        BatchTripletLoss(margin=None),
        peers.BatchHardSoftMarginTripletLoss(None, BATCH_DISTANCES["cosine"]),
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), CASES, ids=lambda loss: type(loss).__name__)
def test_value_and_gradient_are_theirs(ours: TaskLoss, theirs: Any) -> None:
    texts = [feature.name for feature in ours.features if feature.is_text]
    batch = dict(zip(texts, COLUMNS, strict=False)) | {"score": SCORES, "label": LABELS}
    value, gradient = value_and_gradient(ours, batch)
    table = torch.tensor(VECTORS, requires_grad=True)
    labels = torch.tensor(SCORES if len(texts) == 2 else LABELS)
    expected = theirs.compute_loss_from_embeddings([table[batch[n][:, 0]] for n in texts], labels)
    expected.backward()
    assert value == pytest.approx(float(expected.detach()), rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(gradient, table.grad, rtol=1e-6, atol=1e-6)
