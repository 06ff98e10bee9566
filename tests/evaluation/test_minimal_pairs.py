from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from experiments import held_out
from use_st5.data.data_folder import DataFolder
from use_st5.data.text_hashes import normalized
from use_st5.encode.vector_store import Encode, VectorCache
from use_st5.evaluation.minimal_pairs import _score, minimal_pairs
from use_st5.evaluation.runner import evaluate
from use_st5.evaluation.task import TaskContext, TaskResult, select_tasks

ITEMS = [item for items in minimal_pairs().values() for item in items]
# By their cosine with east: east 1, near 0.8, far 0.6, north 0, west -1. Lengths do not matter.
VECTORS = {
    "east": [2.0, 0.0],
    "near": [0.4, 0.3],
    "far": [30.0, 40.0],
    "far too": [3.0, -4.0],
    "north": [0.0, 1.0],
    "west": [-1.0, 0.0],
}


def encode(sentences: list[str]) -> np.ndarray:
    return np.array([VECTORS[sentence] for sentence in sentences])


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def counts_of_words(sentences: list[str]) -> np.ndarray:
    """Exact counts of the probe's words, so that the cosine measures the overlap of words."""
    places = {word: place for place, word in enumerate(sorted(set(words(str(ITEMS)))))}
    vectors = np.zeros((len(sentences), len(places)))
    for row, sentence in enumerate(sentences):
        for word in words(sentence):
            vectors[row, places[word]] += 1
    return vectors


def measured(encode: Encode, kinds: dict[str, list[list[str]]]) -> TaskResult:
    return _score(TaskContext(VectorCache(encode), DataFolder(".")), kinds)


def test_by_hand() -> None:
    kinds = {
        "some": [
            ["east", "near", "far"],
            ["east", "north", "near"],
            ["west", "north", "near"],
            ["north", "far", "near"],
        ],
        "none": [["east", "west", "north"]],
    }
    result = measured(encode, kinds)
    assert result.main == "accuracy"
    # North has cosine 0.8 with far and 0.6 with near.
    assert result.scores == {"accuracy": 3 / 5, "accuracy_some": 3 / 4, "accuracy_none": 0.0}
    assert result.counts == {"items": 5}


def test_a_tie_counts_as_a_miss() -> None:
    ties = {"ties": [["east", "far", "far too"], ["east", "near", "near"]]}
    assert measured(encode, ties).scores["accuracy"] == 0


def test_the_task_needs_no_data() -> None:
    record = evaluate(counts_of_words, select_tasks("minimal_pairs"))
    result = record.tasks["minimal_pairs"]
    assert result["counts"] == {"items": 400}
    assert {*result["scores"]} == {"accuracy", *(f"accuracy_{kind}" for kind in minimal_pairs())}


def test_fifty_items_of_each_kind() -> None:
    assert {kind: len(items) for kind, items in minimal_pairs().items()} == dict.fromkeys(
        ["negation", "roles", "numbers", "antonyms", "tense", "entities", "quantifiers",
         "relations"], 50
    )  # fmt: skip


def test_no_sentence_stands_twice() -> None:
    texts = Counter(normalized(text) for item in ITEMS for text in item)
    assert len(texts) == 3 * 400, [text for text, count in texts.items() if count > 1]


def test_word_overlap_prefers_nearly_all_altered_sentences() -> None:
    scores = measured(counts_of_words, minimal_pairs()).scores
    assert scores["accuracy"] == 1 / 400, "the documents say 0.25"


def test_no_sentence_stands_in_a_test_set(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "probe_items", lambda folder: {})
    others = held_out.held_out_sentences(data_dir)
    assert not others & {normalized(text) for item in ITEMS for text in item}
