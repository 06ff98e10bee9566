from __future__ import annotations

import random

import numpy as np
import pytest

from tests.evaluation.toys import BagOfWords
from use_st5.evaluation.classifiers import (
    LabelledFeatures,
    SentEvalClassifier,
    SklearnClassifier,
    inner_kfold,
    kfold,
    split,
)
from use_st5.evaluation.senteval import TransferSample, TransferSet, evaluate_transfer

WORDS = ("film", "plot", "dull", "bright", "cast", "ending", "slow", "joy")
QUICK = SentEvalClassifier(folds=3, max_epoch=8)


def samples(count: int, *, sentences: int, classes: int, seed: int) -> list[TransferSample]:
    """Random words, and the word "class" as often as the number of the class, at most half."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        label = draw.randrange(classes)
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(sentences)]
        texts[0] += " class" * (label if draw.random() < 0.8 else 0)
        found.append(TransferSample(tuple(texts), label))
    return found


def arranged(found: list[TransferSample]) -> LabelledFeatures:
    """What SentEval makes of them: sorted, embedded, pairs as (|a − b|, a·b)."""
    found = sorted(found, key=lambda x: ([text.count(" ") for text in x.sentences], x.label))
    columns = zip(*(x.sentences for x in found), strict=True)
    vectors = [BagOfWords().encode([*texts]) for texts in columns]
    if len(vectors) == 2:
        vectors = [np.abs(vectors[0] - vectors[1]), vectors[0] * vectors[1]]
    return LabelledFeatures(np.hstack(vectors), np.array([x.label for x in found]))


def test_train_alone_is_validated_by_inner_kfold() -> None:
    train = samples(90, sentences=1, classes=2, seed=0)
    score = evaluate_transfer(BagOfWords().encode, TransferSet("MR", train), classifier=QUICK)
    expected = inner_kfold(QUICK, arranged(train))
    assert (score.name, score.protocol, score.counts) == ("MR", "senteval", {"train": 90})
    assert score.accuracy == expected.test_accuracy > 0.6
    assert score.dev_accuracy == expected.dev_accuracy
    assert score.regularization == expected.regularization
    assert len(score.regularization) == 3


def test_train_and_test_are_validated_by_kfold_and_pairs_have_two_features() -> None:
    train, test = (samples(n, sentences=2, classes=2, seed=n) for n in (90, 50))
    data = TransferSet("MRPC", train, test=test)
    score = evaluate_transfer(BagOfWords().encode, data, classifier=QUICK)
    gold = arranged(test)
    expected = kfold(QUICK, train=arranged(train), test=gold)
    assert score.accuracy == expected.test_accuracy
    assert score.regularization == expected.regularization
    hits = sum((expected.predictions == 1) & (gold.labels == 1))
    precision, recall = hits / sum(expected.predictions == 1), hits / sum(gold.labels == 1)
    assert score.f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_three_parts_are_validated_by_split() -> None:
    parts = {
        part: samples(n, sentences=1, classes=3, seed=n)
        for part, n in (("train", 120), ("dev", 40), ("test", 60))
    }
    score = evaluate_transfer(
        BagOfWords().encode, TransferSet("SICK-E", **parts), classifier=SklearnClassifier()
    )
    expected = split(SklearnClassifier(), **{k: arranged(v) for k, v in parts.items()})
    assert (score.accuracy, score.dev_accuracy) == (expected.test_accuracy, expected.dev_accuracy)
    assert score.protocol == "sklearn"
    assert score.f1 is None
    assert score.counts == {"train": 120, "dev": 40, "test": 60}


def test_the_order_in_a_file_changes_nothing_where_lengths_differ() -> None:
    train = [
        TransferSample((" ".join(WORDS[(row + n) % 8] for n in range(row + 1)),), row % 2)
        for row in range(60)
    ]
    mixed = random.Random(0).sample(train, len(train))
    first, second = (
        evaluate_transfer(BagOfWords().encode, TransferSet("MR", part), classifier=QUICK)
        for part in (train, mixed)
    )
    assert first == second


def test_each_distinct_sentence_is_encoded_once_and_none_without_words() -> None:
    bag = BagOfWords()
    train = samples(60, sentences=2, classes=2, seed=0) * 2 + [TransferSample(("", "a"), 0)]
    evaluate_transfer(
        bag.encode, TransferSet("MRPC", train, test=train), classifier=SklearnClassifier(folds=2)
    )
    assert sorted(bag.asked) == sorted({text or "." for x in train for text in x.sentences})


def test_an_encoder_that_gives_nan_is_named() -> None:
    train = TransferSet("MR", samples(60, sentences=1, classes=2, seed=0))
    with pytest.raises(ValueError, match="finite"):
        evaluate_transfer(lambda texts: np.full((len(texts), 3), np.nan), train, classifier=QUICK)


def test_parts_without_samples_are_refused() -> None:
    one = [TransferSample(("a",), 0)]
    with pytest.raises(ValueError, match=r"X: expected samples, received none for \['test'\]"):
        TransferSet("X", one, test=[])
    with pytest.raises(ValueError, match="X: expected test samples beside dev samples"):
        TransferSet("X", one, dev=one)
