"""Encoders and tasks that the tests of the evaluation suite share."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from use_st5.data.data_folder import DataSource
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


@dataclass(frozen=True)
class WordsTask(EvaluationTask):
    """The mean of all embeddings of the lines of words.txt; `seed` and `factor` show through."""

    name: str = "words"
    group: str = "toys"
    title: str = "Words"
    protocol: str = "the mean of all numbers"
    sources: tuple[DataSource, ...] = (WORDS,)
    optional_sources: tuple[DataSource, ...] = ()
    factor: float = 1.0

    def options(self) -> dict[str, Any]:
        return {"factor": self.factor}

    def run(self, context: TaskContext) -> TaskResult:
        lines = context.data.find(WORDS).read_text(encoding="utf-8").splitlines()
        mean = self.factor * float(context.embed(lines).mean())
        return TaskResult(
            "mean", {"mean": mean, "undefined": float("nan")}, {"lines": len(lines)}, {"a": (1,)}
        )
