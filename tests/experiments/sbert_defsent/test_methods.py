"""DefSent's words, ensembles, and STS by source and shared words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from experiments.corpora import definitions
from experiments.sbert_defsent.defined_words import defined_words, split_of
from experiments.sbert_defsent.ensemble import Ensemble
from experiments.sbert_defsent.sts_tasks import (
    BY_SHARED_WORDS,
    BY_SOURCE,
    dice_coefficient,
)
from tests.evaluation.test_sts import COUNTS
from tests.evaluation.toys import BagOfWords
from tests.models.toy_family import TrigramConfig, TrigramEncoder, TrigramTokenizer
from use_st5.data.data_folder import DataFolder
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.task import TaskContext
from use_st5.models.family import family_of
from use_st5.trainable_encoder import TrainableEncoder

SPLITS = ("train", "dev", "test")

# Ids as an uncased vocabulary has them: case and accents do not count.
IDS = {"cat": 5, "dog": 6, "resume": 7, "turkey": 8}


def letters(sentences: list[str]) -> np.ndarray:
    return np.array([[letter in sentence for letter in "abcd"] for sentence in sentences], float)


def single_ids(words: Sequence[str]) -> np.ndarray:
    plain = (word.lower().replace("é", "e") for word in words)
    return np.array([IDS.get(word, 0) for word in plain], np.int32)


def all_parts(rows: list[tuple[str, str]]) -> dict[str, list[dict]]:
    examples = [{"word": word, "definition": text, "example": ""} for word, text in rows]
    return {split: [*defined_words(examples, single_ids, split)] for split in SPLITS}


def test_words_of_one_token_alone_each_once() -> None:
    rows = [
        ("cat", "a small animal"),
        ("tabby cat", "one with stripes"),
        ("Cat", " a small animal "),
        ("cat", "a nasty woman"),
        ("unheard", "not heard"),
        ("dog", ""),
    ]
    found = [each for part in all_parts(rows).values() for each in part]
    assert found == [
        {"definition": "a small animal", "word": 5},
        {"definition": "a nasty woman", "word": 5},
    ]


def test_no_word_is_in_two_parts(data_dir: Path) -> None:
    """Uses all words of the real dictionaries."""
    words = {example["word"] for example in definitions(data_dir)}
    ids = {word: number for number, word in enumerate(sorted({w.lower() for w in words}), 1)}

    def every_word(chosen: Sequence[str]) -> np.ndarray:
        return np.array([ids[word.lower()] for word in chosen])

    parts = {
        split: {each["word"] for each in defined_words(definitions(data_dir), every_word, split)}
        for split in SPLITS
    }
    for one, other in combinations(parts.values(), 2):
        assert not one & other
    shares = np.array([len(part) for part in parts.values()]) / len(ids)
    np.testing.assert_allclose(shares, [0.8, 0.1, 0.1], atol=0.005)


def test_the_parts_stay_what_they_are() -> None:
    """Otherwise a word that a model has learned could come into a later test."""
    words = ("cat", "dog", "turkey", "seven", "blue", "run")
    assert [split_of(word) for word in words] == ["test", *["train"] * 5]


@pytest.mark.parametrize(
    ("other", "published"),
    [
        ("The man is playing the guitar.", 0.800),
        ("A guy is playing an instrument.", 0.545),
        ("A man is playing a guitar and singing.", 0.833),
        ("The girl is playing the guitar.", 0.600),
        ("A woman is cutting vegetable.", 0.400),
    ],
)
def test_coefficients_of_the_paper(other: str, published: float) -> None:
    first = "A man is playing a guitar."
    assert round(dice_coefficient(first, other), 3) == published
    assert dice_coefficient(other, first) == dice_coefficient(first, other)


# Each test gives the gold scores for the cosines 1, 1/2 and 0.
def write_tasks(folder: Path, subset: str, gold: tuple[float, ...]) -> None:
    """Writes three pairs with falling cosines: 1, 1/2, 0."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"STS.input.{subset}.txt").write_text("a b\ta b\na b\ta c\na b\tc d\n")
    (folder / f"STS.gs.{subset}.txt").write_text("".join(f"{score}\n" for score in gold))


def test_mean_over_the_sources_that_are_there(tmp_path: Path) -> None:
    write_tasks(tmp_path / "STS12-en-test", "MSRpar", (5, 4, 0))
    write_tasks(tmp_path / "STS12-en-test", "surprise.OnWN", (0, 1, 2))
    write_tasks(tmp_path / "STS16-en-test", "headlines", (3, 1, 2))
    result = BY_SOURCE.run(TaskContext(VectorCache(BagOfWords().encode), DataFolder(tmp_path)))
    assert {name: part["spearman"] for name, part in result.details["sources"].items()} == {
        "STS12 MSRpar": pytest.approx(1.0),
        "STS12 OnWN": pytest.approx(-1.0),
        "STS16 headlines": pytest.approx(0.5),
    }
    assert result.main == "spearman_mean"
    assert result.scores["spearman_mean"] == pytest.approx(0.5 / 3)
    assert result.counts == {"sources": 3, "pairs": 9}
    parts = result.details["sources"].values()
    assert result.scores["pearson_mean"] == pytest.approx(np.mean([p["pearson"] for p in parts]))


def test_sources_of_the_paper(data_dir: Path) -> None:
    context = TaskContext(VectorCache(BagOfWords().encode), DataFolder(data_dir))
    result = BY_SOURCE.run(context)
    assert {name: part["pairs"] for name, part in result.details["sources"].items()} == {
        # Table 1 does not say which sources were a surprise.
        f"{year} {source.removeprefix('surprise.')}": pairs
        for year, sources in COUNTS.items()
        for source, pairs in sources.items()
    }


# Rows of one split: gold score and second sentence; the first is "a b c d".
STS_SPLITS = {
    "train": [(1, "e"), (0, "f"), (4, "a"), (5, "b")],
    "dev": [(3, "a b"), (3, "c d"), (2, "a b c")],
    "test": [(1, "b c d"), (5, "d c b a"), (4, "A b c d!")],
}


def near_the_alphabet(sentences: list[str]) -> np.ndarray:
    """Similarities to the first sentence fall from "a…" to "f…"."""
    angles = np.array([ord(sentence[0].lower()) - ord("a") for sentence in sentences]) / 4
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def write_by_dice(folder: Path, splits: dict[str, list[tuple[float, str]]]) -> None:
    folder.mkdir()
    for split, rows in splits.items():
        lines = [f"main\tf\t2012\t1\t{score}\ta b c d\t{second}\n" for score, second in rows]
        (folder / f"sts-{split}.csv").write_text("".join(lines))


def test_by_hand_tasks(tmp_path: Path) -> None:
    write_by_dice(tmp_path / "stsbenchmark", STS_SPLITS)
    context = TaskContext(VectorCache(near_the_alphabet), DataFolder(tmp_path))
    result = BY_SHARED_WORDS.run(context)
    quintiles = result.details["quintiles"]
    assert [(each["dice_from"], each["dice_to"], each["pairs"]) for each in quintiles] == [
        (value, value, 2) for value in (0, 2 / 5, 2 / 3, 6 / 7, 1)
    ]
    # By quintile: similarity orders e and f like gold, a and b unlike gold, two pairs of equal
    # gold scores, "a…" and "b…" like gold, "A…" and "d…" unlike gold.
    expected = {"q1": 1, "q2": -1, "q3": np.nan, "q4": 1, "q5": -1}
    for name, value in expected.items():
        assert result.scores[f"spearman_{name}"] == pytest.approx(value, nan_ok=True)
    assert [each["spearman"] for each in quintiles] == pytest.approx(
        [*expected.values()], nan_ok=True
    )
    assert result.main == "spearman_mean"
    assert np.isnan(result.scores["spearman_mean"])
    assert result.counts == {"pairs": 10}


ENSEMBLE_IDS = np.array([[5, 17, 9, 0], [8, 1, 0, 0]], np.int32)

TEXTS = ["How old are you?", "", "What is your age?", "naïve café 😀"]

# An int8 model has rounded weights.
TOLERANCE = {"float32": 1e-5, "int8": 0.05}


def member(seed: int, dimension: int = 8) -> TrigramEncoder:
    keras.utils.set_random_seed(seed)
    model = TrigramEncoder(TrigramConfig(dimension=dimension))
    model.build()
    return model


def test_average_and_concatenation_of_vectors_as_they_are() -> None:
    first, second = member(0), member(1)
    one, other = np.asarray(first(ENSEMBLE_IDS)), np.asarray(second(ENSEMBLE_IDS))
    average = Ensemble([first, second])
    np.testing.assert_allclose(average(ENSEMBLE_IDS), (one + other) / 2, atol=1e-6)
    assert np.abs(np.linalg.norm(average(ENSEMBLE_IDS), axis=1) - 1).max() > 1e-3, (
        "not scaled again"
    )
    concat = Ensemble([first, second], mode="concat")
    assert (average.dimension, concat.dimension) == (8, 16)
    np.testing.assert_allclose(
        concat(ENSEMBLE_IDS), np.concatenate([one, other], axis=1), atol=1e-6
    )


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_exported_and_loaded_in_every_way(precision: str, tmp_path: Path) -> None:
    model = Ensemble([member(0), member(1, 6)], mode="concat")
    encoder = TrainableEncoder(model, TrigramTokenizer(), name="two", max_length=30)
    folder = tmp_path / precision
    manifest = encoder.export(folder, precision=precision)
    assert (manifest.family, manifest.precision) == ("ensemble", precision)
    vectors = use_st5.load(folder).encode(TEXTS)
    np.testing.assert_allclose(vectors, encoder.encode(TEXTS), atol=TOLERANCE[precision])
    loaded = tf.saved_model.load(str(folder))
    np.testing.assert_allclose(loaded.encode_ids(loaded.preprocess(TEXTS)), vectors, atol=1e-5)
    again = TrainableEncoder.load(folder)
    assert family_of(again.model).config(again.model) == manifest.config
    np.testing.assert_allclose(again.encode(TEXTS), vectors, atol=1e-5)
