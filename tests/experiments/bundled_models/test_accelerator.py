"""The training of the bundled models on an accelerator: what travels, and what is mined."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.bundled_models import accelerator
from experiments.bundled_models.wider_vocabulary import wider_model, wider_vocabulary
from use_st5 import TrainableEncoder
from use_st5.hub.model_names import bundled_folder
from use_st5.models import USEDAN, USEDANConfig
from use_st5.tokenizers import NGramTokenizer, build_vocabulary

TEXTS = ["A bee lives in a hive of 1,000 bees.", "", "Honey, isn't it?", "tea " * 40]


def test_files_travel_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "_PART", 7)
    accelerator.write_parts(tmp_path, "texts", bytes(range(20)))
    assert [path.stat().st_size for path in sorted(tmp_path.iterdir())] == [7, 7, 6]
    assert accelerator.read_parts(tmp_path, "texts") == bytes(range(20))
    with pytest.raises(FileNotFoundError, match=r"other\.00"):
        accelerator.read_parts(tmp_path, "other")


def test_weights_keep_eight_bits_of_large_matrices(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((200, 60), (60,), (3, 4))
    ]
    accelerator.save_weights(tmp_path, "model", weights)
    loaded = accelerator.load_weights(tmp_path, "model")
    steps = np.abs(weights[0]).max(axis=1, keepdims=True) / 127
    assert (np.abs(loaded[0] - weights[0]) <= 0.5001 * steps).all()
    np.testing.assert_array_equal(loaded[1], weights[1])
    np.testing.assert_array_equal(loaded[2], weights[2])


@pytest.mark.parametrize(
    "name",
    ["use_dan_en", pytest.param("use_transformer_en", marks=pytest.mark.end_to_end)],
)
def test_ids_are_those_of_the_encoder(tmp_path: Path, name: str) -> None:
    encoder = TrainableEncoder.load(name)
    (tmp_path / f"{name}.assets").symlink_to(bundled_folder(name) / "assets")
    (tmp_path / f"{name}.json").write_text(json.dumps({"tokenizer": encoder.tokenizer.kind}))
    expected = encoder.tokenizer.padded(TEXTS, max_tokens=64)
    for ids, row in zip(accelerator.text_ids(tmp_path, name, TEXTS, 64), expected, strict=True):
        np.testing.assert_array_equal(ids, np.asarray(row)[: len(ids)])
        assert not np.asarray(row)[len(ids) :].any()


def test_a_hard_negative_is_near_but_not_as_near_as_the_positive(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs PyTorch (extra peers)")
    degrees = np.array([0, 20, 19, 40, 170, 100])  # two queries, and passages
    angles = np.radians(degrees)
    np.save(tmp_path / "minilm.npy", np.stack([np.cos(angles), np.sin(angles)], 1))
    np.save(tmp_path / "pairs.npy", np.array([[0, 1], [5, 2], [0, 3], [0, 4]]))
    # 19 degrees are too near to the positive at 20; 40 degrees fit. Nothing is below 170 degrees.
    assert accelerator._negatives(tmp_path)[[0, 2, 3]].tolist() == [3, 4, 4]


def test_a_wider_vocabulary_keeps_known_terms_and_fits_new_ones() -> None:
    texts = ["a bee and a wasp", "a bee and a bee", "the queen bee"]
    old = build_vocabulary(texts, num_unigrams=6, num_bigrams=3, unigram_buckets=2)
    rng = np.random.default_rng(0)
    model = USEDAN(USEDANConfig(num_embeddings=old.size, embedding_dim=4, hidden_dims=(4, 4)))
    model.build()
    new = wider_vocabulary(old, [*texts, "a hornet and a hornet"], words=7, bigrams=9)
    # The rows are a linear function of the teacher's vectors.
    teacher = dict(zip(new.unigrams, rng.standard_normal((7, 3)), strict=True))
    slope = rng.standard_normal((3, 4))
    table = np.asarray(model.embedding.embeddings).copy()
    table[2:8] = [teacher[word] @ slope + 1 for word in old.unigrams]
    model.set_weights([table, *model.get_weights()[1:]])
    wider = wider_model(model, old, new, np.stack([teacher[word] for word in new.unigrams]))

    before = TrainableEncoder(model, NGramTokenizer(old))
    after = TrainableEncoder(wider, NGramTokenizer(new))
    known = ["bee and a", "wasp", "zebra"]  # the bi-grams of the first are in both
    np.testing.assert_allclose(after.encode(known), before.encode(known), atol=1e-6)
    rows = np.asarray(wider.embedding.embeddings)
    words = [*new.unigrams, *new.bigrams]
    hornet = rows[2 + words.index("hornet")]
    np.testing.assert_allclose(hornet, teacher["hornet"] @ slope + 1, rtol=1e-4)
    pair = rows[2 + words.index("a hornet")]
    np.testing.assert_allclose(pair, (hornet + rows[2 + words.index("a")]) / 2, rtol=1e-5)
