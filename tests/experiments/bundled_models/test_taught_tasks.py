"""The data of a teacher's tasks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from experiments.bundled_models.related_sentences import GROUP_SIZE, pair_texts
from experiments.bundled_models.taught_tasks import Related, Taught

PAIRS = {(1, 2): [(f"short {i}", f"Altered {i}") for i in range(5)], (3, 4): [("A b c", "A c")]}


def material() -> SimpleNamespace:
    """What a `TaughtText` offers, of random vectors."""
    draw = np.random.default_rng(0)
    texts = pair_texts(PAIRS)
    rows = {text: draw.normal(size=3) for text in texts}
    return SimpleNamespace(
        sentences=texts,
        pairs=PAIRS,
        teacher=SimpleNamespace(vector=rows.__getitem__),
        vectors=lambda some: np.stack([rows[text] for text in some]),
        hint=lambda text: -rows[text],
    )


def test_groups_with_vectors_and_hints() -> None:
    text = material()
    data = Related(lengths={"few": (1, 2, 6)}, ids="token_ids", hints=True)
    ((name, (examples, columns)),) = data.sources("related", text).items()
    assert (name, data.group_size) == ("related_few", GROUP_SIZE)
    assert set(columns) == {"sentence", "teacher", "hint"}
    found = list(examples())
    assert len(found) == 5 * GROUP_SIZE
    assert [each["sentence"] for each in found[:2]] == ["short 0", "Altered 0"]
    for each in found:
        np.testing.assert_array_equal(each["teacher"], text.teacher.vector(each["sentence"]))
        np.testing.assert_array_equal(each["hint"], text.hint(each["sentence"]))


def test_sentences_go_by_their_number_of_words() -> None:
    text = material()
    data = Taught(lengths={"two": (1, 2, 6), "more": (3, 9, 9)}, ids="ids")
    sources = data.sources("teacher", text)
    found = {name: [each["sentence"] for each in make()] for name, (make, _) in sources.items()}
    assert found["teacher_more"] == ["A b c"]
    assert len(found["teacher_two"]) == 11
    assert set(sources["teacher_two"][1]) == {"sentence", "teacher"}


def test_some_sentences_are_read_in_lowercase() -> None:
    text = material()
    data = Taught(lengths={"two": (1, 2, 6)}, ids="ids", lowercase=0.5)
    (examples, _) = data.sources("teacher", text)["teacher_two"]
    first, again = ([each["sentence"] for each in examples()] for _ in range(2))
    assert first == again
    capitals = sum(each.startswith("A") for each in first)
    assert 0 < capitals < 6
