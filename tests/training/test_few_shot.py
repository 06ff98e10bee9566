"""Few labels: the pairs, the heads, and what a training makes of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import use_st5
from tests.toy_encoders import Toy
from tests.training.topics import ABOUT
from use_st5.encode.similarity import unit_rows
from use_st5.engines.classifier import SavedClassifier
from use_st5.training import Classifier
from use_st5.training.few_shot import fitted_head, head_weights, label_pairs, members

linear_model = pytest.importorskip("sklearn.linear_model")
C = 100.0


def pairs_of(labels: list[Any], *, texts: Any = None, **options: Any) -> list[tuple[int, int]]:
    """The pairs of rows; a pair that occurs twice, or shares no label, is an error."""
    lists = [label if isinstance(label, list) else [label] for label in labels]
    numbers = np.arange(len(labels)) if texts is None else np.array(texts)
    places = label_pairs(lists, numbers, **{"most": None, "seed": 0, **options})
    pairs = [*zip(*map(np.ndarray.tolist, places), strict=True)]
    assert len({*pairs}) == len(pairs)
    for one, other in pairs:
        assert one == other or (numbers[one] != numbers[other] and {*lists[one]} & {*lists[other]})
    return pairs


def test_two_rows_with_a_common_label_are_a_pair() -> None:
    # A row that shares its labels with no other text is paired with itself.
    assert {*pairs_of(["a", "b", "a"])} == {(0, 2), (2, 0), (1, 1)}
    assert {*pairs_of([["a", "b"], ["b", "c"], [], []])} == {(0, 1), (1, 0), (2, 2), (3, 3)}
    assert {*pairs_of(["a", "a", "b"], texts=[7, 7, 8])} == {(0, 0), (1, 1), (2, 2)}


def test_a_small_class_takes_nothing_from_others() -> None:
    partners = Counter(first for first, _ in pairs_of(["rare"] * 2 + ["b"] * 30 + ["c"] * 4))
    assert [partners[row] for row in range(36)] == [1] * 2 + [7] * 30 + [3] * 4


def test_the_number_of_pairs_and_the_memory_are_bounded() -> None:
    import tracemalloc

    few = pairs_of([f"{n % 7}" for n in range(300)], most=100)
    assert len(few) == 100 and {first % 7 for first, _ in few} == {*range(7)}
    lists = [[f"{n % 70}"] for n in range(100_000)]
    tracemalloc.start()
    first, _ = label_pairs(lists, np.arange(len(lists)), most=64_000, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(first) == 64_000 and peak < 300e6


def test_the_head_is_that_of_scikit_learn() -> None:
    vectors = unit_rows(np.random.default_rng(0).normal(size=(40, 5))).astype(np.float32)
    for names in (["a", "b"], ["a", "b", "c"]):
        labels = [names[n % 7 % len(names)] for n in range(40)]
        peer = linear_model.LogisticRegression(C=C, class_weight="balanced").fit(vectors, labels)
        weights = head_weights(
            vectors, members(labels, names), several=False, class_weight="balanced"
        )
        head = fitted_head(*weights, names, several=False)
        expected = peer.predict_proba(vectors)
        np.testing.assert_allclose(head.predict_proba(vectors), expected, atol=1e-3)
        assert [*head.predict(vectors)] == [*peer.predict(vectors)]


def test_heads_of_several_labels_are_those_of_scikit_learn() -> None:
    from sklearn.multiclass import OneVsRestClassifier

    vectors = unit_rows(np.random.default_rng(0).normal(size=(40, 5))).astype(np.float32)
    known = np.stack([vectors[:, 0] > 0, vectors[:, 1] > 0.5, vectors[:, 2] < 0], axis=1)
    peer = OneVsRestClassifier(linear_model.LogisticRegression(C=C)).fit(vectors, known.astype(int))
    weights = head_weights(vectors, known, several=True, class_weight=None)
    head = fitted_head(*weights, ["a", "b", "c"], several=True)
    np.testing.assert_allclose(head.predict_proba(vectors), peer.predict_proba(vectors), atol=1e-3)
    np.testing.assert_array_equal(head.predict(vectors), peer.predict(vectors))


@pytest.mark.parametrize("several", [False, True])
def test_a_label_of_all_rows_or_of_none_keeps_its_place(several: bool) -> None:
    vectors = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    known = members(['["all", "b"]', '["all"]'] * 3, ["all", "b", "none"])
    if not several:
        known[:, 0] = ~known[:, 1]
    head = SavedClassifier.__new__(SavedClassifier)
    weights = head_weights(vectors, known, several=several, class_weight=None)
    logits = vectors @ weights[0] + weights[1]
    head.multi_label, head.kernel, head.bias = several, *weights
    head.encoder = type("Encoder", (), {"encode": staticmethod(lambda texts: vectors)})
    rows = head.probabilities([""] * 6)
    assert (rows[:, 2] == 0).all() and 0 < rows[:, 1].min() < rows[:, 1].max() < 1
    assert np.isfinite(logits).all() and (rows[:, 0] == 1).all() == several


ROWS = [{"text": text, "label": label} for text, label in ABOUT]
LISTS = [{"text": text, "label": [label] * (n % 5 > 0)} for n, (text, label) in enumerate(ABOUT)]
FEW: dict[str, Any] = {"few_shot": True, "steps": 12, "learning_rate": 1e-3}
AGAIN = """
import json, sys
import use_st5
start, rows, texts, options = json.load(open("given.json"))
(classifier,) = use_st5.train(start, rows, "tuned", **options).classifiers
print(json.dumps(classifier.probabilities(texts).tolist()))
"""


@pytest.mark.end_to_end
@pytest.mark.process
def test_few_texts_with_labels_give_a_classifier(
    toy_use_dan: Toy, tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    start, said = str(toy_use_dan.folder), []
    texts = [row["text"] for row in ROWS[1::2]]
    trained = use_st5.train(start, ROWS[::2], tmp_path / "few", log=said.append, **FEW)
    (classifier,) = trained.classifiers
    assert (trained.best_step, trained.before) == (12, {})
    assert "192 pairs of texts" in "".join(said) and "all rows are trained on" in "".join(said)
    predicted = classifier.predict(texts)
    assert np.mean([a == row["label"] for a, row in zip(predicted, ROWS[1::2], strict=True)]) > 0.6
    later = Classifier.load(classifier.path)
    np.testing.assert_array_equal(later.probabilities(texts), classifier.probabilities(texts))
    vectors = later.encoder.encode(texts)
    np.testing.assert_allclose(
        later.head.predict_proba(vectors), later.probabilities(texts), atol=1e-5
    )
    assert [*later.head.predict(vectors)] == predicted
    # No file of the run is a pickle; the weights are arrays.
    assert {path.suffix for path in trained.run.glob("classifier*")} == {".keras", ".json"}
    # The same in another process.
    (tmp_path / "given.json").write_text(json.dumps([start, ROWS[::2], texts, FEW]))
    (tmp_path / "again.py").write_text(AGAIN)
    again = json.loads(fresh_python(tmp_path / "again.py").splitlines()[-1])
    np.testing.assert_allclose(again, classifier.probabilities(texts), atol=1e-6)


@pytest.mark.end_to_end
def test_texts_may_have_several_labels_or_none(toy_use_dan: Toy, tmp_path: Path) -> None:
    import keras

    start = str(toy_use_dan.folder)
    options = {**FEW, "evaluations": 2, "validation": LISTS[1::8]}
    trained = use_st5.train(start, LISTS[::4], tmp_path / "few", **options)
    assert {*trained.after} == {"f1", "accuracy"} and trained.after["f1"] >= trained.before["f1"]
    (classifier,) = trained.classifiers
    assert classifier.multi_label and {*classifier.accuracy} == {"validation_rows"}
    texts = [row["text"] for row in LISTS[1::8]]
    rows = classifier.probabilities(texts)
    names = [
        [name for name, p in zip(classifier.labels, row, strict=True) if p > 0.5] for row in rows
    ]
    assert classifier.predict(texts) == names and classifier.predict(texts[0]) == names[0]
    vectors = classifier.encoder.encode(texts)
    head = keras.saving.load_model(classifier.path)
    np.testing.assert_allclose(np.asarray(head(vectors)), rows, atol=1e-5)
    np.testing.assert_allclose(classifier.head.predict_proba(vectors), rows, atol=1e-5)
    with pytest.raises(ValueError, match="expected one label a text, received lists"):
        use_st5.train(start, LISTS, tmp_path / "other")
    with pytest.raises(ValueError, match="expected lists of labels as in rows, or none"):
        use_st5.train(start, LISTS, tmp_path / "other", validation=ROWS[1::8], few_shot=True)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"text": "a", "label": "x"}, {"text": "b", "label": "x"}], "different labels, found 1"),
        ([{"text": t, "label": ["x"]} for t in "ab"], "all rows have the same"),
        ([{"anchor": "a", "positive": "b"}], "expected files of text and label"),
    ],
)
def test_what_few_labels_cannot_be_learned_from(
    rows: Any, message: str, toy_use_dan: Toy, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        use_st5.train(str(toy_use_dan.folder), rows, tmp_path / "few", few_shot=True)
