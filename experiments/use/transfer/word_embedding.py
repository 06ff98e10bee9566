"""Words of a task as vectors, pretrained or learned on the task."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from experiments.bundled_models.word_weights import FIRST_TERM_ID
from experiments.use.transfer.word_vectors import WordVectors
from use_st5.tokenizers import NGramVocabulary, UnigramTokenizer, build_vocabulary

# Kim 2014 (EMNLP, D14-1181) initializes learned vectors from U[-0.25, 0.25] (github.com/
# yoonkim/CNN_sentence), and those of unknown words with the variance of the pretrained ones
# (section 3.2).
_LEARNED = 0.25


@keras.saving.register_keras_serializable(package="use_st5")
class WordEmbedding(keras.layers.Layer):
    """The tokenizer of word-level models: lower-cased PTB tokens, and a vector for each.

    A saved `.keras` file holds the vocabulary and the vectors, so that the file of the pretrained
    vectors is not needed again.

    Args:
        vocabulary: The words, without bi-grams. Other words share the rows of its buckets.
        vectors: Pretrained vectors; words without one start at random. None: all words do.
        dimension: Width of the table if there are no pretrained vectors.
        trainable: Whether training changes the table. If not, Kim 2014 calls the pretrained
            vectors "static".

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, as `ids` makes them.

    Returns:
        float32 `[batch, length, dimension]`.
    """

    def __init__(
        self,
        vocabulary: NGramVocabulary,
        *,
        vectors: WordVectors | None = None,
        dimension: int = 100,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary = vocabulary
        self.dimension = vectors.dimension if vectors else dimension
        self._tokenizer = UnigramTokenizer(vocabulary)
        self._vectors = vectors
        self.supports_jit = False  # it would be compiled again for every length of a batch

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        *,
        num_words: int = 30_000,
        vectors: WordVectors | None = None,
        **options: Any,
    ) -> WordEmbedding:
        """An embedding of the most frequent words of texts.

        With pretrained vectors, the places that are left are filled with their words, in their
        order, because later texts may use them.

        Args:
            texts: The training texts.
            num_words: The largest number of words.
            vectors: Pretrained vectors.
            **options: See the class.
        """
        vocabulary = build_vocabulary(texts, num_unigrams=num_words)
        if vectors is not None:
            words = dict.fromkeys([*vocabulary.unigrams, *_tokens(vectors.words)])
            vocabulary = dataclasses.replace(vocabulary, unigrams=tuple(words)[:num_words])
        return cls(vocabulary, vectors=vectors, **options)

    def ids(self, text: Any) -> Any:
        """Strings `[batch]` → int32 `[batch, length]`, padded with 0 to the longest."""
        return self._tokenizer.padded(text)

    def build(self, _input_shape: Any = None) -> None:
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary.size, self.dimension),
            initializer=self._rows,
        )

    def call(self, ids: Any) -> Any:
        return ops.take(self.embeddings, ids, axis=0)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (*input_shape, self.dimension)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary": dataclasses.asdict(self.vocabulary),
            "dimension": self.dimension,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> WordEmbedding:
        return cls(NGramVocabulary(**config.pop("vocabulary")), **config)

    def _rows(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        if self._vectors is None:
            return keras.random.uniform(shape, -_LEARNED, _LEARNED, dtype=dtype)
        reach = float(np.sqrt(3 * self._vectors.vectors.var()))
        rows = np.array(keras.random.uniform(shape, -reach, reach))
        places = self._vectors.places(self.vocabulary.unigrams)
        terms = rows[FIRST_TERM_ID : FIRST_TERM_ID + len(places)]
        terms[places >= 0] = self._vectors.vectors[places[places >= 0]]
        return ops.convert_to_tensor(rows, dtype=dtype)


def _tokens(words: Iterable[str]) -> Iterable[str]:
    """The words as tokens: in lower case, without words that contain white space."""
    lower = (word.lower() for word in words)
    return (word for word in lower if word != "<empty>" and word.split() == [word])
