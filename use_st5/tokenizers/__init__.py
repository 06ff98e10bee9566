"""Strings to ids inside the graph: tokens, n-grams and their vocabularies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.tokenizers.byte_pair_tokenizer import BytePairTokenizer as BytePairTokenizer
    from use_st5.tokenizers.framed_tokenizer import SpecialTokens as SpecialTokens
    from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer as NGramTokenizer
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary as NGramVocabulary
    from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer as PTBTokenizer
    from use_st5.tokenizers.sentencepiece_tokenizer import (
        FramedSentencePieceTokenizer as FramedSentencePieceTokenizer,
    )
    from use_st5.tokenizers.sentencepiece_tokenizer import (
        SentencePieceTokenizer as SentencePieceTokenizer,
    )
    from use_st5.tokenizers.token_tokenizer import PieceTokenizer as PieceTokenizer
    from use_st5.tokenizers.token_tokenizer import UnigramTokenizer as UnigramTokenizer
    from use_st5.tokenizers.tokenizer import Tokenizer as Tokenizer
    from use_st5.tokenizers.tokenizer import pad_to_bucket as pad_to_bucket
    from use_st5.tokenizers.vocabulary_builder import VocabularyBuilder as VocabularyBuilder
    from use_st5.tokenizers.vocabulary_builder import build_vocabulary as build_vocabulary
    from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer as WordPieceTokenizer

__getattr__, __dir__, __all__ = public_names(__name__)
