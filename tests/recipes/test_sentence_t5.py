"""Both stages end to end on a few sentences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from use_st5.recipes._sentence_t5_data import (
    nli_triplets,
    stack_exchange_answers,
    stage_arrays,
    trivia_answers,
)

from tests.recipes.small_t5 import make_small
from use_st5._model_manifest import ModelManifest
from use_st5.models.t5.config import T5Config
from use_st5.models.t5.t5 import T5
from use_st5.recipes import pretrain_t5, sentence_t5, sentence_t5_ablation
from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer


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
    """Enough of both stages for a batch: answers, and hypotheses with one premise."""
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
    model = sentence_t5.sentence_encoder(pretrained, pooling, None)
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


def test_trains_through_both_stages(corpora: Path, pretrained: Path, tmp_path: Path) -> None:
    settings = {"qa": (10, 8, 1, 1e-3), "nli": (20, 8, 2, 1e-3)}
    options = {"pretrained": pretrained, "settings": settings}
    assert sentence_t5.run(corpora, tmp_path / "run", part="prepare", **options) == {}
    with pytest.raises(FileNotFoundError, match=r"training\.json, .* --part train --out"):
        sentence_t5.run(corpora, tmp_path / "run", part="export")
    trained = {"part": "train", "seed": 3, **options}
    assert sentence_t5.run(tmp_path / "nowhere", tmp_path / "run", **trained) == {}
    scores = sentence_t5.run(corpora, tmp_path / "run", part="export")
    metadata = ModelManifest.read(tmp_path / "run/model").metadata
    assert (metadata["seed"], metadata["pooling"]) == (3, "mean"), "of the training"
    assert json.loads((tmp_path / "run/scores.json").read_text()) == scores
    exported = tf.saved_model.load(tmp_path / "run/model")
    vectors = exported(tf.constant(["A man runs.", ""]))
    assert vectors.shape == (2, 768)
    # Complete: the same command finds everything done.
    assert sentence_t5.run(corpora, tmp_path / "run", seed=3, **options) == scores
    assert (tmp_path / "run/checkpoints/qa").is_dir()


@pytest.mark.process
def test_the_stages_run_under_jax_between_preparation_and_export(
    repository: Path,
    corpora: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh_python: Callable[..., str],
) -> None:
    pytest.importorskip("jax")
    _write_answers(corpora)
    make_small(monkeypatch.setattr)
    runs = tmp_path / "runs"
    pretrain_t5.run(corpora, runs / "pretrain_t5", part="prepare")
    sentence_t5.run(corpora, runs / "sentence_t5", part="prepare", stages=("nli",))
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    tests = repository / "tests"
    run = tests / "recipes/jax_recipe_run.py"
    fresh_python(tests / "without_tensorflow.py", run, runs, timeout=900)
    assert (runs / "pretrain_t5/checkpoints/checkpoint-000000010/values.safetensors").exists()
    scores = sentence_t5.run(corpora, runs / "sentence_t5", part="export")
    assert ModelManifest.read(runs / "sentence_t5/model").metadata["stages"] == ["nli"]
    assert np.isfinite(list(scores.values())).all()
    vectors = tf.saved_model.load(runs / "sentence_t5/model")(tf.constant(["A man runs.", ""]))
    assert vectors.shape == (2, 768)


def test_preparation_is_asked_for(corpora: Path, pretrained: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"prepared/qa/medical. .* --part prepare"):
        sentence_t5.run(corpora, tmp_path / "run", part="train", pretrained=pretrained)


def test_wrong_stage_and_missing_t5(corpora: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'mlm'"):
        sentence_t5.run(corpora, tmp_path / "run", stages=["mlm"])
    with pytest.raises(FileNotFoundError, match="train pretrain_t5"):
        sentence_t5.run(corpora, tmp_path / "run")


def test_triplets_and_answers(corpora: Path, pretrained: Path) -> None:
    del pretrained
    triplets = list(nli_triplets(corpora))
    assert ("A man has 3 cats.", "Yes 3.", "No 3.") in triplets
    assert len([each for each in triplets if each[0].endswith("cats.")]) == 8
    assert list(trivia_answers(corpora)) == [("Who eats food?", "dog", "cat")]
    assert list(stack_exchange_answers(corpora)) == [("Which ball?", "That & this.")]


def test_sts_sentences_are_held_out(corpora: Path, pretrained: Path) -> None:
    del pretrained
    vectorizer = SentencePieceVectorizer()
    before = len(stage_arrays(corpora, "nli", vectorizer)["nli"]["anchor"])
    sets = corpora / "stsbenchmark/sts-dev.csv"
    sets.write_text(sets.read_text() + "g\tf\t1\t1\t5\ta man has 3 cats\tx y\n")
    after = stage_arrays(corpora, "nli", vectorizer)["nli"]
    assert {name: ids.shape[1] for name, ids in after.items()} == dict.fromkeys(
        ("anchor", "positive", "negative"), 24
    )
    assert len(after["anchor"]) == before - 1


def test_ablation_has_the_rows_of_table_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[tuple[str, ...], str]] = []

    def run(_data: Path, folder: Path, *, seed: int, **options: object) -> None:
        started.append((tuple(options["stages"]), options["pooling"]))
        folder.mkdir(parents=True)
        (folder / "scores.json").write_text(json.dumps({"spearman": 0.5 + seed / 100}))

    monkeypatch.setattr(sentence_t5, "run", run)
    scores = sentence_t5_ablation.run(tmp_path, tmp_path / "out", steps=10)
    assert len(started) == 18
    assert (("qa", "nli"), "mean") in started
    assert scores["nli_decoder/spearman"] == pytest.approx(0.51)
    assert "| qa_nli_mean | 51.00 ± 1.00 |" in (tmp_path / "out/table.md").read_text()
