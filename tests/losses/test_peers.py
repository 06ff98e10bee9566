"""Values and gradients are those of sentence-transformers on the same vectors (extra peers)."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.losses.fixed_encoder import FixedEncoder, one_id
from use_st5.losses import (
    BatchTripletLoss,
    GISTEmbedLoss,
    MultiLabelLoss,
    ScoredPairLoss,
    TaskLoss,
    TripletLoss,
    TSDAELoss,
)

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


@pytest.mark.parametrize("strategy", ["absolute", "relative"])
@pytest.mark.parametrize(("negatives", "margin"), [(0, 0.0), (1, 0.2)])
def test_a_guide_masks_as_theirs_does(
    monkeypatch: pytest.MonkeyPatch, strategy: Any, negatives: int, margin: float
) -> None:
    """Both of theirs: `CachedGISTEmbedLoss` reads three rows at a time."""
    names = ("anchor", "positive", "negative")[: 2 + negatives]
    texts = dict(zip(names, COLUMNS, strict=False))
    guides = np.random.default_rng(6).standard_normal((len(names), ROWS, 3)).astype(np.float32)
    settings = {"temperature": 0.3, "margin": margin, "margin_strategy": strategy}
    loss = GISTEmbedLoss(guide_dim=3, hard_negatives=negatives, **settings)
    batch = texts | {f"guide_{name}": guide for name, guide in zip(names, guides, strict=True)}
    value, gradient = value_and_gradient(loss, batch)
    for kind in (peers.GISTEmbedLoss, peers.CachedGISTEmbedLoss):
        table = torch.tensor(VECTORS, requires_grad=True)
        vectors = {
            "model": [table[ids[:, 0]] for ids in texts.values()],
            "guide": [*torch.tensor(guides)],
        }
        theirs = kind.__new__(kind)
        torch.nn.Module.__init__(theirs)
        further = {"contrast_anchors": True, "contrast_positives": True, "must_retokenize": False}
        further |= {"gather_across_devices": False, "model": "model", "guide": "guide"}
        further |= {"similarity_fct": torch.nn.CosineSimilarity(dim=-1), "mini_batch_size": 3}
        further |= {"cross_entropy_loss": torch.nn.CrossEntropyLoss(), "show_progress_bar": False}
        for name, setting in (settings | further).items():
            setattr(theirs, name, setting)
        if kind is peers.GISTEmbedLoss:
            module = sys.modules[kind.__module__]
            monkeypatch.setattr(module, "embed_columns", lambda model, _, v=vectors: v[model])
            expected = theirs([], None)
        else:
            expected = theirs.calculate_loss(*([*map(list, zip(v))] for v in vectors.values()))
        expected.backward()
        assert value == pytest.approx(float(expected.detach()), abs=1e-6)
        np.testing.assert_allclose(gradient, table.grad, atol=1e-6)


def test_reconstruction_is_that_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """TSDAE with the same decoder, whose logits depend on the vector and the position alone."""
    draw = np.random.default_rng(4)
    words, places = (draw.standard_normal(shape).astype(np.float32) for shape in ((5, 30), (4, 30)))
    targets = np.pad(COLUMNS[0] + 1, [(0, 0), (0, 1)], constant_values=9)
    targets[:, 1:3] = draw.integers(1, 30, (ROWS, 2))
    table = torch.tensor(VECTORS, requires_grad=True)
    theirs = peers.DenoisingAutoEncoderLoss.__new__(peers.DenoisingAutoEncoderLoss)
    torch.nn.Module.__init__(theirs)
    theirs.encoder = lambda features: {"sentence_embedding": table[targets[:, 0]]}
    theirs.decoder = lambda encoder_hidden_states, **_: (
        encoder_hidden_states @ torch.tensor(words) + torch.tensor(places),
    )
    theirs.need_retokenization = False
    theirs.tokenizer_decoder = type("Tokenizer", (), {"pad_token_id": 0})
    # They never predict the first token, which is a special one.
    shifted = torch.tensor(np.pad(targets, [(0, 0), (1, 0)], constant_values=1)).long()
    expected = theirs([{"attention_mask": torch.ones(ROWS, 1)}, {"input_ids": shifted}], None)
    expected.backward()

    ours = TSDAELoss(vocabulary_size=30, hidden_dim=8)
    monkeypatch.setattr(
        type(ours.decoder),
        "__call__",
        lambda self, tokens, vectors, **_: (vectors @ words)[:, None] + places,
    )
    value, gradient = value_and_gradient(ours, {"sentence": targets})
    assert value == pytest.approx(float(expected.detach()), abs=1e-6)
    np.testing.assert_allclose(gradient, table.grad, atol=1e-6)


def test_multi_label_is_the_binary_cross_entropy_of_pytorch() -> None:
    labels = np.random.default_rng(5).integers(0, 2, (ROWS, 4)).astype(np.float32)
    ours = MultiLabelLoss(num_classes=4)
    value, gradient = value_and_gradient(ours, {"text": COLUMNS[0], "labels": labels})
    kernel, bias = (torch.tensor(w) for w in ours.output_layer.get_weights())
    table = torch.tensor(VECTORS, requires_grad=True)
    logits = table[COLUMNS[0][:, 0]] @ kernel + bias
    expected = torch.nn.BCEWithLogitsLoss()(logits, torch.tensor(labels))
    expected.backward()
    assert value == pytest.approx(float(expected.detach()), abs=1e-6)
    np.testing.assert_allclose(gradient, table.grad, atol=1e-6)
