"""USE-DAN gets the words and bi-grams of wider text, before it goes on with its training.

The vocabulary keeps the most frequent terms of the text. A term that was known keeps its row of the
table. The row of a new word is a linear function of the teacher's vector of that word, fitted on
the known words; the row of a new bi-gram is the mean of its words' rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from experiments.bundled_models.word_weights import FIRST_TERM_ID
from use_st5.models import USEDAN
from use_st5.tokenizers import NGramVocabulary


def wider_vocabulary(
    old: NGramVocabulary, texts: Iterable[str], *, words: int, bigrams: int
) -> NGramVocabulary:
    """The most frequent words and bi-grams of the texts, in the settings of the old vocabulary."""
    from use_st5.tokenizers import build_vocabulary  # It needs TensorFlow.

    counted = build_vocabulary(texts, show_progress=True, num_unigrams=words, num_bigrams=bigrams)
    return dataclasses.replace(old, unigrams=counted.unigrams, bigrams=counted.bigrams)


def wider_model(
    model: USEDAN, old: NGramVocabulary, new: NGramVocabulary, vectors: np.ndarray
) -> USEDAN:
    """The model with the table of the new vocabulary.

    Args:
        model: The model with the old vocabulary.
        old: Its vocabulary.
        new: The vocabulary of `wider_vocabulary`.
        vectors: The teacher's vectors of the new vocabulary's words, `[words, teacher_dim]`.
    """
    table = np.asarray(model.embedding.embeddings)
    rows = dict(zip((*old.unigrams, *old.bigrams), table[FIRST_TERM_ID:], strict=False))
    known = [word in rows for word in new.unigrams]
    inputs = np.hstack([vectors, np.ones((len(vectors), 1), vectors.dtype)])
    targets = np.stack([rows[word] for word in new.unigrams if word in rows])
    fit = np.linalg.lstsq(inputs[known], targets, rcond=1e-3)[0]
    for word, row in zip(new.unigrams, inputs @ fit, strict=True):
        rows.setdefault(word, row)
    for bigram in new.bigrams:
        if bigram not in rows:
            rows[bigram] = np.mean([rows[word] for word in bigram.split()], axis=0)
    wider = USEDAN(dataclasses.replace(model.config, num_embeddings=new.size))
    wider.build()
    terms = np.stack([rows[term] for term in (*new.unigrams, *new.bigrams)])
    whole = np.vstack([table[:FIRST_TERM_ID], terms, table[old.unigram_bucket_id :]])
    wider.set_weights([whole, *model.get_weights()[1:]])
    return wider
