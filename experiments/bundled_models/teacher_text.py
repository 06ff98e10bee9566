"""The sentences for a teacher, and its vectors of them."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.bundled_models.generated_text import (
    generate_captions,
    generate_questions,
    generate_spans,
)
from experiments.bundled_models.related_sentences import Length, Pair, pair_texts, pairs_by_length
from experiments.bundled_models.word_vocabulary import VocabularySettings
from experiments.corpus_sentences import nouns, sentences_by_source
from experiments.minilm import HINT_LAYER, hint_folder, minilm_teacher, write_questions
from use_st5._files import atomic_path
from use_st5.data.held_out import normalized
from use_st5.evaluation.held_out import held_out_sentences
from use_st5.tokenizers import NGramVocabulary
from use_st5.vector_store import Encode, VectorStore

if TYPE_CHECKING:
    from experiments.run import Run

MAX_WORDS = 60
# The sources that spans are cut from.
SPAN_SOURCES = (
    "inference", "definitions", "examples", "medical", "trivia", "stack_exchange", "wikitext",
    "novels", "dialogues",
)  # fmt: skip
SPAN_LIMIT = 100_000


@dataclasses.dataclass(frozen=True)
class TeacherText:
    """How many sentences of the large sources a model learns from; the other sources are whole.

    Novels and dialogues are the bulk, and far from what people compare.

    Attributes:
        novels: Sentences of the novels.
        dialogues: Turns of the dialogues.
        captions: Generated captions.
        spans: Spans of one to six words out of the other sentences.
        questions: Generated questions, with the words of the trivia.
        related: (fewest words, most words) → how many sentences of that length get an alteration,
            which the teacher is asked about, too, and a place in a group of related sentences. The
            teacher gives hints for these.
        hints: Whether it gives them for all sentences.
        teacher: Makes it: all layers, or the first `layers=`.
    """

    novels: int
    dialogues: int
    captions: int
    spans: int
    questions: int = 0
    related: Mapping[Length, int] = dataclasses.field(default_factory=dict)
    hints: bool = False
    teacher: Callable[..., Encode] = dataclasses.field(default=minilm_teacher, repr=False)

    def opened(self, run: Run, teacher: Path) -> TaughtText:
        """The sentences themselves, in a run's folder, and the teacher's vectors in another."""
        held_out = partial(held_out_sentences, run.data)
        return TaughtText(self, run.data, run.prepared, teacher, held_out)


class TaughtText:
    """Sentences, made once and kept in a folder, and the vectors that the teacher gives them.

    Args:
        settings: Which sentences.
        data: Folder of the corpora.
        prepared: Folder that keeps sentences and vocabulary.
        teacher: Folder of the teacher's vectors; those that are missing are computed.
        held_out: Gives the normalized sentences that no text may hold.
    """

    def __init__(
        self,
        settings: TeacherText,
        data: Path,
        prepared: Path,
        teacher: Path,
        held_out: Callable[[], Collection[str]],
    ) -> None:
        self.settings = settings
        self.data = data
        self.prepared = prepared
        self._teacher = teacher
        self._read_held_out = held_out

    @cached_property
    def held_out(self) -> Collection[str]:
        """The normalized sentences that no text may hold."""
        return self._read_held_out()

    @cached_property
    def sentences(self) -> list[str]:
        """The sentences, written to the folder when it has none.

        Raises:
            ValueError: The folder holds those of other settings.
        """
        path, settings = self.prepared / "sentences.txt", self.prepared / "sentences.json"
        wanted = json.dumps({"text": repr(self.settings)}, indent=1) + "\n"
        if not path.exists():
            self.prepared.mkdir(parents=True, exist_ok=True)
            settings.write_text(wanted, encoding="utf-8")
            with atomic_path(path) as temporary:
                made = teacher_sentences(self.data, self.settings, self.held_out)
                temporary.write_text("".join(f"{line}\n" for line in made), encoding="utf-8")
        found = settings.read_text(encoding="utf-8") if settings.exists() else "none\n"
        if found != wanted:
            raise ValueError(
                f"{self.prepared} was prepared with other settings. Use another folder, or remove "
                f"it.\n  the folder: {found}  wanted now: {wanted}"
            )
        with path.open(encoding="utf-8", newline="\n") as lines:
            return [line.rstrip("\n") for line in lines]

    def vocabulary(self, settings: VocabularySettings) -> NGramVocabulary:
        """The words of the sentences, counted once and kept in the folder."""
        settings.wordpieces(self.data)  # What is missing is better said now.
        sentences, path = self.sentences, self.prepared / "vocabulary.txt"
        if not path.exists():
            settings.build(self.data, sentences).save(path)
        return NGramVocabulary.load(path)

    def ask(self, words: Sequence[str] = (), *, sentences: bool = True) -> None:
        """Asks the teacher about everything that it has not been asked about yet.

        Args:
            words: Single words or pieces.
            sentences: Whether about the sentences and their alterations, too.

        Raises:
            ImportError: The teacher's libraries are missing; what there is to ask is written into
                its folder.
        """
        texts = self._texts if sentences else []
        hinted = self._hinted if sentences else []
        missing = None
        for layers, each in ((None, [*texts, *words]), (HINT_LAYER, hinted)):
            try:
                self._asked(each, layers=layers)
            except ImportError as error:
                write_questions(self._folder(layers), each)
                missing = error
        if missing:
            raise missing

    @cached_property
    def vectors(self) -> VectorStore:
        """The teacher's vectors of all sentences and alterations, read once for all tasks."""
        return self._asked(self._texts)

    def word_vectors(self, words: Sequence[str]) -> np.ndarray:
        """The teacher's vectors of single words, float16 `[words, dim]`."""
        vectors = self._asked(words)
        return np.stack([vectors[word] for word in words])

    @cached_property
    def hints(self) -> Hints:
        """What the teacher's middle layer says of the sentences that get hints."""
        vectors = self._asked(self._hinted, layers=HINT_LAYER)
        return Hints(vectors, sample=pair_texts(self.pairs) or self._hinted)

    @cached_property
    def pairs(self) -> dict[Length, list[Pair]]:
        """Sentences and their alterations by length."""
        if not self.settings.related:
            return {}
        return pairs_by_length(self.sentences, self.settings.related, self.held_out)

    @property
    def _texts(self) -> list[str]:
        return [*self.sentences, *pair_texts(self.pairs)]

    @property
    def _hinted(self) -> list[str]:
        return self._texts if self.settings.hints else pair_texts(self.pairs)

    def _asked(self, texts: Sequence[str], *, layers: int | None = None) -> VectorStore:
        """The vectors in the folder; the teacher is asked about texts that have none yet."""
        vectors = VectorStore.of_teacher(self._folder(layers))
        if any(text not in vectors for text in texts):
            vectors.extend(self.settings.teacher(layers=layers), texts, show_progress=True)
        return vectors

    def _folder(self, layers: int | None) -> Path:
        return self._teacher if layers is None else hint_folder(self._teacher)


class Hints:
    """A layer's vectors, less what all of them share.

    That is most of each in BERT's layers, and nothing to be learned.

    Args:
        vectors: The layer's.
        sample: Sentences whose mean is what all share.
    """

    def __init__(self, vectors: VectorStore, sample: Iterable[str]) -> None:
        self._vectors = vectors
        self._mean = np.mean([vectors[each] for each in sample], axis=0, dtype=np.float32)

    def __getitem__(self, sentence: str) -> np.ndarray:
        """The sentence's hint, float32 `[dim]`."""
        return self._vectors[sentence] - self._mean


def teacher_sentences(
    data: Path, text: TeacherText, held_out: Collection[str], *, seed: int = 0
) -> list[str]:
    """Distinct sentences of all corpora, and generated ones, none of them held out.

    Args:
        data: The folder of the corpora.
        text: How many of them.
        held_out: Normalized sentences that shall not be among them.
        seed: Of the samples and of the generated text.
    """
    limits = {"novels": text.novels, "dialogues": text.dialogues}
    sources = {
        name: _sample(read(), limits.get(name), seed=seed)
        for name, read in sentences_by_source(data).items()
    }
    material = [s for name in SPAN_SOURCES for s in sources[name][:SPAN_LIMIT]]
    sources["captions"] = list(generate_captions(text.captions, seed=seed))
    sources["spans"] = list(generate_spans(material, text.spans, seed=seed))
    if text.questions:
        trivia = sources["trivia"]
        sources["questions"] = list(
            generate_questions(trivia, nouns(data), text.questions, seed=seed)
        )
    every = dict.fromkeys(sentence for source in sources.values() for sentence in source)
    return [sentence for sentence in every if normalized(sentence) not in held_out]


def _sample(sentences: Iterable[str], limit: int | None, *, seed: int) -> list[str]:
    """Distinct usable sentences in random order, at most `limit`."""
    usable = list(dict.fromkeys(_usable(sentences)))
    random.Random(seed).shuffle(usable)
    return usable[:limit]


def _usable(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        words = sentence.split()
        if 0 < len(words) <= MAX_WORDS:
            yield " ".join(words)
