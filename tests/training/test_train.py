"""From the files of a user to an exported encoder, on a toy; and the lines that are printed."""

from __future__ import annotations

import csv
import dataclasses
import importlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.tiny_bert import write_tiny_bert
from tests.toy_encoders import WORDS, Toy
from use_st5.evaluation.retrieval import read_retrieval_set, retrieval_scores, retrieve
from use_st5.losses.classification_loss import ClassificationLoss
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.label_loss import LabelLoss
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.scored_pair_loss import ScoredPairLoss
from use_st5.losses.task_loss import Feature, VectorLoss
from use_st5.losses.triplet_loss import BatchTripletLoss, TripletLoss
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import make_arguments
from use_st5.training.model_loading import open_model
from use_st5.training.rows import TrainingFile, read_file
from use_st5.training.tasks import PAIRS, SCORED_PAIRS, TASKS, TaskSpec
from use_st5.training.train import make_plan, train
from use_st5.training.validation import ValidationSet, retrieval

SENTENCES = [" ".join(words) for words in itertools.permutations(WORDS[:6], 3)]
FEW: dict[str, Any] = {"batch_size": 8, "steps": 4, "evaluations": 2}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Writes rows as a csv file with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [*rows[0]])
        table.writeheader()
        table.writerows(rows)
    return path


def scored(count: int = 60, start: int = 0) -> list[dict[str, Any]]:
    """Pairs of sentences; the score, 0 … 5, is how many words they share."""
    pairs = [*itertools.combinations(SENTENCES[start : start + 40], 2)][:count]
    return [
        {"sentence1": a, "sentence2": b, "score": 5 * len({*a.split()} & {*b.split()}) / 3}
        for a, b in pairs
    ]


def paired(count: int = 60) -> list[dict[str, Any]]:
    rows = zip(SENTENCES, SENTENCES[1:], SENTENCES[7:], strict=False)
    return [dict(zip(("anchor", "positive", "negative"), row, strict=True)) for row in rows][:count]


def labelled(count: int = 60) -> list[dict[str, Any]]:
    return [{"text": text, "label": text.split()[0]} for text in SENTENCES[:count]]


@pytest.fixture
def start(toy_use_dan: Toy) -> str:
    """The folder of an exported model."""
    return str(toy_use_dan.folders["float32"])


@pytest.mark.end_to_end
def test_a_mixture_of_all_that_an_encoder_can_learn(start: str, tmp_path: Path) -> None:
    """The columns of each file decide its task; the export is used without the library."""
    pairs = [(row["anchor"], row["positive"]) for row in paired()]
    labels = ("entailment", "neutral", "contradiction")
    names = ("premise", "hypothesis", "label")
    inference = [
        dict(zip(names, (*pair, label), strict=True))
        for pair, label in zip(pairs, labels * 20, strict=True)
    ]
    files = {
        "sts": scored(),
        "triplets": paired(),
        "topics": labelled(),
        "nli": inference,
        "talk": [dict(zip(("input", "response"), pair, strict=True)) for pair in pairs],
        "single": [{"text": text} for text in SENTENCES[:60]],
        "prose": [
            {"text": ". ".join(s.capitalize() for s in SENTENCES[n : n + 5]) + "."}
            for n in range(30)
        ],
    }
    given = [write(tmp_path / f"{name}.csv", rows) for name, rows in files.items()]
    said: list[str] = []
    trained = train(
        start, given, tmp_path / "tuned", keep=0.5, log=said.append, **{**FEW, "steps": 20}
    )
    record = json.loads((tmp_path / "tuned.run/history.json").read_text())[""]
    assert set(record["task_steps"]) == {*files, "start"}
    kinds = [line.split(" → ")[1].split()[0] for line in said if " → " in line]
    assert kinds == [
        *("scored_pairs", "pairs", "labels", "inference", "responses", "texts", "neighbours")
    ]
    assert {"mean", "sts_spearman", "triplets_mrr", "topics_accuracy"} <= set(trained.after)
    assert any("rows are held out for validation" in line for line in said)
    vectors = tf.saved_model.load(str(trained.folder))(tf.constant(["the cat sat"]))
    np.testing.assert_allclose(vectors, trained.encoder.encode(["the cat sat"]), atol=1e-5)


@pytest.mark.end_to_end
def test_what_was_exported_goes_on_in_hub_and_keras(start: str, tmp_path: Path) -> None:
    """The export gives the vectors of the best step, and is a layer that can be trained.

    The scores are the opposite of the start's similarities, so every step is better than it.
    """
    hub = pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
    import tf_keras

    rows = [{**row, "score": 5 - row["score"]} for row in scored()]
    path = write(tmp_path / "sts.csv", rows)
    trained = train(start, path, tmp_path / "tuned", learning_rate=0.01, **{**FEW, "steps": 12})
    assert trained.before["spearman"] < -0.5
    texts = ["the cat sat", "how old are you"]
    expected = trained.encoder.encode(texts)
    assert trained.best_step > 0
    assert trained.after["spearman"] > trained.before["spearman"]
    np.testing.assert_allclose(
        hub.load(str(trained.folder))(tf.constant(texts)), expected, atol=1e-5
    )
    layer = hub.KerasLayer(str(trained.folder), input_shape=[], dtype=tf.string, trainable=True)
    model = tf_keras.Sequential([layer, tf_keras.layers.Dense(2)])
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    np.testing.assert_allclose(layer(tf.constant(texts)), expected, atol=1e-5)
    # Evaluated without dropout, which would hide the progress of three steps.
    inputs, labels = tf.constant(texts * 8), np.array([0, 1] * 8)
    before = model.evaluate(inputs, labels, verbose=0)
    model.fit(inputs, labels, epochs=3, verbose=0)
    assert model.evaluate(inputs, labels, verbose=0) < before


def test_the_start_is_exported_where_nothing_is_better(start: str, tmp_path: Path) -> None:
    """No step can be nearer to the start's own similarities; the card says what was done."""
    encoder, measured = use_st5.load(start), scored(40, start=60)
    for row in measured:
        row["score"] = float(encoder.similarity(row["sentence1"], row["sentence2"]).item())
    files = write(tmp_path / "sts.csv", scored()), write(tmp_path / "dev.csv", measured)
    said: list[str] = []
    trained = use_st5.train(
        start,
        files[0],
        tmp_path / "t",
        validation=files[1],
        learning_rate=0.5,
        log=said.append,
        **FEW,
    )
    assert trained.best_step == 0
    assert trained.after == pytest.approx(trained.before, abs=1e-6)
    assert any("no step was better than the start" in line for line in said)
    texts = SENTENCES[:5]
    expected = encoder.encode(texts)
    np.testing.assert_allclose(use_st5.load(trained.folder).encode(texts), expected, atol=1e-6)
    card = (trained.folder / "README.md").read_text()
    assert "the start, because no step was better" in card
    assert "Without test rows, the scores are optimistic." in card
    assert "| spearman |" in card
    assert '"learning_rate": 0.5' in card


@pytest.mark.end_to_end
def test_what_is_frozen_stays_and_adapters_are_merged(
    start: str, toy_use_transformer: Toy, tmp_path: Path
) -> None:
    path = write(tmp_path / "pairs.csv", paired())
    options = {
        **FEW,
        "learning_rate": 0.05,
        "matryoshka_dimensions": (4, 16),
        "micro_batch_size": 4,
    }
    trained = train(start, path, tmp_path / "frozen", freeze=("embedding",), **options)
    table = TrainableEncoder.load(start).model.embedding.get_weights()[0]
    np.testing.assert_array_equal(trained.encoder.model.embedding.get_weights()[0], table)
    folder = str(toy_use_transformer.folders["float32"])
    adapted = train(folder, path, tmp_path / "adapted", lora_rank=2, precision="int8", **options)
    assert adapted.encoder.model.count_params() == toy_use_transformer.model.count_params()


@pytest.mark.end_to_end
def test_definitions_teach_a_bert_the_words(start: str, tmp_path: Path) -> None:
    """DefSent's settings with another dropout; the head starts at random and learns."""
    bert = write_tiny_bert(tmp_path / "bert", head=False)
    words = [{"word": w, "definition": " ".join([*WORDS[:3], w])} for w in ("cat", "dog", "man")]
    path = write(tmp_path / "dictionary.csv", words * 8)
    said: list[str] = []
    options = {"settings": "defsent", "dropout": 0.1, "steps": 2, "evaluations": 1}
    trained = train(str(bert), path, tmp_path / "tuned", log=said.append, **options)
    assert any("2 steps of 16, learning rate 1.13e-05" in line for line in said)
    assert trained.encoder.dimension == 8
    with pytest.raises(ValueError, match="expected a BERT or RoBERTa with a head"):
        train(start, path, tmp_path / "no", **options)


@pytest.mark.end_to_end
def test_a_teacher_is_come_nearer_to(start: str, toy_use_transformer: Toy, tmp_path: Path) -> None:
    """From texts without labels, only a teacher's vectors are learnt."""
    teacher = TrainableEncoder.load(toy_use_transformer.folders["float32"])
    measured = scored(60)
    for row in measured:
        one, other = teacher.encode([row["sentence1"], row["sentence2"]])
        row["score"] = float(one @ other)
    files = (
        write(tmp_path / "texts.csv", [{"text": text} for text in SENTENCES]),
        write(tmp_path / "dev.csv", measured),
    )
    trained = train(
        *(start, files[0], tmp_path / "taught"),
        validation=files[1],
        teacher=str(toy_use_transformer.folders["float32"]),
        **{**FEW, "steps": 60, "learning_rate": 0.01},
    )
    assert trained.after["spearman"] > trained.before["spearman"]
    record = json.loads((tmp_path / "taught.run/history.json").read_text())[""]
    assert list(record["task_steps"]) == ["teacher"]


def test_a_guide_masks_what_it_takes_for_positives(start: str, tmp_path: Path) -> None:
    """For this guide a positive is opposite to its anchor, so that no negative is left."""
    rows = [{"query": text, "answer": text[::-1]} for text in SENTENCES[:60]]
    path, guide = write(tmp_path / "pairs.csv", rows), tmp_path / "guide.jsonl"
    with guide.open("w", encoding="utf-8") as file:
        for angle, row in enumerate(rows):
            for sign, text in zip((1, -1), row.values(), strict=True):
                vector = [sign * math.cos(angle), sign * math.sin(angle)]
                file.write(json.dumps({"text": text, "embedding": vector}) + "\n")
    said: list[str] = []
    guided = train(start, path, tmp_path / "guided", guide=str(guide), log=said.append, **FEW)
    assert f"guide: {guide}" in said
    assert guided.after == guided.before
    assert train(start, path, tmp_path / "plain", **FEW).after != guided.before
    texts = write(tmp_path / "texts.csv", [{"text": text} for text in SENTENCES])
    with pytest.raises(ValueError, match="guide: expected a file of pairs"):
        train(start, texts, tmp_path / "no", guide=str(guide), **FEW)
    with pytest.raises(ValueError, match="loss: expected arguments .* received bidirectional"):
        options = {**FEW, "guide": str(guide), "loss": {"bidirectional": True}}
        train(start, path, tmp_path / "no", **options)


def retrieval_folder(folder: Path, relevant: list[tuple[str, str]], others: list[str]) -> Path:
    """A set in BEIR's layout: queries with one relevant document each, and other documents."""
    (folder / "qrels").mkdir(parents=True)
    texts = {
        "queries": [query for query, _ in relevant],
        "corpus": [document for _, document in relevant] + others,
    }
    for name, column in texts.items():
        rows = (json.dumps({"_id": str(n), "text": text}) for n, text in enumerate(column))
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    lines = ["query-id\tcorpus-id\tscore", *(f"{n}\t{n}\t1" for n in range(len(relevant)))]
    (folder / "qrels" / "dev.tsv").write_text("\n".join(lines))
    return folder


def test_a_retrieval_set_chooses_the_best_step_and_a_resumed_run_the_same(
    start: str, tmp_path: Path
) -> None:
    """By nDCG@10 with the prompts that the result keeps; its pairs are not trained on."""
    other = dict(zip(WORDS[:6], WORDS[6:12], strict=True))
    answers = [" ".join(other[word] for word in text.split()) for text in SENTENCES]
    rows = [{"query": q, "answer": a} for q, a in zip(SENTENCES, answers, strict=True)]
    relevant = [(row["query"], row["answer"]) for row in rows[::4]]
    folder = retrieval_folder(tmp_path / "set", relevant, answers)
    prompts = {"query": f"{WORDS[0]}: ", "answer": f"{WORDS[1]}: "}
    options: dict[str, Any] = {**FEW, "steps": 12, "evaluations": 6, "learning_rate": 0.01}
    options |= {"validation": folder, "prompts": prompts}
    path, said = write(tmp_path / "pairs.csv", rows), []
    whole = train(start, path, tmp_path / "whole", log=said.append, **options)
    assert any("30 rows are not trained on" in line for line in said)
    scores = json.loads((whole.run / "history.json").read_text())[""]["evaluations"]
    assert whole.monitor == "ndcg@10"
    assert whole.best_step == max(scores, key=lambda each: each["ndcg@10"])["step"] > 0
    encoder, dataset = use_st5.load(whole.folder), read_retrieval_set(folder)
    found = retrieve(dataset, encoder.encode_query, encoder.encode_document)
    assert whole.after == pytest.approx(retrieval_scores(dataset.judgements, found), abs=1e-6)

    def stop(step: int, logs: Any) -> None:
        if step == 4:
            raise KeyboardInterrupt

    interrupt = keras.callbacks.LambdaCallback(on_train_batch_end=stop)
    with pytest.raises(KeyboardInterrupt):
        train(start, path, tmp_path / "cut", callbacks=[interrupt], **options)
    resumed = train(start, path, tmp_path / "cut", **options)
    assert (resumed.best_step, resumed.after) == (whole.best_step, whole.after)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("qrels/dev.tsv", None, "qrels: expected a file such as test.tsv"),
        ("corpus.jsonl", None, "corpus.jsonl: expected a file, found none"),
        ("corpus.jsonl", '{"_id": "x", "text": "a"}', "set: expected judgements above 0"),
    ],
)
def test_a_folder_that_is_no_retrieval_set_is_refused_before_the_training(
    file: str, content: str | None, message: str, start: str, tmp_path: Path
) -> None:
    folder = retrieval_folder(tmp_path / "set", [("a", "b")], [])
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_text(content)
    path = write(tmp_path / "pairs.csv", paired())
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        train(start, path, tmp_path / "tuned", validation=folder, **FEW)
    assert not (tmp_path / "tuned.run").exists()


def test_a_plain_t5_becomes_an_encoder_of_unit_vectors(
    toy_t5: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = SentenceT5(toy_t5.model.config, projection_dim=None, normalize=False)
    plain.build()
    before = TrainableEncoder(plain, toy_t5.tokenizer).encode(["a cat", "two dogs"])
    checkpoint = TrainableEncoder(plain, toy_t5.tokenizer)
    monkeypatch.setattr(TrainableEncoder, "load", lambda folder: checkpoint)
    source = read_file(write(tmp_path / "pairs.csv", paired()))
    after = open_model("t5", [source], make_arguments()).encode(["a cat", "two dogs"])
    lengths = np.linalg.norm(before, axis=1, keepdims=True)
    np.testing.assert_allclose(after, before / lengths, atol=1e-6)


def test_training_validation_and_the_result_have_the_prompts(start: str, tmp_path: Path) -> None:
    rows = [{"title": row["anchor"], "body": row["positive"]} for row in paired(30)]
    path = write(tmp_path / "faq.csv", rows)
    other = write(tmp_path / "dev.csv", paired()[40:50])
    q, p = f"{WORDS[0]} {WORDS[1]}: ", f"{WORDS[2]}: "
    prompts, names = {"title": q, "positive": p}, {"anchor": "title", "positive": "body"}
    options: dict[str, Any] = {**FEW, "steps": 1, "columns": names, "prompts": prompts}
    trained = train(start, path, tmp_path / "m", validation=other, **options)
    prompted = [
        row | {"anchor": q + row["anchor"], "positive": p + row["positive"]}
        for row in paired()[40:50]
    ]
    expected = ValidationSet("dev", PAIRS, prompted).scores(TrainableEncoder.load(start).encode)
    assert trained.before == pytest.approx(expected)
    encoder = use_st5.load(trained.folder)
    assert encoder.prompts == {"query": q, "document": p}
    asked = encoder.encode_query(["the cat"])
    np.testing.assert_allclose(asked, encoder.encode([q + "the cat"]), atol=1e-6)
    with pytest.raises(ValueError, match="prompts: expected columns of the training files"):
        train(start, path, tmp_path / "n", **{**options, "prompts": {"query": "q: "}})
    with pytest.raises(TypeError, match="prompts: expected texts by column"):
        train(start, path, tmp_path / "n", **{**options, "prompts": {"anchor": 1}})


def test_one_prompt_for_all_texts_is_the_default_of_the_result(start: str, tmp_path: Path) -> None:
    prompt = f"{WORDS[0]} {WORDS[1]}: "
    path = write(tmp_path / "topics.csv", labelled())
    trained = train(start, path, tmp_path / "m", prompts=prompt, **{**FEW, "steps": 1})
    encoder = use_st5.load(trained.folder)
    prompted = encoder.encode([prompt + SENTENCES[0]], prompt="")
    for encode in (encoder.encode, encoder.encode_query, encoder.encode_document):
        np.testing.assert_allclose(encode([SENTENCES[0]]), prompted, atol=1e-6)
    (classifier,) = trained.classifiers
    np.testing.assert_allclose(
        classifier.probabilities([SENTENCES[0]]),
        classifier.probabilities([prompt + SENTENCES[0]], prompt=""),
        atol=1e-6,
    )
    assert f'"prompts": "{prompt}"' in (trained.folder / "README.md").read_text()


def test_the_steps_of_a_mixture_are_shown(start: str, tmp_path: Path) -> None:
    files = write(tmp_path / "a.csv", scored(40)), write(tmp_path / "b.csv", paired(60))
    said: list[str] = []
    options = {**FEW, "steps": 1, "log": said.append}
    train(start, [f"{files[0]}=1", f"{files[1]}=3"], tmp_path / "m", **options)
    assert any(line.endswith(", of a 25%, b 75%") for line in said)
    with pytest.raises(ValueError, match="task: expected names among the training files"):
        train(start, files[0], tmp_path / "n", task={"c.csv": "pairs"})


@pytest.mark.end_to_end
def test_a_fresh_model_has_the_vocabulary_of_the_files(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.csv", paired())
    trained = train("fresh:use_dan_en", path, tmp_path / "mine", **{**FEW, "steps": 1})
    vocabulary = trained.encoder.tokenizer.vocabulary
    assert set(vocabulary.unigrams) == {*WORDS[:6]}
    assert not vocabulary.bigrams
    unknown = map(int, trained.encoder.tokenizer.padded(["zebra yak ox"], 3)[0])
    assert len({*unknown} - {0}) == 3, "each has a row, by its hash"
    sizes = {**FEW, "steps": 1, "words": 4, "bigrams": 2}
    small = train("fresh:use_dan_en", path, tmp_path / "small", **sizes)
    vocabulary = small.encoder.tokenizer.vocabulary
    assert (len(vocabulary.unigrams), len(vocabulary.bigrams)) == (4, 2)


@pytest.mark.parametrize("asked", ["words", "bigrams"])
def test_a_vocabulary_that_is_there_has_no_sizes(start: str, asked: str, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.csv", paired())
    with pytest.raises(ValueError, match=rf"{asked}: expected no value for this model"):
        train(start, path, tmp_path / "m", **FEW, **{asked: 30})
    assert not (tmp_path / "m.run").exists()
    with pytest.raises(ValueError, match="bigrams: expected no value"):
        train("fresh:use_transformer_en", path, tmp_path / "m", **FEW, bigrams=30)


def test_rows_that_validate_or_test_do_not_train(start: str, tmp_path: Path) -> None:
    rows = scored()
    files = [
        write(tmp_path / f"{name}.csv", part)
        for name, part in (("train", rows), ("dev", rows[:6]), ("test", rows[6:10]))
    ]
    said: list[str] = []
    measured = {"validation": files[1], "test": files[2]}
    trained = train(start, files[0], tmp_path / "tuned", log=said.append, **measured, **FEW)
    assert any("10 rows are not trained on" in line for line in said)
    for folder, scores in ((start, trained.test_before), (trained.folder, trained.test_after)):
        tested = ValidationSet("test", SCORED_PAIRS, rows[6:10])
        assert scores == pytest.approx(tested.scores(TrainableEncoder.load(folder).encode))
    card = (trained.folder / "README.md").read_text()
    assert "chose nothing and was evaluated once" in card
    before, after = (100 * each["spearman"] for each in (trained.test_before, trained.test_after))
    table = f"| test | before | after |\n|---|---|---|\n| spearman | {before:.2f} | {after:.2f} |"
    assert table in card
    assert any(re.fullmatch(r"took \d+:\d\d:\d\d", line) for line in said)
    assert not (tmp_path / "tuned.run/prepared").exists(), "nothing reads it any more"


def test_another_run_in_the_same_place_is_refused(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = importlib.import_module("use_st5.training.train")
    train = training.train
    path = write(tmp_path / "sts.csv", scored())
    to = tmp_path / "tuned"
    first = train(start, path, to, **FEW)
    kept = {each.name for each in first.run.iterdir()}
    written = "request.json result.json history.json run.png run.toml checkpoints"
    assert kept == {*written.split()}
    assert [each.name for each in (first.run / "checkpoints").iterdir()] == ["logs"]
    monkeypatch.setattr(training, "open_model", None)
    said: list[str] = []
    assert train(start, path, to, log=said.append, **FEW) == first, "nothing is loaded"
    done = f"{to}: the same training is already complete. Give --overwrite to train again."
    assert said == [done]
    monkeypatch.undo()
    with pytest.raises(FileExistsError, match=r"begun with another seed\..* --overwrite"):
        train(start, path, to, seed=1, **FEW)
    write(path, scored(50))
    with pytest.raises(FileExistsError, match=r"begun with another train\."):
        train(start, path, to, **FEW)
    assert train(start, path, to, overwrite=True, **FEW).steps == 4
    inside = write(tmp_path / "tuned.run" / "sts.csv", scored(50))
    for given in ({"files": inside}, {"files": path, "validation": inside}):
        with pytest.raises(ValueError, match="the run replaces files"):
            train(start, to=to, overwrite=True, **given, **FEW)
    assert inside.exists()
    (to / "thesis.txt").write_text("years")
    with pytest.raises(FileExistsError, match=r"Found thesis\.txt"):
        train(start, path, to, overwrite=True, **FEW)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": {"scale": 3}}, "loss: expected arguments among .*temperature.* received scale"),
        ({"loss": {"temperature": -1}}, "temperature: expected more than 0"),
        ({"loss": {"hard_negatives": 2}}, "the loss reads a column negative_2"),
        ({"loss": "tsdae"}, "loss: expected triplet for these files, received 'tsdae'"),
        ({"matryoshka_dimensions": (8, 4096)}, "matryoshka_dimensions: expected up to 16"),
        ({"epoch": 3}, r"Unknown argument 'epoch'. Known are: learning_rate"),
        ({"settings": "st5"}, "expected one of sentence_t5, .* received 'st5'"),
        ({"freeze": ("head",)}, "freeze: expected parts among"),
        (
            {"columns": {"anchor": "Titel"}},
            "a name of anchor, positive, negative; received 'anchor' for 'Titel'",
        ),
        (
            {"columns": {"negativ": "negative"}},
            r"a key of anchor, positive \[, .*received 'negativ'",
        ),
    ],
)
def test_options_that_cannot_be(
    options: dict[str, Any], message: str, start: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "pairs.csv", paired())
    with pytest.raises(ValueError, match=message):
        train(start, path, tmp_path / "tuned", **{**FEW, **options})
    with pytest.raises(ValueError, match="at least one training file, received none"):
        train(start, [], tmp_path / "tuned")
    assert [each.name for each in tmp_path.iterdir()] == ["pairs.csv"]


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_killed_run_exports_the_weights_of_one_never_killed(
    start: str, tmp_path: Path, fresh_python: Callable[..., str], repository: Path
) -> None:
    path = write(tmp_path / "pairs.csv", paired())
    command = ["-m", "use_st5", "train", start, "--train", str(path), "--steps", "400", "--to"]
    options = ["--batch-size", "8", "--evaluations", "40", "--learning-rate", "0.01", "--seed", "3"]
    fresh_python(*command, tmp_path / "whole", *options)
    killed = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, *command, killed, *options],
        env={**os.environ, "PYTHONPATH": str(repository)},
        stderr=subprocess.DEVNULL,
    )
    checkpoints = killed.with_name("killed.run") / "checkpoints"
    try:
        while not any(path.name > "checkpoint-000000000" for path in checkpoints.glob("check*")):
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert not killed.exists()
    fresh_python(*command, killed, *options)
    hashes = [
        json.loads((folder / "use_st5.json").read_text())["files"][
            "variables/variables.data-00000-of-00001"
        ]
        for folder in (tmp_path / "whole", killed)
    ]
    assert hashes[0] == hashes[1]
    histories = [
        json.loads((tmp_path / f"{name}.run/history.json").read_text())
        for name in ("whole", "killed")
    ]
    assert histories[0] == histories[1]


@pytest.mark.end_to_end
@pytest.mark.parametrize(("toy", "lora_rank"), [("use_dan", None), ("use_transformer", 2)])
def test_an_interrupted_encoder_has_its_weights_of_before(
    toy: str, lora_rank: int | None, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    def stop(step: int, logs: Any) -> None:
        if step == 1:
            raise KeyboardInterrupt

    encoder = TrainableEncoder.load(request.getfixturevalue(f"toy_{toy}").folders["float32"])
    before = encoder.model.get_weights()
    files = write(tmp_path / "pairs.csv", paired(30))
    options: dict[str, Any] = {"lora_rank": lora_rank, "learning_rate": 0.05, "batch_size": 8}
    options |= {"steps": 3, "evaluations": 1}
    interrupt = keras.callbacks.LambdaCallback(on_train_batch_end=stop)
    with pytest.raises(KeyboardInterrupt):
        train(encoder, files, tmp_path / "tuned", callbacks=[interrupt], **options)
    for ours, theirs in zip(encoder.model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert len(encoder.model.trainable_variables) == len(before)
    if lora_rank is not None:  # It gets new adapters.
        assert train(encoder, files, tmp_path / "tuned", **options).steps == 3


def test_rows_in_memory_train_like_a_file(start: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {**FEW, "steps": 2, "evaluations": 1, "learning_rate": 0.05}
    rows, measured = scored(40), scored(20, start=60)
    named = {"rows.csv": rows, "validation_rows.csv": measured}  # the name seeds the order
    files = [write(tmp_path / name, each) for name, each in named.items()]
    trained = [
        use_st5.train(start, data, tmp_path / to, validation=other, **options)
        for to, data, other in (("files", *files), ("memory", rows, measured))
    ]
    vectors = [use_st5.load(each.folder).encode(SENTENCES) for each in trained]
    np.testing.assert_allclose(*vectors, atol=1e-6)
    said: list[str] = []
    again = {**options, "validation": measured, "log": said.append}
    use_st5.train(start, rows, tmp_path / "memory", **again)
    assert "already complete" in said[0]
    with pytest.raises(FileExistsError, match=r"begun with another train\."):
        use_st5.train(start, rows[1:], tmp_path / "memory", **again)


def test_the_argument_of_a_loss_of_ones_own_is_part_of_the_run(start: str, tmp_path: Path) -> None:
    """The loss has no `get_config`: Keras finds its arguments."""

    class Far(VectorLoss):
        features = (Feature("anchor", "ids"), Feature("positive", "ids"))

        def __init__(self, power: float = 2.0) -> None:
            super().__init__()
            self.power = power

        def texts(self, batch: dict[str, Any]) -> list[Any]:
            return [batch["anchor"], batch["positive"]]

        def from_vectors(self, vectors: list[Any], batch: dict[str, Any], **_: Any) -> Any:
            distances = keras.ops.norm(vectors[0] - vectors[1], axis=1)
            return keras.ops.mean(distances**self.power), {}

    files = write(tmp_path / "pairs.csv", paired())
    options: dict[str, Any] = {**FEW, "steps": 2, "evaluations": 1}
    trained = use_st5.train(start, files, tmp_path / "far", loss=Far(3.0), **options)
    settings = json.loads((trained.run / "request.json").read_text())["settings"]
    assert (settings["loss"]["class"], settings["loss"]["power"]) == ("Far", 3.0)
    said: list[str] = []
    use_st5.train(start, files, tmp_path / "far", loss=Far(3.0), log=said.append, **options)
    assert "already complete" in said[0]
    several = {**options, "matryoshka_dimensions": (4, 16), "loss": Far(3.0)}
    assert use_st5.train(start, files, tmp_path / "several", **several).steps == 2
    with pytest.raises(FileExistsError, match=r"begun with another loss\."):
        use_st5.train(start, files, tmp_path / "far", loss=Far(2.0), **options)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (0.0, {"dropout": 0.0, "attention_dropout": 0.0, "term_dropout": 0.0}),
        (0.2, {"dropout": 0.2, "attention_dropout": 0.2, "term_dropout": 0.3}),
    ],
)
def test_dropout_is_that_of_the_attention_too_and_zero_is_none(
    rate: float, expected: dict[str, float], toy: Toy, tmp_path: Path
) -> None:
    """Without dropout, training computes the vectors of inference."""
    source = read_file(write(tmp_path / "pairs.csv", paired()))
    model = open_model(toy.folders["float32"], [source], make_arguments(dropout=rate)).model
    config = dataclasses.asdict(model.config)
    found = {name: value for name, value in config.items() if name.endswith("dropout")}
    assert found == {name: expected[name] for name in found}
    ids = toy.ids(SENTENCES[:4])
    same = np.allclose(model(ids, training=True), model(ids, training=False), atol=1e-6)
    assert same == (rate == 0)


def test_a_task_of_ones_own(start: str, tmp_path: Path) -> None:
    spec = TaskSpec(
        name="titles",
        description="a title and its article",
        columns=("title", "article"),
        loss=ContrastiveLoss,
        features={"anchor": "title", "positive": "article"},
        metric=retrieval("title", "article"),
        learning_rate={"use_dan": 2e-3},
    )
    rows = [{"title": row["anchor"], "article": row["positive"]} for row in paired()]
    said: list[str] = []
    files = write(tmp_path / "news.csv", rows)
    trained = use_st5.train(start, files, tmp_path / "m", tasks=[spec], log=said.append, **FEW)
    assert trained.monitor == "mrr"
    assert any("title, article → titles (a title and its article)" in line for line in said)
    assert any("learning rate 0.002" in line for line in said)


@pytest.mark.end_to_end
@pytest.mark.parametrize("lengths", [(), (4, 8)])
def test_a_loss_of_labels_that_was_made_is_built_once(
    lengths: tuple[int, ...], start: str, tmp_path: Path
) -> None:
    """Its heads start as linear probes, like those of the losses that `train` makes."""
    labels = len({row["label"] for row in labelled()})
    pairs = [
        {"premise": row["anchor"], "hypothesis": row["positive"], "label": n % 2}
        for n, row in enumerate(paired())
    ]
    losses = {
        "labels": (labelled(), LabelLoss(num_classes=labels)),
        "inference": (pairs, ClassificationLoss(num_classes=2, hidden_dims=())),
    }
    for name, (rows, loss) in losses.items():
        loss = MatryoshkaLoss(loss, dimensions=lengths) if lengths else loss
        files = write(tmp_path / f"{name}.csv", rows)
        trained = use_st5.train(start, files, tmp_path / name, loss=loss, **FEW)
        assert trained.steps == 4
        assert loss.built


def test_another_loss_of_a_task_by_name_and_data_sets_in_turn(start: str, tmp_path: Path) -> None:
    texts = [{"text": text} for text in SENTENCES[:60]]
    files = [write(tmp_path / "single.csv", texts), write(tmp_path / "topics.csv", labelled()[:40])]
    said: list[str] = []
    loss = {"name": "tsdae", "deletion": 0.5}
    options = {**FEW, "task_order": "cycle", "log": said.append}
    use_st5.train(start, files, tmp_path / "m", loss=loss, **options)
    record = json.loads((tmp_path / "m.run/history.json").read_text())[""]
    assert record["task_steps"] == {"single": 2, "topics": 2}
    assert "loss with name tsdae, deletion 0.5" in "\n".join(said)


@pytest.mark.parametrize(
    ("name", "rows", "loss"),
    [("triplet", paired, TripletLoss), ("batch_triplet", labelled, BatchTripletLoss)],
)
def test_a_name_makes_a_loss(
    name: str, rows: Callable, loss: type, start: str, tmp_path: Path
) -> None:
    made = make_arguments(loss={"name": name, "margin": 0.5})
    file = read_file(write(tmp_path / "rows.csv", rows()))
    plan = make_plan(start, TrainableEncoder.load(start), [file], [], [], made)
    (made_loss,) = (make() for _, make in plan.tasks.values())
    assert (type(made_loss), made_loss.margin) == (loss, 0.5)


def test_own_tasks_in_the_place_of_others(start: str, tmp_path: Path) -> None:
    """A task of labels gets a classifier; one of definitions may have a loss that names no word."""
    features = {"anchor": "word", "positive": "definition"}
    own = [
        dataclasses.replace(TASKS["labels"], description="mine"),
        dataclasses.replace(TASKS["definitions"], loss=ContrastiveLoss, features=features),
    ]
    words = [{"word": row["anchor"], "definition": row["positive"]} for row in paired()]
    files = [write(tmp_path / "topics.csv", labelled()), write(tmp_path / "words.csv", words)]
    trained = use_st5.train(start, files, tmp_path / "m", tasks=own, **FEW)
    assert [each.path.name for each in trained.classifiers] == ["classifier.keras"]


def test_another_backend_of_keras_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with pytest.raises(ValueError, match=r"use_st5\.train needs Keras on TensorFlow: unset"):
        train("use_dan_en", "absent.tsv", "tuned")


@pytest.mark.end_to_end
def test_a_global_policy_changes_no_training(
    start: str, global_policy: str, tmp_path: Path
) -> None:
    """Mixed policies give the vectors of float32; another default dtype draws other dropouts."""
    files = [write(tmp_path / "sts.csv", scored()), write(tmp_path / "topics.csv", labelled())]
    results = []
    for policy, floatx in ((global_policy, keras.config.floatx()), ("float32", "float32")):
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(policy)
        trained = use_st5.train(start, files, tmp_path / policy, learning_rate=0.01, **FEW)
        vectors = use_st5.load(trained.folder).encode(SENTENCES)
        results.append((vectors, trained.classifiers[0].probabilities(SENTENCES)))
    assert trained.best_step > 0
    atol = 1e-5 if global_policy.startswith("mixed") else 1.0
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, atol=atol)


def test_validation_and_test_are_told_apart(toy_use_dan: Toy, tmp_path: Path) -> None:
    """Rows that are set aside, files for one of them, and too few rows for a test."""

    def rows(name: str, count: int, start: int = 0) -> TrainingFile:
        lines = (f"{n} a b,{n} c" for n in range(start, start + count))
        (tmp_path / name).write_text("\n".join(["anchor,positive", *lines]))
        return read_file(tmp_path / name)

    many, few = rows("many.csv", 300), rows("few.csv", 60)
    dev, test = rows("dev.csv", 9, start=900), rows("test.csv", 7, start=905)
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])

    def said(train: TrainingFile, dev: list[TrainingFile], test: list[TrainingFile]) -> list[str]:
        settings = make_arguments(steps=2, batch_size=8, evaluations=1)
        return [*make_plan("toy", encoder, [train], dev, test, settings).evaluation_lines()]

    mrr = "mrr, mean reciprocal rank of what belongs to a text, by cosine"
    assert said(many, [], []) == [
        "No --validation: 30 rows are held out for validation.",
        "No --test: 30 rows are held out for the test.",
        f"validation on many: {mrr}; 30 rows",
        f"test on many: {mrr}; 30 rows",
    ]
    optimistic = (
        "No test rows: the final scores are optimistic, because they are the best of up to 2 "
        "evaluations on the same rows. Give other rows with --test."
    )
    assert said(few, [], []) == [
        "No --validation: 12 rows are held out for validation.",
        f"validation on few: {mrr}; 12 rows",
        optimistic,
    ]
    assert said(few, [dev], []) == [f"validation on dev: {mrr}; 9 rows", optimistic]
    assert said(few, [dev], [test]) == [
        f"validation on dev: {mrr}; 5 rows",
        f"test on test: {mrr}; 7 rows",
    ]
    assert said(few, [], [test])[:2] == [
        "No --validation: 12 rows are held out for validation.",
        f"validation on few: {mrr}; 12 rows",
    ]


def test_steps_and_precision(toy_use_dan: Toy, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["anchor,positive", *(f"{n} a,{n} b" for n in range(30))]))
    encoder = TrainableEncoder.load(toy_use_dan.folders["int8"])
    # Four passes over 24 rows: each is one step, because a batch has up to 64.
    passes = make_plan("toy", encoder, [read_file(path)], [], [], make_arguments(epochs=4))
    assert (passes.steps, passes.arguments.precision) == (4, "int8")
    with pytest.raises(ValueError, match="precision: expected float32 or int8 .* received int4"):
        make_plan("toy", encoder, [read_file(path)], [], [], make_arguments(precision="int4"))


@pytest.mark.parametrize("languages", [["en"], ["de"]])
def test_other_languages_than_the_models_are_said_before(
    languages: list[str], toy_use_dan: Toy, tmp_path: Path
) -> None:
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    encoder.metadata["languages"] = languages
    path = tmp_path / "a.csv"
    said = {}
    for language, text in {"de": "weiß der {} es?", "en": "what is the {} for?"}.items():
        rows = (f"{text.format(n)},{text.format(n)}" for n in range(100))
        path.write_text("\n".join(["anchor,positive", *rows]), encoding="utf-8")
        made = make_plan("toy", encoder, [read_file(path)], [], [], make_arguments(steps=2))
        said[language] = any(
            "not English, but toy knows only English" in line for line in made.lines()
        )
    assert said == {"de": languages == ["en"], "en": False}


@pytest.mark.parametrize(
    "loss", [{"objective": "bce"}, {"similarity": "angular"}, ScoredPairLoss(objective="bce")]
)
def test_a_loss_for_scores_from_0_refuses_lower_ones(loss: Any, start: str, tmp_path: Path) -> None:
    rows = [{**row, "score": row["score"] / 5 - 1} for row in scored()]
    path = write(tmp_path / "sts.csv", rows)
    with pytest.raises(ValueError, match="scores from 0 for this loss"):
        train(start, path, tmp_path / "tuned", loss=loss, **FEW)
