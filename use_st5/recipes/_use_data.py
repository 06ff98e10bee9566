"""The data of encoders that a teacher and tasks train: vocabulary and each task's id arrays."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from use_st5._files import atomic_path
from use_st5.column_kinds import KindName
from use_st5.data.prepared import prepare
from use_st5.data.prepared_column import PreparedColumn
from use_st5.recipes._hints import Hints
from use_st5.recipes._minilm_teacher import HINT_LAYER, hint_folder, minilm_teacher
from use_st5.recipes._permissive_corpora import dialogue_pairs, inference_pairs, running_text
from use_st5.recipes._related_data import RelatedData
from use_st5.recipes._related_sentences import Length, Pair, pair_texts, pairs_by_length
from use_st5.recipes._sentence_t5_data import Texts, nli_triplets, not_held_out, trivia_answers
from use_st5.recipes._teacher_sentences import (
    TeacherText,
    held_out_sentences,
    teacher_sentences,
)
from use_st5.recipes._use_vocabulary import VocabularySettings
from use_st5.text.ngram_vocabulary import NGramVocabulary
from use_st5.text.vectorizer import Vectorizer
from use_st5.vector_store import Encode, VectorStore

# Those of the DAN; `UseData` knows "related", "answers" and "triplets", too.
TASKS = ("skip_thought", "input_response", "inference", "teacher")
DECODER_TOKENS = 20

Arrays = dict[str, np.ndarray]
Source = tuple[Callable[[], Iterable[Any]], dict[str, PreparedColumn]]


@dataclasses.dataclass(frozen=True)
class DataSettings:
    """What a recipe's text becomes.

    Attributes:
        text: How many sentences the teacher is asked about.
        vectorizer: Makes the model's text stage from the vocabulary, or from nothing where it
            brings its own.
        vocabulary: What is counted in the text; None: the vectorizer brings its own.
        ids: How a sentence becomes the encoder's ids, "ids" or "token_ids".
        max_tokens: Tokens of a sentence of the other tasks, in training alone.
        teacher_lengths: The teacher's sentences by length, since a batch is as wide as its longest
            row may be: name → (fewest words, most words, tokens that they may become).
        lowercase: Share of the teacher's sentences that the student reads in lowercase; the teacher
            does not tell cases apart.
    """

    text: TeacherText
    vectorizer: Callable[..., Vectorizer]
    vocabulary: VocabularySettings | None
    ids: KindName
    max_tokens: int
    teacher_lengths: Mapping[str, tuple[int, int, int]]
    lowercase: float = 0.0


class UseData:
    """Vocabulary and arrays of one recipe, made once and kept in a folder.

    Args:
        data: Folder of the corpora.
        settings: What the text becomes.
        prepared: Folder that keeps vocabulary and arrays.
        teacher: Folder of the teacher's vectors; those that are missing are computed.
    """

    def __init__(self, data: Path, settings: DataSettings, prepared: Path, teacher: Path) -> None:
        self.data = data
        self.settings = settings
        self.prepared = prepared
        self._teacher = teacher
        if settings.vocabulary:
            settings.vocabulary.wordpieces(data)  # What is missing is better said now.
        self.sentences = _kept_sentences(prepared, data, settings.text)
        own = [self._vocabulary(settings.vocabulary)] if settings.vocabulary else []
        self.vectorizer = settings.vectorizer(*own)

    @cached_property
    def vectors(self) -> VectorStore:
        """The teacher's vectors of all sentences, read once for all parts."""
        return self.ask_teacher(self.sentences)

    def ask_teacher(self, sentences: Sequence[str]) -> VectorStore:
        """The teacher's vectors; it is asked about sentences that have none yet."""
        return _asked(minilm_teacher, self._teacher, sentences)

    def word_vectors(self, words: Sequence[str]) -> np.ndarray:
        """The teacher's vectors of single words, float16 `[words, dim]`."""
        vectors = self.ask_teacher(words)
        return np.stack([vectors[word] for word in words])

    def parts(self, task: str) -> dict[str, Arrays]:
        """The arrays of a task by the names of its parts."""
        return {
            name: prepare(examples(), columns, self.vectorizer, self.prepared / name, reuse=True)
            for name, (examples, columns) in self._sources(task).items()
        }

    def _sources(self, task: str) -> dict[str, Source]:
        """The parts of a task's data: examples, and the columns that its loss reads."""
        if task == "teacher":
            return {
                f"teacher_{name}": self._teacher_source(*lengths)
                for name, lengths in self.settings.teacher_lengths.items()
            }
        if task == "related":
            return {
                f"related_{name}": self._related_source(*lengths)
                for name, lengths in self.settings.teacher_lengths.items()
                if lengths[:2] in self.settings.text.related
            }
        ids = PreparedColumn(self.settings.ids, max_tokens=self.settings.max_tokens)
        words = PreparedColumn("token_ids", max_tokens=DECODER_TOKENS)
        source: Source = {
            "skip_thought": (
                lambda: running_text(self.data),
                {"sentence": ids, "previous": words, "next": words},
            ),
            "input_response": (
                lambda: dialogue_pairs(self.data),
                {"input": ids, "response": ids},
            ),
            "inference": (
                lambda: inference_pairs(self.data),
                {"premise": ids, "hypothesis": ids, "label": PreparedColumn("label")},
            ),
            "answers": self._triplet_source(trivia_answers),
            "triplets": self._triplet_source(nli_triplets),
        }[task]
        return {task: source}

    def _teacher_source(self, fewest: int, most: int, max_tokens: int) -> Source:
        """The sentences of so many words with the teacher's vectors, and hints if there are."""

        def examples() -> Iterator[dict[str, Any]]:
            chosen = (s for s in self.sentences if fewest <= s.count(" ") + 1 <= most)
            found = ({"sentence": each, "teacher": self.vectors[each]} for each in chosen)
            if self.settings.text.hints:
                found = ({**each, "hint": self._hints[each["sentence"]]} for each in found)
            yield from self._some_in_lowercase(found)

        vector = PreparedColumn("vector")
        ids = PreparedColumn(self.settings.ids, max_tokens=max_tokens)
        hint = {"hint": vector} if self.settings.text.hints else {}
        return examples, {"sentence": ids, "teacher": vector, **hint}

    def _related_source(self, fewest: int, most: int, max_tokens: int) -> Source:
        """Groups of related sentences, each with the teacher's vector and hint."""
        vector = PreparedColumn("vector")
        ids = PreparedColumn(self.settings.ids, max_tokens=max_tokens)
        columns = {"sentence": ids, "teacher": vector, "hint": vector}
        return lambda: self._some_in_lowercase(self._related.examples((fewest, most))), columns

    def _triplet_source(self, examples: Callable[[Path], Iterable[Texts]]) -> Source:
        """Anchors with a positive and a hard negative each, none of them from an STS set."""
        names = ("anchor", "positive", "negative")
        ids = PreparedColumn(self.settings.ids, max_tokens=self.settings.max_tokens)

        def rows() -> Iterator[dict[str, str]]:
            kept = not_held_out(examples(self.data), held_out_sentences(self.data))
            yield from (dict(zip(names, texts, strict=True)) for texts in kept)

        return rows, dict.fromkeys(names, ids)

    def _some_in_lowercase(self, examples: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        draw = random.Random(0)
        for each in examples:
            if draw.random() < self.settings.lowercase:
                each = {**each, "sentence": each["sentence"].lower()}
            yield each

    @cached_property
    def _related(self) -> RelatedData:
        return RelatedData(self._pairs, self.ask_teacher(pair_texts(self._pairs)), self._hints)

    @cached_property
    def _hints(self) -> Hints:
        related = pair_texts(self._pairs)
        others = self.sentences if self.settings.text.hints else []
        early = partial(minilm_teacher, layers=HINT_LAYER)
        vectors = _asked(early, hint_folder(self._teacher), [*related, *others])
        return Hints(vectors, sample=related or others)

    @cached_property
    def _pairs(self) -> dict[Length, list[Pair]]:
        return pairs_by_length(self.data, self.sentences, self.settings.text.related)

    def _vocabulary(self, settings: VocabularySettings) -> NGramVocabulary:
        path = self.prepared / "vocabulary.txt"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            settings.build(self.data, self.sentences).save(path)
        return NGramVocabulary.load(path)


def check_tasks(tasks: Sequence[str], known: Collection[str]) -> None:
    """Checks the names of tasks before any work.

    Raises:
        ValueError: One is unknown.
    """
    if unknown := set(tasks) - set(known):
        raise ValueError(f"Expected tasks among {[*known]}. Received: {sorted(unknown)}")


def _asked(teacher: Callable[[], Encode], folder: Path, sentences: Sequence[str]) -> VectorStore:
    """The vectors in a folder; a teacher is asked about sentences that have none yet."""
    vectors = VectorStore.of_teacher(folder)
    if any(sentence not in vectors for sentence in sentences):
        vectors.extend(teacher(), sentences, show_progress=True)
    return vectors


def _kept_sentences(folder: Path, data: Path, text: TeacherText) -> list[str]:
    """The teacher's sentences, written to the folder when it has none.

    Raises:
        ValueError: The folder holds those of other settings.
    """
    path, settings = folder / "sentences.txt", folder / "sentences.json"
    wanted = json.dumps({"text": repr(text)}, indent=1) + "\n"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        settings.write_text(wanted, encoding="utf-8")
        with atomic_path(path) as temporary:
            lines = (f"{line}\n" for line in teacher_sentences(data, text))
            temporary.write_text("".join(lines), encoding="utf-8")
    found = settings.read_text(encoding="utf-8") if settings.exists() else "none\n"
    if found != wanted:
        raise ValueError(
            f"{folder} was prepared with other settings. Use another folder, or remove it.\n"
            f"  the folder: {found}  wanted now: {wanted}"
        )
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [line.rstrip("\n") for line in lines]
