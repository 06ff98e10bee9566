"""An encoder that learns: what is loaded, converted, trained and exported is one object."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import keras
import numpy as np

from use_st5._model_manifest import ModelManifest
from use_st5._sentences import check_batch_size, length_sorted_batches, one_or_many
from use_st5.text.vectorizer import Vectorizer


class TrainableEncoder:
    """A text stage and a Keras model of one family.

    Args:
        model: The Keras model, built: int32 `[batch, length]` → float32 `[batch, dimension]`.
        vectorizer: Gives its ids.
        name: Its name; the export's folder where it is None.
        max_length: Tokens beyond this number are cut; None: what the model itself reads.
        card: The model card, Markdown.
        metadata: Facts for `use_st5.json`, such as `languages` and `license`.

    Attributes:
        model: As given; training changes its weights.
        vectorizer: As given.
        name: As given.
        max_length: As given.
        card: As given.
        metadata: As given.
    """

    def __init__(
        self,
        model: keras.Model,
        vectorizer: Vectorizer,
        *,
        name: str | None = None,
        max_length: int | None = None,
        card: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.vectorizer = vectorizer
        self.name = name
        self.max_length = max_length
        self.card = card
        self.metadata = dict(metadata or {})

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vectors."""
        return self.model.dimension

    def encode(
        self, sentences: str | bytes | Iterable[str | bytes], *, batch_size: int = 512
    ) -> np.ndarray:
        """Turns sentences into vectors by the weights as they are now.

        Args:
            sentences: One string, or any number of strings.
            batch_size: Sentences in a batch at most.

        Returns:
            float32 `[n, dimension]`; `[dimension]` for one string.

        Raises:
            TypeError: Something is neither a string nor bytes.
        """
        check_batch_size(batch_size)
        texts, single = one_or_many(sentences)
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for indices in length_sorted_batches(texts, sentences=batch_size):
            ids = self.vectorizer.padded([texts[i] for i in indices], self.max_length)
            vectors[indices] = keras.ops.convert_to_numpy(self._embed(ids))
        return vectors[0] if single else vectors

    def export(self, path: str | os.PathLike[str], *, storage: str = "float32") -> ModelManifest:
        """Writes the encoder as a SavedModel that takes strings; `export_saved_model` says what.

        Args:
            path: The folder to write; an older model there, and nothing else, is replaced.
            storage: Of the embedding table, "float32" or "int8".

        Returns:
            The written description.

        Raises:
            ValueError: The storage does not fit the model, or Keras runs on another backend than
                TensorFlow.
            FileExistsError: `path` holds anything but a model that use_st5 wrote.
            BlockingIOError: Another process is writing `path`.
        """
        from use_st5.export.saved_model import export_saved_model

        return export_saved_model(
            self.model,
            self.vectorizer,
            path,
            name=self.name or os.path.basename(os.path.abspath(path)),
            storage=storage,
            max_length=self.max_length,
            card=self.card,
            metadata=self.metadata,
        )

    @cached_property
    def _embed(self) -> Callable[[Any], Any]:
        return lambda ids: self.model(keras.ops.convert_to_tensor(ids), training=False)
