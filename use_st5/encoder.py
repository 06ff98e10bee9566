"""Strings to vectors: the face of an exported model."""

from __future__ import annotations

import collections
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

import numpy as np
import tensorflow as tf

from use_st5 import similarity as similarities
from use_st5._bundled import SAVED_MODEL_FILE, bundled_folder, bundled_names
from use_st5._loading import check_finite_weights, load_saved_model, text_function
from use_st5._model_folder import model_folder
from use_st5._model_manifest import ModelManifest, describe_files, read_card
from use_st5._model_writer import write_again
from use_st5._other_processes import refuse_after_fork, refuse_unsaved_weights
from use_st5._progress import with_progress
from use_st5._sentence_transformers import (
    SentenceTransformersKeywords,
    SentenceTransformersNames,
    Wishes,
)
from use_st5._sentences import (
    check_batch_size,
    empty_texts,
    length_sorted_batches,
    one_or_many,
)
from use_st5._token_limit import OnTruncation, TokenLimit
from use_st5._vectors import checked_vectors

OnEmpty = Literal["encode", "zero", "raise"]

# What is in use, by folder and version; the last ones are kept though nobody holds them now.
_loaded: weakref.WeakValueDictionary[tuple[Path, int, int], SentenceEncoder] = (
    weakref.WeakValueDictionary()
)
_last: collections.deque[SentenceEncoder] = collections.deque(maxlen=4)


class SentenceEncoder(SentenceTransformersNames):
    """A sentence encoder out of a SavedModel.

    `use_st5.load` makes it. It works with every SavedModel that can be called with strings, those
    of TensorFlow Hub among them; name, card and limits are known for those of use_st5 alone.

    It can be pickled and copied, deeply too: by the bundled model's name or the folder, never by
    its weights, so that a copy is what `use_st5.load` gives for that name or folder. Weights that
    were changed in memory, and a folder whose model was replaced meanwhile, are refused.

    Args:
        folder: The SavedModel's folder.

    Attributes:
        folder: The SavedModel's folder.
        manifest: Its description `use_st5.json`; None for a SavedModel of another origin.
        model: The loaded SavedModel: callable on strings, with `variables` and `signatures`.

    Raises:
        FileNotFoundError: The folder holds no SavedModel.
        ValueError: The SavedModel is damaged, holds NaN or infinity, or does not turn strings into
            vectors.
        ImportError: It needs ops that no installed package has.
        RuntimeError: The process was forked from one that had loaded a model.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        refuse_after_fork()
        self.folder = model_folder(folder)
        self.manifest = ModelManifest.read(self.folder)
        if self.manifest is not None:
            self.manifest.check_sizes(self.folder)
            if self.manifest.texts != 1:
                raise ValueError(
                    f"{self.folder}: expected a sentence encoder, found a model that compares "
                    "pairs of texts. Load it by use_st5.CrossEncoder.load."
                )
        self.model = load_saved_model(self.folder)
        if self.manifest is not None:  # Others may have infinity for what is never read.
            check_finite_weights(self.model, self.folder)
        self._limit = TokenLimit.of_model(self.model, self.manifest)
        self._embed = text_function(self.model)
        static = self._embed.structured_outputs.shape
        self._dimension = static[1] if static.rank and static[1] else self._run(["a"]).shape[1]

    @property
    def name(self) -> str:
        """The model's name; the folder's for a SavedModel of another origin."""
        return self.manifest.name if self.manifest else self.folder.name

    @property
    def identity(self) -> str:
        """A text that changes with the content of the model's files, and with nothing else."""
        return self.manifest.model_hash if self.manifest else describe_files(self.folder)[1]

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vectors."""
        return self._dimension

    @property
    def max_length(self) -> int | None:
        """Tokens of a text beyond this number are not read; None: no limit, or none known."""
        return self._limit.max_length

    @property
    def card(self) -> str:
        """The model card, Markdown; empty where there is none."""
        return read_card(self.folder)

    def encode(
        self,
        sentences: str | bytes | Iterable[str | bytes],
        *,
        batch_size: int = 512,
        show_progress: bool | None = None,
        on_empty: OnEmpty = "encode",
        on_truncation: OnTruncation = "warn",
        **keywords: Unpack[SentenceTransformersKeywords],
    ) -> np.ndarray:
        """Turns sentences into vectors.

        The sentences are sorted by length and cut into batches, so that memory stays bounded by a
        batch (and the result) for any number of them; the result is in the order given. A text
        that alone exceeds the batch's characters travels alone. All sentences are checked before
        any is encoded. `bytes` are read as UTF-8; invalid bytes and lone surrogates count as
        U+FFFD.

        Args:
            sentences: One string, or any number of strings, zero included; string tensors and
                arrays too.
            batch_size: Sentences in a batch at most; a batch also holds at most 200 characters per
                such sentence.
            show_progress: Whether a progress bar is drawn on standard error. None: for long inputs
                in a terminal.
            on_empty: What a text of nothing but white space gives. "encode": the model's
                own vector for it, always the same; "zero": zeros; "raise": a ValueError.
            on_truncation: What texts of more than `max_length` tokens give. "warn": they are cut,
                and one warning says how many; "ignore": they are cut; "error": a ValueError.
            **keywords: Those of sentence-transformers. `prompt` is put before each text,
                `normalize_embeddings` scales each vector to length 1, `show_progress_bar` is
                `show_progress`; the others are accepted where they change nothing.

        Returns:
            float32 `[n, dimension]`; `[dimension]` for one string.

        Raises:
            TypeError: Something is neither a string nor bytes (the message names its index), or an
                argument is of a wrong type.
            ValueError: An empty text where `on_empty="raise"`, a longer one where
                `on_truncation="error"`, an argument out of range, or a keyword that asks for what
                this method does not do.
            RuntimeError: This process was forked from one that had loaded a model.
        """
        check_batch_size(batch_size)
        _check_choice("on_empty", on_empty, get_args(OnEmpty))
        _check_choice("on_truncation", on_truncation, get_args(OnTruncation))
        wishes = Wishes.of(keywords)
        texts, single = one_or_many(sentences)
        empty = [] if on_empty == "encode" else empty_texts(texts, refuse=on_empty == "raise")
        texts = wishes.before(texts)
        refuse_after_fork()
        self._limit.report(texts, on_truncation)
        vectors = np.empty((len(texts), self.dimension), np.float32)
        batches = length_sorted_batches(texts, sentences=batch_size)
        show = wishes.show_progress if show_progress is None else show_progress
        for batch in with_progress(batches, len(texts), show):
            vectors[batch] = wishes.scaled(self._run([texts[i] for i in batch]))
        vectors[empty] = 0.0
        return vectors[0] if single else vectors

    def truncated(self, sentences: str | bytes | Iterable[str | bytes]) -> np.ndarray:
        """Which sentences are longer than `max_length` tokens, so that `encode` cuts them.

        Args:
            sentences: As for `encode`.

        Returns:
            Their indices, ascending int64; none for a SavedModel of another origin, or one that an
            older version wrote, which cannot tell.
        """
        refuse_after_fork()
        return self._limit.longer(one_or_many(sentences)[0])

    def similarity(
        self,
        a: str | Sequence[str] | np.ndarray,
        b: str | Sequence[str] | np.ndarray | None = None,
        *,
        metric: Literal["cosine", "angular", "dot"] = "cosine",
    ) -> np.ndarray:
        """Compares every sentence of `a` with every sentence of `b`.

        Args:
            a: `n` sentences (one string counts as one), or their vectors `[n, dimension]` of real
                numbers, as an array or tensor of any library (`[dimension]` counts as one).
            b: `m` sentences or vectors; None compares `a` with itself.
            metric: "cosine" in −1 … 1; "angular", `1 − arccos(cosine) / π` in 0 … 1 (Eq. 1 of the
                USE paper); "dot".

        Returns:
            float32 `[n, m]`.

        Raises:
            TypeError: Something is neither sentences nor real numbers.
            ValueError: The metric is unknown, or vectors are not `[n, dimension]`, or hold NaN or
                an infinity, for which every order of similarities would be chance.
        """
        similarities.similarity_by_name(metric)
        left = self._vectors(a, "a")
        right = left if b is None else self._vectors(b, "b")
        if not len(left) or not len(right):
            return np.zeros((len(left), len(right)), np.float32)
        return np.asarray(similarities.pairwise(left, right, metric=metric))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as it is now, with its card, into a new folder.

        Weights of `self.model` that were fine-tuned are written as they are. A `SavedModelLayer`
        has weights of its own, also where it is of the same model: what was fine-tuned in a layer,
        the layer's `save` writes.

        Args:
            path: The folder to write; an older model there, and nothing else, is replaced in one
                step.

        Raises:
            FileExistsError: `path` holds anything but a model that use_st5 wrote.
            BlockingIOError: Another process is writing `path`.
        """
        write_again(self.model, self.folder, path, dimension=self.dimension)

    def __reduce__(self) -> tuple[Callable[..., SentenceEncoder], tuple[str, bool, str]]:
        refuse_unsaved_weights(self.model, self.folder)
        name = self.folder.name
        bundled = name in bundled_names() and bundled_folder(name).resolve() == self.folder
        return _loaded_again, (name if bundled else str(self.folder), bundled, self.identity)

    def _vectors(self, given: Any, argument: str) -> np.ndarray:
        """Vectors `[n, dimension]` of sentences, or of vectors that are given already."""
        if hasattr(given, "__array__"):  # tensors of every library, and pandas
            given = np.asarray(given)
        if not isinstance(given, np.ndarray) or given.dtype.kind in "OSTU":
            return np.atleast_2d(self.encode(given))
        return checked_vectors(given, self.dimension, argument)

    def _run(self, texts: list[str]) -> np.ndarray:
        """Encodes one batch in one call of the graph."""
        return self._embed(tf.constant(texts, tf.string)).numpy()


def load(name_or_folder: str | os.PathLike[str]) -> SentenceEncoder:
    """Loads a sentence encoder: a bundled one by its name, any other from its folder.

    A model is loaded once in a process: a second call gives the same object, unless the folder's
    model was replaced meanwhile. Memory holds what is in use and the last four besides. For an
    object of one's own use `SentenceEncoder(folder)`.

    Args:
        name_or_folder: A bundled model's name, such as "use_dan_en", or the folder of a SavedModel
            that turns strings into vectors, by use_st5 or another.

    Raises:
        FileNotFoundError: There is no such name or folder, or the folder holds no SavedModel.
        ValueError: The SavedModel is damaged, or does not turn strings into vectors.
        ImportError: It needs ops that no installed package has.
        RuntimeError: The process was forked from one that had loaded a model.

    Example:
        >>> encoder = load("use_dan_en")
        >>> encoder.encode(["How old are you?", "What is your age?"]).shape
        (2, 512)
    """
    refuse_after_fork()
    folder = model_folder(name_or_folder)
    status = (folder / SAVED_MODEL_FILE).stat()
    version = (folder, status.st_mtime_ns, status.st_ino)
    encoder = _loaded.get(version)
    if encoder is None:
        encoder = _loaded[version] = SentenceEncoder(folder)
    if encoder in _last:
        _last.remove(encoder)
    _last.append(encoder)
    return encoder


def _loaded_again(place: str, bundled: bool, identity: str) -> SentenceEncoder:
    """The encoder that was pickled, whose model must still be the same."""
    encoder = load(bundled_folder(place) if bundled else place)
    if encoder.identity != identity:
        raise ValueError(
            f"Expected the model in {encoder.folder} with the hash {identity[:12]}, which was "
            f"pickled, found {encoder.identity[:12]}: it was replaced meanwhile and gives other "
            "vectors. Put the former model back, or pickle the encoder anew."
        )
    return encoder


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        expected = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"Unknown {name}: {value!r}. Expected one of {expected}.")
