"""Both stages end to end on a few sentences, and the paper's settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.corpus_tasks import Material
from experiments.held_out import held_out_sentences
from experiments.sentence_t5 import two_stage as sentence_t5
from tests.experiments.sentence_t5.small import SMALL as SMALL_T5
from tests.experiments.sentence_t5.small import small_nli
from tests.machines import new_machine  # noqa: F401
from use_st5.hub.model_manifest import ModelManifest
from use_st5.models.t5.model import T5, T5Config

SMALL = sentence_t5.TwoStage(
    stages=(
        sentence_t5.stage(
            "qa", sentence_t5.ANSWERS, steps=10, batch_size=8, pieces=1, learning_rate=1e-3
        ),
        sentence_t5.stage(
            "nli", sentence_t5.TRIPLETS, steps=20, batch_size=8, pieces=2, learning_rate=1e-3
        ),
    ),
)


@pytest.fixture
def pretrained(corpora: Path) -> Path:
    """Folder of an untrained T5 of 8 dimensions; the corpora have both stages' data."""
    _write_answers(corpora)
    model = T5(T5Config(32_128, 1, 8, 16, 1, 8), dtype="mixed_bfloat16")
    model.build()
    folder = corpora.parent / "t5"
    folder.mkdir()
    model.save(folder / "t5.keras")
    return folder


def _write_answers(corpora: Path) -> None:
    """Writes enough data for a batch of each stage: answers, and hypotheses."""
    trivia = "#Q Who eats\nfood?\n^ dog\nA cat\nB dog\n\n#Q Is it?\n^ True\nA True\nB False\n"
    (corpora / "qa/opentriviaqa/categories/food").write_text(trivia)
    posts = (
        '<row Id="1" PostTypeId="1" Title="Which ball?" Body="&lt;p&gt;This?&lt;/p&gt;"/>'
        '<row Id="2" PostTypeId="2" ParentId="1" Body="&lt;p&gt;That &amp;amp; this.&lt;/p&gt;"/>'
        '<row Id="3" PostTypeId="2" ParentId="9" Body="Of another question."/>'
    )
    path = corpora / "qa/stackexchange_small/balls.Posts.xml"
    path.write_text(f"<posts>{posts}</posts>")
    rows = [
        {"premise": f"A man has {n} cats.", "hypothesis": f"{word} {n}.", "label": label}
        for n in range(8)
        for word, label in (("Yes", "e"), ("Maybe", "n"), ("No", "c"), ("Never", "c"))
    ]
    path = corpora / "nli/ling_in_loop/NLI_data/1/train_round1.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("pooling", ["mean", "first", "decoder"])
def test_raw_vectors_are_those_of_the_t5(pretrained: Path, pooling: str) -> None:
    t5 = keras.saving.load_model(pretrained / "t5.keras")
    model = sentence_t5.sentence_encoder(pretrained, pooling=pooling, projection_dim=None)
    ids = np.array([[5, 6, 7, 1], [8, 9, 1, 0]], np.int32)
    if pooling == "decoder":
        hidden = _decoder_output(t5, ids)
    else:
        states = t5.encoder(t5.embedding(ids), tokens=ids != 0)
        states = np.asarray(keras.ops.cast(states, "float32"))
        means = [states[0].mean(0), states[1, :3].mean(0)]
        hidden = np.array(means) if pooling == "mean" else states[:, 0]
    expected = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    np.testing.assert_allclose(np.asarray(model(ids)), expected, atol=0.02)  # bfloat16


def _decoder_output(t5: T5, ids: np.ndarray) -> np.ndarray:
    tokens = ids != 0
    context = t5.encoder(t5.embedding(ids), tokens=tokens)
    start = t5.embedding(np.zeros((2, 1), np.int32))
    states = t5.decoder(start, context=context, context_tokens=tokens)
    return np.asarray(keras.ops.cast(states[:, 0], "float32"))


@pytest.mark.end_to_end
def test_trains_through_both_stages(corpora: Path, pretrained: Path, tmp_path: Path) -> None:
    assert SMALL.run(corpora, tmp_path / "run", part="prepare") == {}
    with pytest.raises(FileNotFoundError, match=r"training\.json"):
        SMALL.run(corpora, tmp_path / "run", part="export")
    trained = {"part": "train", "seed": 3, "pretrained": pretrained}
    assert SMALL.run(tmp_path / "nowhere", tmp_path / "run", **trained) == {}
    scores = SMALL.run(corpora, tmp_path / "run", part="export")
    metadata = ModelManifest.read(tmp_path / "run/model").metadata
    assert (metadata["seed"], metadata["pooling"]) == (3, "mean"), "of the training"
    assert json.loads((tmp_path / "run/scores.json").read_text()) == scores
    exported = tf.saved_model.load(tmp_path / "run/model")
    vectors = exported(tf.constant(["A man runs.", ""]))
    assert vectors.shape == (2, 768)
    # The run is complete: the same command has nothing left to do.
    assert SMALL.run(corpora, tmp_path / "run", seed=3, pretrained=pretrained) == scores
    assert (tmp_path / "run/checkpoints/qa").is_dir()


@pytest.mark.process
def test_the_stages_run_under_jax_between_preparation_and_export(
    corpora: Path, tmp_path: Path, under_jax: Callable[..., str]
) -> None:
    _write_answers(corpora)
    runs = tmp_path / "runs"
    SMALL_T5.run(corpora, runs / "pretrain_t5", part="prepare")
    small_nli().run(corpora, runs / "sentence_t5", part="prepare")
    under_jax("experiments/sentence_t5/jax_run.py", runs)
    assert (runs / "pretrain_t5/checkpoints/checkpoint-000000010/values.safetensors").exists()
    scores = small_nli().run(corpora, runs / "sentence_t5", part="export")
    assert ModelManifest.read(runs / "sentence_t5/model").metadata["stages"] == ["nli"]
    assert np.isfinite(list(scores.values())).all()
    vectors = tf.saved_model.load(runs / "sentence_t5/model")(tf.constant(["A man runs.", ""]))
    assert vectors.shape == (2, 768)


def test_sts_sentences_are_held_out(corpora: Path, pretrained: Path) -> None:
    del pretrained
    (task,) = sentence_t5.NLI.tasks

    def anchors() -> list[str]:
        material = Material(corpora, held_out_sentences(corpora))
        ((examples, columns),) = task.data.sources("nli", material).values()
        assert {column.max_tokens for column in columns.values()} == {24}
        return [example["anchor"] for example in examples()]

    before = anchors()
    sets = corpora / "stsbenchmark/sts-dev.csv"
    sets.write_text(sets.read_text() + "g\tf\t1\t1\t5\ta man has 3 cats\tx y\n")
    assert [each for each in before if each not in anchors()] == ["A man has 3 cats."]


@pytest.mark.parametrize("name", ["published", "two_cores"])
def test_the_papers_loss_and_optimizer(name: str) -> None:
    """Ni et al. 2021, section 4.3 and equation 2, and t5x_retrieval's configuration of the loss."""
    experiment = {"two_cores": sentence_t5.EXPERIMENT, **sentence_t5.VARIANTS}[name]
    assert [stage.name for stage in experiment.stages] == ["qa", "nli"]
    negatives = {"medical": False, "trivia": True, "stack_exchange": False, "nli": True}
    for stage in experiment.stages:
        for task in stage.tasks:
            loss = task.loss()
            assert (loss.temperature, loss.bidirectional) == (0.01, True)
            assert loss.hard_negatives == negatives.pop(task.name)
            assert task.weight is None, "data sets are drawn by their sizes"
        optimizer = stage.args.make_optimizer(1_000)
        assert type(optimizer) is keras.optimizers.Adafactor
        assert optimizer.beta_2_decay == -0.8
        peak = {"published": 1e-3, "two_cores": 3e-2}[name]
        rates = [float(optimizer._learning_rate(step)) for step in (0, 100, 550, 1_000)]
        np.testing.assert_allclose(rates, [peak, peak, peak / 2, 0], rtol=1e-5, atol=1e-9)
    assert not negatives


def test_the_papers_batches() -> None:
    qa, nli = sentence_t5.VARIANTS["published"].stages
    assert {task.batch_size for task in qa.tasks} == {2048}
    assert {task.batch_size for task in nli.tasks} == {512}
    assert (qa.args.pieces, nli.args.pieces) == (16, 4)
    assert pytest.approx(qa.args.steps, rel=1e-4) == 2_000_000_000 / 2048, (
        "a pass over 2 billion pairs"
    )
    assert pytest.approx(nli.args.steps, rel=0.01) == 3 * 275_601 / 512, "three over the triplets"
