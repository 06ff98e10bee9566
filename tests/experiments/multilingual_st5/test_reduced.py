"""The pipeline of m-ST5 from text to table, on a few sentences."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
pytest.importorskip("sklearn", reason="the extra `evaluation` is not installed")

from experiments.multilingual_st5 import reduced as multilingual_st5_reduced  # noqa: E402
from tests.experiments.multilingual_st5 import data as multilingual_data  # noqa: E402
from use_st5.evaluation.runner import EvaluationRecord  # noqa: E402
from use_st5.models.lora import load_lora  # noqa: E402
from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer  # noqa: E402


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with three languages."""
    root = tmp_path / "data"
    for language in multilingual_data.WORDS:
        multilingual_data.write_pairs(root / f"xnli/dev-{language}.tsv", language, count=12)
    multilingual_data.write_evaluation_sets(root)
    return root


# Small batches; T5's own vocabulary stands for mT5's.
SMALL = dataclasses.replace(
    multilingual_st5_reduced.EXPERIMENT,
    batch_size=6,
    micro_batch_size=6,
    tokenizer=lambda data: SentencePieceTokenizer(),
)


@pytest.mark.end_to_end
def test_from_text_to_table(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    scores = SMALL.run(data, output, steps=4)
    assert set(scores) == {"tatoeba", "jsts"}
    record = EvaluationRecord.read(output / "record.json")
    assert record.model["name"] == "multilingual_st5_reduced"
    assert record.tasks["jsts"]["scores"]["spearman_all"] == scores["jsts"]
    assert "# multilingual_st5_reduced" in (output / "report.md").read_text(encoding="utf-8")
    assert "encoder/block_1/feed_forward/linear" in (output / "adapters.txt").read_text()
    # The model is the random base with the adapters, which have learnt something.
    tokenizer = SentencePieceTokenizer()
    ids = tokenizer.padded(["dog street", "water"])
    model = multilingual_st5_reduced.random_mt5(data, "float32", 0)
    untrained = np.asarray(model(ids))
    load_lora(model, output / "adapters.safetensors")
    exported = tf.saved_model.load(output / "model")(tf.constant(["dog street", "water"]))
    np.testing.assert_allclose(exported, model(ids), atol=1e-5)
    assert np.abs(exported - untrained).max() > 1e-3
    manifest = json.loads((output / "model/use_st5.json").read_text())
    assert manifest["metadata"]["note"] == "random base, for show"
    # The same command trains no more.
    trained = (output / "adapters.safetensors").read_bytes()
    SMALL.run(data, output, steps=4, part="train")
    assert (output / "adapters.safetensors").read_bytes() == trained


def test_the_subset_of_mt5s_vocabulary(data_dir: Path) -> None:
    # The model comes first: it sets the seed, which ends TensorFlow's resources of a tokenizer.
    model = multilingual_st5_reduced.random_mt5(data_dir, "float32", 0)
    tokenizer = multilingual_st5_reduced.EXPERIMENT.tokenizer(data_dir)
    assert tokenizer.vocabulary.size == 250_100
    # The table has rows for all pieces, also for those that the subset lacks.
    assert model.config.vocabulary_size == 250_112
    assert np.isfinite(model(tokenizer.padded(["我爱你", "", "Ж"]))).all()
