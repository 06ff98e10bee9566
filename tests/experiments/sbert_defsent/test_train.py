"""All methods end to end on a tiny BERT of random weights, and the papers' settings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.corpus_tasks import Material
from experiments.held_out import held_out_sentences
from experiments.sbert_defsent import train as sbert_defsent
from experiments.sbert_defsent.combination import Combination
from experiments.sbert_defsent.defined_words import split_of
from experiments.sbert_defsent.train import (
    DEFSENT_K,
    VARIANTS,
    Stage,
    Training,
    defsent_rate,
    steps_of_a_pass,
)
from tests.corpora_folder import write_paper_corpora
from tests.tiny_bert import VOCABULARY, write_tiny_bert
from use_st5.hub.model_manifest import ModelManifest
from use_st5.training.optimizers import Adam

TEXTS = ["A man runs.", "", "The dog plays the guitar."]
DEFINED = ("dog", "man", "woman", "child", "guitar", "plays", "eats", "reads")


def quick(stage: Stage) -> Stage:
    """The stage with batches of 4."""
    tasks = tuple(dataclasses.replace(task, batch_size=4) for task in stage.tasks)
    return dataclasses.replace(stage, tasks=tasks)


SMALL = sbert_defsent.methods(
    quick(sbert_defsent.sbert(10)),
    quick(sbert_defsent.defsent(20, 1e-2)),
    quick(sbert_defsent.multi(40)),
)


@pytest.fixture
def data(corpora: Path) -> Path:
    """The corpora, with definitions of several words of the training part."""
    rows = [f"{word}\tn\ta kind of {other}\n" for word in DEFINED for other in ("animal", "person")]
    (corpora / "oewn_definitions.tsv").write_text("".join(rows))
    return corpora


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return write_tiny_bert(tmp_path / "bert", head=True)


def weights(folder: Path) -> dict[str, np.ndarray]:
    """The weights of the encoder that a run kept, by layer name and number."""
    model = keras.saving.load_model(folder / "encoder.keras", compile=False)
    return {
        f"{layer.name}/{i}": value
        for layer in model.layers
        for i, value in enumerate(layer.get_weights())
    }


def material_of(data: Path, bert: Path) -> Material:
    tokenizer = sbert_defsent.open_pretrained(bert).tokenizer
    return Material(data, held_out_sentences(data), tokenizer)


@pytest.mark.end_to_end
def test_trains_through_both_and_continues_what_sbert_began(
    data: Path, bert: Path, tmp_path: Path
) -> None:
    given = {"pretrained": bert, "prepared": tmp_path / "prepared", "seed": 3}
    SMALL["sbert"].run(data, tmp_path / "sbert", **given)
    scores = SMALL["s_d"].run(data, tmp_path / "s_d", **given)
    assert {*scores} == {"stsb_dev_pearson", "stsb_dev_spearman"}
    model = ModelManifest.read(tmp_path / "s_d/model")
    assert model.metadata["stages"] == ["sbert", "defsent"]
    vectors = tf.saved_model.load(tmp_path / "s_d/model")(tf.constant(TEXTS)).numpy()
    assert vectors.shape == (3, 8)
    assert np.linalg.norm(vectors[0]) != pytest.approx(1, abs=1e-3), "as the poolings are"
    before, after = (weights(tmp_path / name) for name in ("sbert", "s_d"))
    same = {name.split("/")[0] for name in before if (before[name] == after[name]).all()}
    tables = {"embedding", "position_embedding", "type_embedding", "embedding_norm"}
    assert {*tables, "head"} <= same, "frozen in the second stage"
    assert not any(name.startswith("block") for name in same)
    untuned = weights_of_checkpoint(data, bert, tmp_path)
    moved = {n.split("/")[0] for n in before if (before[n] != untuned[n]).any()}
    assert tables <= moved, "SBERT trains all of them"


def weights_of_checkpoint(data: Path, bert: Path, tmp_path: Path) -> dict[str, np.ndarray]:
    SMALL["untuned"].run(data, tmp_path / "untuned", pretrained=bert)
    return weights(tmp_path / "untuned")


@pytest.mark.end_to_end
def test_multi_takes_nineteen_turns_to_one(data: Path, bert: Path, tmp_path: Path) -> None:
    SMALL["multi"].run(data, tmp_path / "run", pretrained=bert)
    (state,) = tmp_path.glob("run/checkpoints/multi/checkpoint-000000040/state.json")
    assert json.loads(state.read_text())["task_steps"] == {"inference": 38, "definitions": 2}


@pytest.mark.end_to_end
def test_two_models_become_one(data: Path, bert: Path, tmp_path: Path) -> None:
    """Average and concatenation of single runs, which exist already or are trained first."""
    given = {"pretrained": bert, "prepared": tmp_path / "prepared"}
    singles = {"sbert": tmp_path / "average/sbert", "defsent": tmp_path / "defsent"}
    SMALL["defsent"].run(data, singles["defsent"], **given)
    for mode, there in (("average", {"defsent": singles["defsent"]}), ("concat", singles)):
        method = SMALL[mode]
        assert isinstance(method, Combination)
        scores = method.run(data, tmp_path / mode, **there, **given)
        assert json.loads((tmp_path / mode / "scores.json").read_text()) == scores
        assert ModelManifest.read(tmp_path / mode / "model").metadata["combination"] == mode
    sbert, defsent, average, concat = (
        tf.saved_model.load(folder / "model")(tf.constant(TEXTS)).numpy()
        for folder in (*singles.values(), tmp_path / "average", tmp_path / "concat")
    )
    np.testing.assert_allclose(average, (sbert + defsent) / 2, atol=1e-6)
    np.testing.assert_allclose(concat, np.hstack([sbert, defsent]), atol=1e-6)


def test_the_words_that_train_are_of_one_token_and_one_part(data: Path, bert: Path) -> None:
    rows = "guitar player\tn\ta person who plays\ndog\tn\ta man plays the guitar\n"
    with (data / "oewn_definitions.tsv").open("a") as file:
        file.write(rows)
    sets = data / "stsbenchmark/sts-dev.csv"
    sets.write_text(sets.read_text() + "g\tf\t1\t1\t5\tA man plays the guitar.\tx y\n")
    words = sbert_defsent.Definitions().sources("definitions", material_of(data, bert))
    ((examples, columns),) = words.values()
    found = [*examples()]
    assert {VOCABULARY[each["word"]] for each in found} == {
        word for word in DEFINED if split_of(word) == "train"
    }
    assert "a man plays the guitar" not in {each["definition"] for each in found}, "held out"
    assert columns["definition"].max_tokens == 128


@pytest.mark.parametrize(
    ("model", "pooling", "rate"),
    [
        ("bert_base", "cls", 5.66e-6),
        ("bert_base", "mean", 1.13e-5),
        ("bert_large", "max", 8e-6),
        ("roberta_base", "mean", 8e-6),
        ("roberta_large", "max", 5.66e-6),
    ],
)
def test_the_rates_that_defsents_authors_chose(model: str, pooling: str, rate: float) -> None:
    """Tsukagoshi et al. 2021, as their code has them."""
    assert defsent_rate(model, pooling) == pytest.approx(rate, rel=2e-3)


@pytest.mark.parametrize("model", DEFSENT_K)
def test_the_papers_settings(model: str) -> None:
    """Appendix A: batches of 16, one epoch, warm-up over a tenth, at most 128 tokens, one Adam."""
    method = VARIANTS[f"s_d_{model}"]
    assert isinstance(method, Training)
    sbert, defsent = method.stages
    for stage, rate, last in ((sbert, 2e-5, 0.0), (defsent, defsent_rate(model, "mean"), None)):
        assert stage.args.steps is None, "one pass"
        (task,) = stage.tasks
        assert task.batch_size == 16
        assert max(task.data.buckets) == 128
        optimizer = stage.args.make_optimizer(1_000)
        assert type(optimizer) is Adam
        assert not optimizer.weight_decay
        assert optimizer.global_clipnorm is None
        assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.999, 1e-8)
        rates = [float(optimizer._learning_rate(step)) for step in (0, 50, 100, 1_000)]
        last = rate if last is None else last
        np.testing.assert_allclose(rates, [0, rate / 2, rate, last], rtol=1e-5, atol=1e-12)
    loss = sbert.tasks[0].loss()
    assert (loss.parts, loss.hidden_dims, loss.num_classes) == (("u", "v", "difference"), (), 3)


def test_multi_is_a_cycle_of_nineteen_and_one() -> None:
    (stage,) = VARIANTS["multi_bert_base"].stages
    assert [(task.name, task.weight) for task in stage.tasks] == [
        ("snli_multinli", 19),
        ("oxford", 1),
    ]
    assert (stage.args.task_order, stage.args.steps_per_execution) == ("cycle", 1)


def test_a_pass_of_multi_ends_when_either_data_is_read() -> None:
    """With the paper's 942,069 pairs and a 19th as many definitions: one pass over both."""

    def steps(pairs: int, words: int) -> int:
        (stage,) = VARIANTS["multi_bert_base"].stages
        sizes = {"snli_multinli": range(pairs), "oxford": range(words)}
        arrays: Any = {name: {name: rows} for name, rows in sizes.items()}
        return steps_of_a_pass(stage.tasks, arrays, cycle=True, call=1)

    assert steps(942_069, 49_584) == 3_099 * 20
    assert steps(83_321, 40_018) == 275 * 20, "not 1.4 passes of the pairs"
    assert steps(83_321, 1_600) == 100 * 20
    assert steps(10, 10) == 20, "at least one cycle"


def test_the_papers_variants_read_the_papers_corpora(data: Path, bert: Path) -> None:
    """SNLI, MultiNLI and the Oxford definitions, and none of the other variants' corpora."""
    write_paper_corpora(data)
    stages = VARIANTS["s_d_bert_base"].stages
    material = material_of(data, bert)
    pairs, words = (
        [*examples()]
        for stage in stages
        for examples, _ in stage.tasks[0].data.sources("task", material).values()
    )
    assert len(pairs) == 6
    assert {VOCABULARY[each["word"]] for each in words} <= {"guitar", "dog"}
    assert words
