"""Transfer models of the USE paper: a task's classes from sentence vectors, words, or both.

Universal Sentence Encoder (arXiv 1803.11175), section "Transfer Tasks" with its baselines and
combined models.

Example:
    >>> words = WordCNN(WordEmbedding.from_texts(texts))
    >>> model = TransferModel(2, sentence=SavedModelLayer("use_dan_en"), words=words)
    >>> model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    >>> model.fit(tf.constant(texts), labels, epochs=5)
    >>> model.predict(tf.constant(["A delight from start to finish."]))
    array([[0.03, 0.97]], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.models.transfer.transfer_model import TransferModel as TransferModel
    from use_st5.models.transfer.word_cnn import WordCNN as WordCNN
    from use_st5.models.transfer.word_dan import WordDAN as WordDAN
    from use_st5.models.transfer.word_embedding import WordEmbedding as WordEmbedding

__getattr__, __dir__, __all__ = public_names(__name__)
