"""The data of a teacher's tasks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from experiments.bundled_models.related_sentences import GROUP_SIZE, pair_texts
from experiments.bundled_models.teacher_tasks import Related, TeacherSentences

PAIRS = {(1, 2): [(f"short {i}", f"Altered {i}") for i in range(5)], (3, 4): [("A b c", "A c")]}


def material() -> SimpleNamespace:
    """A stand-in for `TextWithVectors` with random vectors."""
    texts = pair_texts(PAIRS)
    rows = np.random.default_rng(0).normal(size=(len(texts), 3)).astype(np.float32)

    def answers(numbers: np.ndarray, *, hints: bool) -> dict[str, np.ndarray]:
        return {"teacher": rows[numbers]} | ({"hint": -rows[numbers]} if hints else {})

    return SimpleNamespace(
        sentences=texts,
        pairs=PAIRS,
        numbers={text: number for number, text in enumerate(texts)},
        answers=answers,
    )


def test_related_sentences_come_in_groups_with_vectors_and_hints() -> None:
    text = material()
    data = Related(lengths={"few": (1, 2, 6)}, ids="token_ids", hints=True)
    ((name, (examples, columns)),) = data.sources("related", text).items()
    assert name == "related_few"
    assert set(columns) == {"sentence", "number"}
    found = list(examples())
    assert [each["sentence"] for each in found[:2]] == ["short 0", "Altered 0"]
    numbers = np.array([each["number"] for each in found], np.int32)
    ids = np.stack([numbers + 1, numbers], axis=1)
    batches = data.array_data({"sentence": ids, "number": numbers}, text)
    assert (len(batches), batches.group_size) == (5 * GROUP_SIZE, GROUP_SIZE)
    batch = batches.batch(0, 2 * GROUP_SIZE, seed=1)
    np.testing.assert_array_equal(batch["sentence"][:, 1], batch["number"])
    vectors = text.answers(batch["number"], hints=True)
    np.testing.assert_array_equal(batch["teacher"], vectors["teacher"])
    np.testing.assert_array_equal(batch["hint"], vectors["hint"])
    first, altered, *near = batch["number"][:GROUP_SIZE]
    assert (first % 2, altered) == (0, first + 1)
    assert all(other % 2 == 0 and other != first for other in near)


def test_the_loss_finds_the_types_and_widths_of_a_batch() -> None:
    text = material()
    ids, numbers = np.ones((4, 6), np.int32), np.arange(4, dtype=np.int32)
    data = TeacherSentences(lengths={}, ids="ids").array_data(
        {"sentence": ids, "number": numbers}, text
    )
    batch = data.batch(0, 2, seed=0)
    assert set(batch) == set(data.arrays) == {"sentence", "number", "teacher"}
    for name, array in batch.items():
        assert array.dtype == data.arrays[name].dtype
        assert array.shape[1:] == data.row_shape(name)
    other = TeacherSentences(lengths={}, ids="ids").array_data(
        {"sentence": ids, "number": numbers[::-1]}, text
    )
    names = ["sentence", "teacher"]
    assert data.fingerprint(names) != other.fingerprint(names)


def test_sentences_go_by_their_number_of_words() -> None:
    text = material()
    data = TeacherSentences(lengths={"two": (1, 2, 6), "more": (3, 9, 9)}, ids="ids")
    sources = data.sources("teacher", text)
    found = {name: [each["sentence"] for each in make()] for name, (make, _) in sources.items()}
    assert found["teacher_more"] == ["A b c"]
    assert len(found["teacher_two"]) == 11


def test_some_sentences_are_read_in_lowercase() -> None:
    text = material()
    data = TeacherSentences(lengths={"two": (1, 2, 6)}, ids="ids", lowercase=0.5)
    (examples, _) = data.sources("teacher", text)["teacher_two"]
    first, again = ([each["sentence"] for each in examples()] for _ in range(2))
    assert first == again
    capitals = sum(each.startswith("A") for each in first)
    assert 0 < capitals < 6
