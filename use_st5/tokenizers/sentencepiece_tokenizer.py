"""Sentences to the ids of their pieces by a SentencePiece model, inside the TensorFlow graph."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import tensorflow as tf

from use_st5._imports import require
from use_st5._records import read_bounded
from use_st5.tokenizers.framed_tokenizer import written_assets
from use_st5.tokenizers.long_texts import as_utf8, beginnings, counted
from use_st5.tokenizers.tokenizer import HashedVocabulary

T5_VOCABULARY = Path(__file__).resolve().parent / "vocabularies" / "t5.model"

# The most bytes of a SentencePiece model or of a `tokenizer.json`: four times the size of mT5's.
MODEL_LIMIT = 2**26

# The first of the 256 byte pieces. A vocabulary like mT5's spells characters that it lacks by them.
_BYTE_PIECE = b"<0x00>"

# The files of an exported model: the SentencePiece model, and the ids of its pieces if it is a part
# of a larger vocabulary.
_MODEL_ASSET, _IDS_ASSET = "sentencepiece.model", "piece_ids.txt"


class SentencePieceTokenizer(tf.Module):
    """Maps sentences to the ids of their pieces, followed by the end-of-sentence token.

    The ids are those of the `sentencepiece` package. tensorflow-text's `FastSentencepieceTokenizer`
    is used, because its older `SentencepieceTokenizer` cuts some words differently, "Hmmm" for
    example. But the fast one does not know byte pieces: it would read all unknown characters as one
    unknown token. For a vocabulary that spells unknown characters by their bytes, such as mT5's,
    the older one is used. The model becomes a constant of the graph, and an asset for
    `from_assets`; a SavedModel needs only tensorflow-text.

    A text that is too long is cut before the end-of-sentence token is added, as T5's own pipeline
    does (`append_eos_after_trim`). An empty text has one id, that of the end of the sentence.
    Invalid UTF-8 is read as U+FFFD, as Python's `bytes.decode` with errors "replace" does.

    Memory: a long text (`use_st5.tokenizers.long_texts`) is tokenized a block at a time, or only as
    far as `max_tokens` need it, if it has single spaces between ASCII characters. A part without
    such spaces takes about 40 times its size.

    Args:
        model: The bytes of the SentencePiece model, or the path of its file (`spiece.model`); by
            default T5's English one, which comes with the package.
        piece_ids: The id of each piece in the vocabulary that the model is a part of, ascending
            from 0 for padding and 1 for the end of a sentence; ids after that of the last piece are
            ignored. None if the model is a whole vocabulary.

    Attributes:
        eos_id: Id of the end-of-sentence token.
        vocabulary: Identifies the ids of this tokenizer.

    Raises:
        ImportError: tensorflow-text is missing or does not fit the installed TensorFlow.
        FileNotFoundError: There is no such file.
        ValueError: `model` is no SentencePiece model, or `piece_ids` does not fit it.
    """

    kind: ClassVar[str] = "sentencepieces"
    eos_id = 1

    def __init__(
        self,
        model: bytes | str | os.PathLike[str] = T5_VOCABULARY,
        *,
        piece_ids: Sequence[int] | None = None,
    ) -> None:
        super().__init__(name="sentencepiece_tokenizer")
        text = require("tensorflow_text", "text")
        proto = (
            model
            if isinstance(model, bytes)
            else read_bounded(model, limit=MODEL_LIMIT, remedy="Give a SentencePiece model.")
        )
        spells = _BYTE_PIECE in proto
        kind = text.SentencepieceTokenizer if spells else text.FastSentencepieceTokenizer
        try:
            self._tokenizer = kind(model=proto, add_eos=False)
            pieces = int(self._tokenizer.vocab_size())
            if not pieces:
                raise ValueError("it has no pieces")
        except Exception as error:  # the converter's own kinds differ between versions
            name = "the bytes given" if isinstance(model, bytes) else os.fspath(model)
            raise ValueError(
                f"Expected a SentencePiece model, could not read {name} as one "
                f"({type(error).__name__}: {error})."
            ) from error
        ids = range(pieces) if piece_ids is None else list(piece_ids)[:pieces]
        if len(ids) < pieces or [*ids[:2]] != [0, 1] or (np.diff(ids) <= 0).any():
            raise ValueError(
                f"piece_ids: expected an id for each of the {pieces} pieces, ascending from 0 and "
                f"1, received {len(ids)}, the first of them {[*ids[:4]]}."
            )
        digest = hashlib.sha256(proto).hexdigest()
        self.vocabulary = HashedVocabulary(size=ids[-1] + 1, sha256=digest)
        self._piece_ids = None if piece_ids is None else tf.constant(ids, tf.int32)
        listed = {} if piece_ids is None else {_IDS_ASSET: "\n".join(map(str, ids))}
        self._assets = written_assets(self, {**listed, _MODEL_ASSET: proto})

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """Builds the tokenizer of an exported model from the SentencePiece model in its assets."""
        path = folder / _IDS_ASSET
        ids = None
        if path.is_file():
            try:
                ids = [*map(int, path.read_text(encoding="utf-8").split())]
            except ValueError as error:
                raise ValueError(f"{path}: expected one number a line ({error}).") from error
        return cls(folder / _MODEL_ASSET, piece_ids=ids)

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """Returns rows as long as the longest; `max_tokens` includes the end-of-sentence token.

        Raises:
            ValueError: `max_tokens` leaves no room for a piece.
        """
        if max_tokens is not None and max_tokens < 2:
            raise ValueError(f"Expected max_tokens to be at least 2, received {max_tokens}.")
        text = as_utf8(text)
        if max_tokens is not None:
            text = beginnings(text, max_tokens)
        pieces = self._tokenizer.tokenize(text)
        if max_tokens is not None:
            pieces = pieces[:, : max_tokens - 1]
        if self._piece_ids is not None:
            pieces = tf.gather(self._piece_ids, pieces)
        ends = tf.fill([tf.shape(text)[0], 1], self.eos_id)
        return tf.concat([pieces, ends], axis=1).to_tensor()

    def token_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """The ids of `padded` in rows of one length."""
        ids = self.padded(text, max_tokens)
        return tf.pad(ids, [[0, 0], [0, max_tokens - tf.shape(ids)[1]]])

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """The number of ids of each uncut text, with the end-of-sentence token."""

        def number(text: tf.Tensor) -> tf.Tensor:
            return tf.cast(self._tokenizer.tokenize(text).row_lengths(), tf.int32)

        return counted(as_utf8(text), number) + 1
