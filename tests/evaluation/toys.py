"""Encoders and tasks that the tests of the evaluation suite share."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

WORDS = DataSource("words", ("words.txt",), "nowhere: a test makes it")


class BagOfWords:
    """Hashed counts of words: the more words two texts share, the higher their cosine."""

    name = "bag_of_words"
    identity = "bag of words, 64 buckets"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, sentences: list[str]) -> np.ndarray:
        self.asked += sentences
        vectors = np.full((len(sentences), 64), 1e-3, np.float32)
        for row, sentence in enumerate(sentences):
            for word in sentence.lower().split():
                vectors[row, zlib.crc32(word.encode()) % 64] += 1
        return vectors


def letter_context(folder: Path, *, seed: int = 1111) -> TaskContext:
    """A context whose embeddings are the counts of the letters x and y, 64 times each.

    Args:
        folder: The data folder.
        seed: The seed of the run.
    """

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([[text.count(letter) for letter in "xy" * 64] for text in texts])

    return TaskContext(VectorCache(encode), DataFolder(folder), seed=seed)


def words_task(name: str = "words", *, factor: float = 1.0, **fields: Any) -> EvaluationTask:
    """A task with the mean of all numbers in the embeddings of words.txt, times `factor`.

    Args:
        name: The name of the task.
        factor: The factor of the mean.
        fields: Fields of `EvaluationTask`, in place of the toy's own.
    """

    def read(data: DataFolder) -> list[str]:
        return data.find(WORDS).read_text(encoding="utf-8").splitlines()

    def score(context: TaskContext, lines: list[str]) -> TaskResult:
        mean = factor * float(context.embed(lines).mean())
        scores = {"mean": mean, "undefined": float("nan")}
        return TaskResult("mean", scores, {"lines": len(lines)}, {"a": (1,)})

    own: dict[str, Any] = {"group": "toys", "title": "Words", "protocol": "the mean of all numbers"}
    own |= {"score": score, "reader": read, "sources": (WORDS,), "options": {"factor": factor}}
    return EvaluationTask(name, **{**own, **fields})
