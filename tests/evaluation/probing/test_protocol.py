from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from use_st5.evaluation.classifiers import SentEvalClassifier, SklearnClassifier
from use_st5.evaluation.probing.protocol import mlp_grid, probe
from use_st5.evaluation.probing.readers import PARTS, ProbingSet

FAST = SentEvalClassifier(epoch_size=8, max_epoch=80)
SIZES = {"train": 400, "dev": 100, "test": 200}


def encode(sentences: list[str]) -> np.ndarray:
    """Counts of the first letters of the alphabet, many times over."""
    return np.array([[sentence.count(x) for x in "abcd" * 16] for sentence in sentences])


def toy(seed: int, rule: str) -> ProbingSet:
    """Sentences of the letters a to d whose class is the most frequent letter, or random."""
    generator = np.random.default_rng(seed)
    sentences, labels = {}, {}
    for part, count in SIZES.items():
        numbers = generator.integers(4, size=count)
        words = generator.choice([*"abcd"], (count, 6))
        sentences[part] = [
            "".join(row) + 5 * "abcd"[n] for row, n in zip(words, numbers, strict=True)
        ]
        labels[part] = numbers if rule == "letter" else generator.integers(4, size=count)
    return ProbingSet(("a", "b", "c", "d"), sentences, labels)


def test_what_embeddings_show_is_found() -> None:
    chosen, found = probe(encode, toy(0, "letter"), classifiers=[FAST])
    assert chosen == FAST
    assert found.test_accuracy > 0.99
    _, found = probe(encode, toy(0, "letter"), classifiers=[SklearnClassifier()])
    assert found.test_accuracy > 0.99


def test_what_they_do_not_show_stays_near_chance() -> None:
    _, found = probe(encode, toy(0, "random"), classifiers=[FAST])
    assert abs(found.test_accuracy - 0.25) < 0.1


def test_the_dev_part_chooses_the_classifier() -> None:
    """Which of two variables is the larger in absolute value: not linear."""
    generator = np.random.default_rng(0)
    values = {part: generator.normal(size=(4 * count, 2)).round(4) for part, count in SIZES.items()}
    sentences = {part: [f"{x} {y}" for x, y in rows] for part, rows in values.items()}
    labels = {
        part: (abs(rows[:, 0]) > abs(rows[:, 1])).astype(int) for part, rows in values.items()
    }

    def spread(texts: Iterable[str]) -> np.ndarray:
        return np.repeat([[float(word) for word in text.split()] for text in texts], 32, axis=1)

    classifiers = [FAST, SentEvalClassifier(hidden_dim=50, epoch_size=10)]
    data = ProbingSet(("no", "yes"), sentences, labels)
    chosen, found = probe(spread, data, classifiers=classifiers)
    assert chosen == classifiers[1]
    assert found.test_accuracy > 0.9
    worst = probe(spread, data, classifiers=[FAST])[1]
    assert worst.test_accuracy < 0.65


def test_the_first_of_equal_classifiers_is_chosen() -> None:
    data = toy(0, "letter")
    classifiers = [SklearnClassifier(max_iterations=limit) for limit in (500, 400)]
    assert probe(encode, data, classifiers=classifiers)[0] == classifiers[0]


def test_the_grid_of_the_paper() -> None:
    grid = mlp_grid(SentEvalClassifier(seed=5))
    assert {(each.hidden_dim, each.dropout) for each in grid} == {
        (units, rate) for units in (50, 100, 200) for rate in (0.0, 0.1, 0.2)
    }
    assert {each.seed for each in grid} == {5}


def test_no_classifiers() -> None:
    with pytest.raises(ValueError, match="classifiers: expected at least one"):
        probe(encode, toy(0, "letter"), classifiers=[])


def test_each_sentence_is_embedded_once() -> None:
    asked = []

    def asking(sentences: list[str]) -> np.ndarray:
        asked.extend(sentences)
        return encode(sentences)

    data = toy(1, "letter")
    probe(asking, data, classifiers=[SklearnClassifier(), SklearnClassifier(max_iterations=400)])
    distinct = {sentence for part in PARTS for sentence in data.sentences[part]}
    assert sorted(asked) == sorted(distinct)
