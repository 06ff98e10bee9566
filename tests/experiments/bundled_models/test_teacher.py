"""The teachers: questions, answers, and vectors compared with those of transformers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from experiments.bundled_models.teacher import (
    HINT_DIM,
    MPNET_DIM,
    TEACHER_DIM,
    Teacher,
    both_teachers,
)
from tests.experiments.bundled_models.small_trainings import fake_teacher


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


@pytest.mark.end_to_end
def test_the_vectors_of_transformers_in_float32() -> None:
    """Uses the real weights, in folders that environment variables name."""
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    transformers = pytest.importorskip("transformers")
    names = "USE_ST5_MPNET", "USE_ST5_MINILM"
    if not all(name in os.environ for name in names):
        pytest.skip(f"{' and '.join(names)} do not name the teachers' folders")
    folders = [Path(os.environ[name]) for name in names]
    texts = ["How old are you?", "", "A dog bit the man.", "naïve café 😀", "word " * 200]
    rows = both_teachers(*folders)(texts)
    parts = rows[:, :MPNET_DIM], rows[:, MPNET_DIM:TEACHER_DIM]
    for folder, part in zip(folders, parts, strict=True):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.AutoModel.from_pretrained(folder).eval()
        for text, vector in zip(texts, part, strict=True):
            ids = tokenizer([text], truncation=True, max_length=96, return_tensors="pt")
            with torch.inference_mode():
                mean = model(**ids).last_hidden_state.mean(1)[0].numpy()
            assert vector @ mean / np.linalg.norm(mean) > 0.999
