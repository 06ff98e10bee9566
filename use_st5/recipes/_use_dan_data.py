"""The data of `use_dan_en`: its vocabulary and each task's id arrays, made once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from use_st5._files import atomic_path
from use_st5.data.prepared import prepare
from use_st5.data.prepared_column import PreparedColumn
from use_st5.distillation.teacher_vectors import TeacherVectors
from use_st5.recipes._minilm_teacher import minilm_teacher
from use_st5.recipes._permissive_corpora import dialogue_pairs, inference_pairs, running_text
from use_st5.recipes._teacher_sentences import teacher_sentences
from use_st5.text.ngram_vectorizer import NGramVectorizer
from use_st5.text.ngram_vocabulary import NGramVocabulary
from use_st5.text.vocabulary_builder import build_vocabulary

TASKS = ("skip_thought", "input_response", "inference", "teacher")

NUM_UNIGRAMS, NUM_BIGRAMS, UNIGRAM_BUCKETS = 50_000, 29_000, 3_000
MAX_TOKENS = 28  # of a sentence in training; the encoder itself has no limit
DECODER_TOKENS = 20
# The teacher's sentences by length, since a batch is as wide as its longest row may be:
# (fewest words, most words, tokens that they may become).
TEACHER_LENGTHS = {"short": (1, 6, 8), "medium": (7, 13, 16), "long": (14, 27, 30)}

Arrays = dict[str, np.ndarray]
Source = tuple[Callable[[], Iterable[Any]], dict[str, PreparedColumn]]


def prepare_tasks(
    data: Path, tasks: Sequence[str], prepared: Path, teacher: Path
) -> tuple[NGramVectorizer, dict[str, dict[str, Arrays]]]:
    """Makes, or opens, the vocabulary and the arrays.

    Args:
        data: Folder of the corpora.
        tasks: Which tasks' data to make, among `TASKS`.
        prepared: Folder that keeps vocabulary and arrays.
        teacher: Folder of the teacher's vectors; those that are missing are computed.

    Returns:
        The vocabulary's vectorizer, and for each task its parts: name → arrays.
    """
    sentences = _cached_lines(prepared / "sentences.txt", lambda: teacher_sentences(data))
    vectorizer = NGramVectorizer(_vocabulary(prepared / "vocabulary.txt", sentences))
    parts = {task: _sources(task, data, sentences, teacher) for task in tasks}
    return vectorizer, {
        task: {
            name: prepare(examples(), columns, vectorizer, prepared / name, reuse=True)
            for name, (examples, columns) in sources.items()
        }
        for task, sources in parts.items()
    }


def _sources(task: str, data: Path, sentences: list[str], teacher: Path) -> dict[str, Source]:
    """The parts of a task's data: examples, and the columns that its loss reads."""
    ids = PreparedColumn("ids", max_tokens=MAX_TOKENS)
    words = PreparedColumn("unigram_ids", max_tokens=DECODER_TOKENS)
    if task == "teacher":
        vectors = cache(lambda: _complete_vectors(teacher, sentences))  # one reading for all parts
        return {
            f"teacher_{name}": _teacher_source(vectors, sentences, *lengths)
            for name, lengths in TEACHER_LENGTHS.items()
        }
    source: Source = {
        "skip_thought": (
            lambda: running_text(data),
            {"sentence": ids, "previous": words, "next": words},
        ),
        "input_response": (lambda: dialogue_pairs(data), {"input": ids, "response": ids}),
        "inference": (
            lambda: inference_pairs(data),
            {"premise": ids, "hypothesis": ids, "label": PreparedColumn("label")},
        ),
    }[task]
    return {task: source}


def _complete_vectors(folder: Path, sentences: list[str]) -> TeacherVectors:
    """The folder's vectors; the teacher is asked about sentences that have none yet."""
    vectors = TeacherVectors(folder)
    if any(sentence not in vectors for sentence in sentences):
        vectors.extend(minilm_teacher(), sentences, show_progress=True)
    return vectors


def _teacher_source(
    vectors: Callable[[], TeacherVectors],
    sentences: list[str],
    fewest: int,
    most: int,
    max_tokens: int,
) -> Source:
    """The sentences of so many words with the teacher's vectors."""

    def examples() -> Iterator[dict[str, Any]]:
        chosen = (s for s in sentences if fewest <= s.count(" ") + 1 <= most)
        yield from vectors().examples(chosen)

    ids = PreparedColumn("ids", max_tokens=max_tokens)
    return examples, {"sentence": ids, "teacher": PreparedColumn("vector")}


def _vocabulary(path: Path, sentences: Iterable[str]) -> NGramVocabulary:
    if not path.exists():
        vocabulary = build_vocabulary(
            sentences,
            show_progress=True,
            num_unigrams=NUM_UNIGRAMS,
            num_bigrams=NUM_BIGRAMS,
            unigram_buckets=UNIGRAM_BUCKETS,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        vocabulary.save(path)
    return NGramVocabulary.load(path)


def _cached_lines(path: Path, make: Callable[[], list[str]]) -> list[str]:
    if not path.exists():
        with atomic_path(path) as temporary:
            temporary.write_text("".join(f"{line}\n" for line in make()), encoding="utf-8")
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [line.rstrip("\n") for line in lines]
