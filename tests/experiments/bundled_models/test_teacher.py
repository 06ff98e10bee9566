"""The teachers' vectors, the texts they read, and the tasks that learn from them."""

from __future__ import annotations

import json
import lzma
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.bundled_models.related_sentences import GROUP_SIZE, pair_texts
from experiments.bundled_models.search_text import balanced, search_texts
from experiments.bundled_models.teacher import (
    HINT_DIM,
    MPNET_DIM,
    TEACHER_DIM,
    Teacher,
)
from experiments.bundled_models.teacher_tasks import Related, unseen_scored_pairs
from experiments.bundled_models.teacher_text import (
    TeacherText,
    TextWithVectors,
    teacher_sentences,
)
from experiments.held_out import held_out_sentences
from tests.experiments.bundled_models.small_trainings import TEXT, fake_teacher
from use_st5.data.text_hashes import normalized


def test_what_is_missing_is_asked_once_and_answered(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"of 2 texts, found no vectors of 2\..*--mpnet"):
        Teacher(tmp_path).check(["a", "b", "a"])
    Teacher(tmp_path).answer(fake_teacher)
    teacher = Teacher(tmp_path)
    teacher.check(["b", "a"])
    with pytest.raises(FileNotFoundError, match=r"of 3 texts, found no vectors of 1\."):
        teacher.check(["b", "c", "a"])
    assert (tmp_path / "questions.txt").read_text() == "c\n"


def test_vectors_and_hints_are_parts_of_a_row(tmp_path: Path) -> None:
    row = np.arange(TEACHER_DIM + HINT_DIM, dtype=np.float32) / 100
    teacher = Teacher(tmp_path)
    with pytest.raises(FileNotFoundError):
        teacher.check(["a"])
    teacher.answer(lambda texts: np.tile(row, (len(texts), 1)))
    for _ in range(2):  # Reading does not change the store.
        vectors, hints = teacher.answers(teacher.places(["a"]))
        np.testing.assert_allclose(vectors[0, :MPNET_DIM], row[:MPNET_DIM], atol=0.01)
        minilm = 0.7 * row[MPNET_DIM:TEACHER_DIM]
        np.testing.assert_allclose(vectors[0, MPNET_DIM:], minilm, atol=0.01)
        np.testing.assert_allclose(hints[0], row[TEACHER_DIM:], atol=0.01)


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


def opened(
    corpora: Path, folder: Path, text: TeacherText = TEXT, held_out: Collection[str] = ()
) -> TextWithVectors:
    teacher = Teacher(folder / "teacher")
    return TextWithVectors(text, corpora, folder / "prepared", teacher, lambda: held_out)


def flat(sources: dict[str, list[str]]) -> list[str]:
    return [text for texts in sources.values() for text in texts]


def test_distinct_and_repeatable(corpora: Path) -> None:
    sources = teacher_sentences(corpora, TEXT, ())
    assert list(sources) == [*TEXT.sources, "spans"]
    sentences = flat(sources)
    assert len(sentences) == len(set(sentences))
    assert sources == teacher_sentences(corpora, TEXT, ())
    assert sources["examples"] == ["The cat eats."]
    assert len(sources["novels"]) == 10
    assert all(sentence == " ".join(sentence.split()) for sentence in sentences)


def test_sts_sentences_are_held_out_however_they_are_written(corpora: Path) -> None:
    held_out = held_out_sentences(corpora)
    sentences = flat(teacher_sentences(corpora, TEXT, held_out))
    assert "The cat eats." in sentences
    assert not held_out & {normalized(sentence) for sentence in sentences}
    assert "The cat eats." not in flat(teacher_sentences(corpora, TEXT, {"the cat eats"}))


def test_all_vectors_must_be_there(corpora: Path, tmp_path: Path) -> None:
    text = opened(corpora, tmp_path)
    asked = {*text.sentences, *(second for pairs in text.pairs.values() for _, second in pairs)}
    with pytest.raises(FileNotFoundError, match=rf"of {len(asked) + 1} texts"):
        text.check(["word"])
    with pytest.raises(FileNotFoundError, match="of 1 texts"):
        text.check(["word"], sentences=False)
    with pytest.raises(FileNotFoundError):
        text.check(["word"])
    Teacher(tmp_path / "teacher").answer(fake_teacher)
    text = opened(corpora, tmp_path)
    text.check(["word"])
    some = text.sentences[:20]
    rows = fake_teacher(some)
    np.testing.assert_allclose(text.vectors(some)[:, :5], rows[:, :5], rtol=0.01, atol=0.01)
    numbers = np.array([text.numbers[each] for each in some])
    found = text.answers(numbers, hints=True)
    np.testing.assert_array_equal(found["teacher"], text.vectors(some))
    assert set(text.answers(numbers, hints=False)) == {"teacher"}
    # The mean is subtracted from all hints, which changes no difference between two hints.
    hints, layer = found["hint"], rows[:, TEACHER_DIM:]
    assert hints.shape == (20, HINT_DIM)
    np.testing.assert_allclose(hints - hints[0], layer - layer[0], atol=0.1)
    every = text.answers(np.arange(len(asked)), hints=True)["hint"]
    assert np.abs(every.mean(axis=0)).max() < 0.1


def test_every_beginning_holds_the_square_root_of_each_group() -> None:
    groups = {"large": [f"l{n}" for n in range(10_000)], "small": [f"s{n}" for n in range(100)]}
    order = balanced(groups)
    assert sorted(order) == sorted(groups["large"] + groups["small"])
    # A tenth of each group: √10,000 : √100 = 10 : 1 until the small one ends after 1,100 texts.
    assert sum(text.startswith("s") for text in order[:110]) == pytest.approx(10, abs=1)
    assert sum(text.startswith("s") for text in order[:1_100]) == pytest.approx(100, abs=1)


def test_texts_of_a_pair_follow_each_other_and_each_text_comes_once(tmp_path: Path) -> None:
    passages, pairs = (tmp_path / "english_search" / name for name in ("passages", "pairs"))
    passages.mkdir(parents=True)
    pairs.mkdir()
    rows = [{"text": "One  passage.", "domain": "law"}, {"text": "Another.", "domain": "arts"}]
    with lzma.open(passages / "a.jsonl.xz", "wt", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    with lzma.open(pairs / "b.tsv.xz", "wt", encoding="utf-8") as file:
        file.write("What is it?\tA third.\nWhat else?\tAnother.\n")
    texts = search_texts(tmp_path)
    assert sorted(texts) == ["A third.", "Another.", "One passage.", "What else?", "What is it?"]
    assert texts.index("A third.") == texts.index("What is it?") + 1


def test_scored_pairs_of_other_sts_sets_are_not_trained_on(tmp_path: Path) -> None:
    row = "genre\tfile\t2012\t0\t4\t{}\t{}\n"
    (tmp_path / "stsbenchmark").mkdir()
    (tmp_path / "stsbenchmark/sts-dev.csv").write_text(row.format("A man runs.", "He walks."))
    train = row.format("A dog eats.", "a man runs") + row.format("A cat sits.", "It sits.")
    (tmp_path / "stsbenchmark/sts-train.csv").write_text(train)
    pairs = [*unseen_scored_pairs(tmp_path)]
    assert pairs == [{"first": "A cat sits.", "second": "It sits.", "score": 0.8}]
