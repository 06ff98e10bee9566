"""Strings to ids inside the graph: tokens, n-grams and their vocabularies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.text.byte_pair_vectorizer import BytePairVectorizer as BytePairVectorizer
    from use_st5.text.length_buckets import pad_to_bucket as pad_to_bucket
    from use_st5.text.ngram_vectorizer import NGramVectorizer as NGramVectorizer
    from use_st5.text.ngram_vocabulary import NGramVocabulary as NGramVocabulary
    from use_st5.text.piece_vectorizer import PieceVectorizer as PieceVectorizer
    from use_st5.text.ptb_tokenizer import PTBTokenizer as PTBTokenizer
    from use_st5.text.sentencepiece_vectorizer import (
        SentencePieceVectorizer as SentencePieceVectorizer,
    )
    from use_st5.text.token_vectorizer import UnigramVectorizer as UnigramVectorizer
    from use_st5.text.vectorizer import Vectorizer as Vectorizer
    from use_st5.text.vocabulary_builder import VocabularyBuilder as VocabularyBuilder
    from use_st5.text.vocabulary_builder import build_vocabulary as build_vocabulary
    from use_st5.text.word_vectors import WordVectors as WordVectors
    from use_st5.text.wordpiece_vectorizer import WordPieceVectorizer as WordPieceVectorizer

__getattr__, __dir__, __all__ = public_names(__name__)
