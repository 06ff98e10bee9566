"""The training of `st5_mini_en`, end to end on a few sentences."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from experiments.bundled_models import st5_mini_en
from tests.experiments.bundled_models.small_trainings import TEXT, run_with_teacher, small_training
from use_st5.models.t5.model import T5_PRESETS, T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

SMALL = small_training(
    st5_mini_en.EXPERIMENT,
    TEXT,
    {"short": (1, 4, 9), "long": (5, 9, 16)},
    batch_size=4,
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, corpora: Path) -> None:
    names = "#Q In France, which animal eats food with Jane?\n^ dog\nA cat\nB dog\n"
    (corpora / "qa/opentriviaqa/categories/names").write_text(names * 8, encoding="utf-8")
    (corpora / "oewn_definitions.tsv").write_text(
        "animal\tn\ta living thing\nfood\tn\twhat is eaten\n", encoding="utf-8"
    )
    # Two entailed and two contradicting hypotheses of each premise: enough triplets for a batch.
    pairs = [
        {"premise": f"The man {verb}.", "hypothesis": f"{who} {verb}.", "label": label}
        for verb in ("runs", "eats", "reads")
        for who, label in (("He", "e"), ("Nobody", "c"), ("A person", "e"), ("No man", "c"))
    ]
    (corpora / "nli/semi_automatic_nli/data/sim_wiki/train.jsonl").write_text(
        "".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8"
    )
    shape = dataclasses.replace(
        T5_PRESETS["st5_mini_en"], num_layers=1, hidden_dim=8, intermediate_dim=16, num_heads=1
    )
    monkeypatch.setitem(T5_PRESETS, "st5_mini_en", shape)


@pytest.mark.end_to_end
def test_trains_exports_and_scores(corpora: Path, tmp_path: Path) -> None:
    scores = run_with_teacher(SMALL, corpora, tmp_path / "run", steps=30)
    assert set(scores) == {"stsb_dev_pearson", "stsb_dev_spearman"}
    exported = tf.saved_model.load(tmp_path / "run/model")
    vectors = exported(tf.constant(["A man runs.", ""]))
    assert vectors.shape == (2, 768)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    facts = json.loads((tmp_path / "run/model/use_st5.json").read_text())
    assert (facts["precision"], facts["max_length"]) == ("int8", 128)
    # The run is complete: the same command has nothing left to do.
    assert SMALL.run(corpora, tmp_path / "run", steps=30) == scores


def test_the_settings() -> None:
    """The paper's loss, temperature and order of stages (Ni et al. 2021, sections 3.2 to 4.3)."""
    questions, inference = st5_mini_en.EXPERIMENT.stages
    names = [[task.name for task in stage.tasks] for stage in (questions, inference)]
    assert names == [
        ["trivia", "medical", "dialogues", "teacher", "related"],
        ["triplets", "teacher", "related", "scored"],
    ]
    contrastive = *questions.tasks[:3], inference.tasks[0]
    for task, negatives in zip(contrastive, (1, 0, 0, 1), strict=True):
        settings = task.loss().get_config()
        assert settings.items() >= {"temperature": 0.01, "bidirectional": True}.items()
        assert bool(settings["hard_negatives"]) == bool(negatives)
    assert (questions.args.steps, inference.args.steps) == (2_000, 39_900)
    optimizer = inference.args.make_optimizer(39_900)
    assert float(optimizer._learning_rate(1_000)) == pytest.approx(1e-3)


def test_the_queries_kernels_learn_at_an_eighth_of_the_rate() -> None:
    model = SentenceT5(T5Config(8, 2, 4, 8, 1, 4))
    model.build()
    before = model.get_weights()
    # The first step of Adam has the size of the rate, whatever the gradient's size.
    gradients = [tf.ones(each.shape) for each in model.trainable_variables]
    st5_mini_en.SlowQueries(0.01).apply(gradients, model.trainable_variables)
    steps = {
        weight.path: float(np.mean(old - weight.numpy()))
        for old, weight in zip(before, model.weights, strict=True)
    }
    queries = [step for path, step in steps.items() if path.endswith("attention/query/kernel")]
    np.testing.assert_allclose(queries, [0.01 / 8] * 2, rtol=1e-3)
    others = [step for path, step in steps.items() if "query" not in path]
    np.testing.assert_allclose(others, [0.01] * (len(steps) - 2), rtol=1e-3)
