"""Sentences to the ids of XLM-RoBERTa's pieces, inside the TensorFlow graph."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar, Self

import tensorflow as tf

from use_st5.io.records import read_bounded
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer, written_assets
from use_st5.tokenizers.long_texts import as_utf8
from use_st5.tokenizers.sentencepiece_tokenizer import MODEL_LIMIT, text_tokenizer
from use_st5.tokenizers.tokenizer import HashedVocabulary

_MODEL_ASSET = "framed_sentencepiece.model"
_START, _SEPARATOR, _UNKNOWN = 1, 2, 3
# Field 1 of a piece, as protobuf writes it.
_PADDING_FIRST, _MASK = b"\n\x05<pad>", b"\n\x06<mask>"
_REMEDY = "Give the tokenizer of an XLM-RoBERTa."


class FramedSentencePieceTokenizer(FramedTokenizer):
    """Maps sentences to the ids of their SentencePiece pieces, between `<s>` and `</s>`.

    The ids are those of Hugging Face's `XLMRobertaTokenizer`, except for two: here `<pad>` has the
    id 0 and `<s>` the id 1, there it is the other way round. A special token that is spelled out in
    a text is read as ordinary characters.

    Args:
        model: A Unigram model of SentencePiece. Its first pieces are `<pad>`, `<s>`, `</s>` and
            unknown, and if it has `<mask>`, that is the last piece
            (`use_st5.convert.sentencepiece_model.read_framed_model`).

    Raises:
        ImportError: tensorflow-text is missing or does not fit the installed TensorFlow.
        ValueError: `model` is no SentencePiece model, or does not begin with padding.
    """

    kind: ClassVar[str] = "framed_sentencepieces"
    keeps_spaces: ClassVar[bool] = False
    marks_second_text: ClassVar[bool] = False

    def __init__(self, model: bytes) -> None:
        if _PADDING_FIRST not in model[: 2 * len(_PADDING_FIRST)]:
            raise ValueError(f"Expected a SentencePiece model that begins with <pad>. {_REMEDY}")
        self._tokenizer, size = text_tokenizer(model, "the bytes given")
        super().__init__(
            start=_START,
            separator=_SEPARATOR,
            unknown=_UNKNOWN,
            between=2,
            mask=size - 1 if _MASK in model else None,
            padding=1,
        )
        self.vocabulary = HashedVocabulary(size, hashlib.sha256(model).hexdigest())
        self._assets = written_assets(self, {_MODEL_ASSET: model})

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """Builds the tokenizer of an exported model from the SentencePiece model in its assets."""
        return cls(read_bounded(folder / _MODEL_ASSET, limit=MODEL_LIMIT, remedy=_REMEDY))

    def pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        """The ids of the texts without special tokens."""
        # Hugging Face's tokenizers read U+0085 as white space, SentencePiece itself does not.
        spaced = tf.strings.regex_replace(as_utf8(text), "\u0085", " ")
        pieces = self._tokenizer.tokenize(spaced)
        return pieces.with_row_splits_dtype(tf.int64)  # as in the other tokenizers
