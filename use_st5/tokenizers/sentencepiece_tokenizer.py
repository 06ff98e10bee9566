"""Sentences to the ids of their pieces by a SentencePiece model, inside the TensorFlow graph."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from use_st5._imports import require
from use_st5.io.records import named_errors, read_bounded
from use_st5.tokenizers.framed_tokenizer import FILE_LIMIT, FramedTokenizer, written_assets
from use_st5.tokenizers.long_texts import as_utf8, beginnings, summed
from use_st5.tokenizers.tokenizer import HashedVocabulary

T5_VOCABULARY = Path(__file__).resolve().parent / "vocabularies" / "t5.model"

# The first of the 256 byte pieces. A vocabulary like mT5's spells characters that it lacks by them.
_BYTE_PIECE = b"<0x00>"

# The most pieces of a model, and the most bytes of one: eight and twenty times those of mT5. The
# converter of tensorflow-text crashes at a piece of a megabyte.
_MOST_PIECES, _PIECE_BYTES = 2**21, 1000
_MOST_SCORE = 1e6
# The type of a model, and of its unknown piece, in sentencepiece_model.proto.
UNIGRAM, _UNKNOWN_TYPE = 1, 2
_BLOCK = 4 * 256  # bytes

_PACKAGE = "use_st5.sentencepiece"
_Field = descriptor_pb2.FieldDescriptorProto
# The fields in sentencepiece_model.proto: name → number and type. An enum is written as an int32.
_MESSAGES: dict[str, dict[str, tuple[int, Any]]] = {
    "SentencePiece": {
        "piece": (1, _Field.TYPE_STRING),
        "score": (2, _Field.TYPE_FLOAT),
        "type": (3, _Field.TYPE_INT32),
    },
    "TrainerSpec": {
        "model_type": (3, _Field.TYPE_INT32),
        "vocab_size": (4, _Field.TYPE_INT32),
        "byte_fallback": (35, _Field.TYPE_BOOL),
        "unk_id": (40, _Field.TYPE_INT32),
        "bos_id": (41, _Field.TYPE_INT32),
        "eos_id": (42, _Field.TYPE_INT32),
        "pad_id": (43, _Field.TYPE_INT32),
        "eos_piece": (47, _Field.TYPE_STRING),
        "pad_piece": (48, _Field.TYPE_STRING),
    },
    "NormalizerSpec": {
        "name": (1, _Field.TYPE_STRING),
        "precompiled_charsmap": (2, _Field.TYPE_BYTES),
    },
    "ModelProto": {
        "pieces": (1, "SentencePiece"),
        "trainer_spec": (2, "TrainerSpec"),
        "normalizer_spec": (3, "NormalizerSpec"),
    },
}


def model_proto() -> Any:
    """An empty `ModelProto`."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE)
    for message, fields in _MESSAGES.items():
        message_type = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            is_repeated = name == "pieces"
            label = _Field.LABEL_REPEATED if is_repeated else _Field.LABEL_OPTIONAL
            field = message_type.field.add(name=name, number=number, label=label)
            if isinstance(kind, str):
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.ModelProto")
    return message_factory.GetMessageClass(descriptor)()


def checked_proto(content: bytes) -> Any:
    """The `ModelProto` in some bytes, with which tensorflow-text does not crash."""
    proto = model_proto()
    try:
        proto.ParseFromString(content)
        pieces = [each.piece for each in proto.pieces]
    except (DecodeError, ValueError) as error:
        raise ValueError(f"expected a SentencePiece model ({error!s:.200}).") from error
    spec = proto.trainer_spec
    model_type, unknown = spec.model_type or UNIGRAM, spec.unk_id
    faults = {
        f"type {model_type}, not {UNIGRAM} (Unigram)": model_type != UNIGRAM,
        f"{len(pieces):,} pieces, not 1 to {_MOST_PIECES:,}": not 0 < len(pieces) <= _MOST_PIECES,
        f"pieces that are empty or longer than {_PIECE_BYTES:,} bytes": not all(
            0 < len(piece.encode()) <= _PIECE_BYTES for piece in pieces
        ),
        "a piece twice": len({*pieces}) < len(pieces),
        f"scores beyond {_MOST_SCORE:,.0f}": not all(
            abs(each.score) <= _MOST_SCORE for each in proto.pieces
        ),
        f"unk_id {unknown:,} of no unknown piece": not 0 <= unknown < len(pieces)
        or proto.pieces[unknown].type != _UNKNOWN_TYPE,
        "a damaged precompiled_charsmap": not _is_charsmap(
            proto.normalizer_spec.precompiled_charsmap
        ),
    }
    if wrong := [fault for fault, is_wrong in faults.items() if is_wrong]:
        raise ValueError(f"expected a SentencePiece model, found {', '.join(wrong)}.")
    return proto


def _is_charsmap(table: bytes) -> bool:
    """Whether this is a table of the normalisation: a trie (of darts-clone), then texts; or empty.

    Its first four bytes are the size of the trie. Each unit of it leads to a block of 256 units, or
    to a text, which ends with NUL.
    """
    size = int.from_bytes(table[:4], "little")
    texts = len(table) - 4 - size
    if not table or texts < 1 or not size or size % _BLOCK or table[-1]:
        return not table
    units = np.frombuffer(table[4 : 4 + size], "<u4")
    is_text = units >> 31 == 1
    blocks = np.arange(len(units)) ^ (units >> 10 << ((units >> 6) & 8))
    fits = (blocks[~is_text] < len(units)).all() and (units[is_text] & (2**31 - 1) < texts).all()
    return bool(fits)


def text_tokenizer(content: bytes, name: str, *, spells: bool = False) -> tuple[Any, int]:
    """The tokenizer of tensorflow-text for a SentencePiece model, and its number of pieces."""
    text = require("tensorflow_text", "text")
    with named_errors(name, _REMEDY):
        checked_proto(content)
    kind = text.SentencepieceTokenizer if spells else text.FastSentencepieceTokenizer
    try:
        tokenizer = kind(model=content, add_eos=False)
        return tokenizer, int(tokenizer.vocab_size())
    except Exception as error:  # the converter's own kinds differ between versions
        reason = f"{type(error).__name__}: {error!s:.200}"
        raise ValueError(f"{name}: expected a SentencePiece model ({reason}).") from error


_REMEDY = "Give a SentencePiece model."

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
        if isinstance(model, bytes):
            proto, name = model, "the bytes given"
        else:
            proto = read_bounded(model, limit=FILE_LIMIT, remedy=_REMEDY)
            name = os.fspath(model)
        self._tokenizer, pieces = text_tokenizer(proto, name, spells=_BYTE_PIECE in proto)
        ids = range(pieces) if piece_ids is None else list(piece_ids)[:pieces]
        if len(ids) < pieces or [*ids[:2]] != [0, 1] or (np.diff(ids) <= 0).any():
            received = f"{len(ids)} ids: {[*ids[:4]]} …"
            raise ValueError(f"piece_ids: expected {pieces} ascending from 0, 1; not {received}")
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
        """Returns rows as long as the longest; `max_tokens` includes the end-of-sentence token."""
        if max_tokens is not None and max_tokens < 2:
            raise ValueError(f"Expected max_tokens >= 2, received {max_tokens}.")
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

        return summed(as_utf8(text), number, tf.zeros([tf.shape(text)[0]], tf.int32)) + 1


_FRAMED_ASSET = "framed_sentencepiece.model"
_START, _SEPARATOR, _UNKNOWN = 1, 2, 3
# Field 1 of a piece, as protobuf writes it.
_PADDING_FIRST, _MASK = b"\n\x05<pad>", b"\n\x06<mask>"
_FRAMED_REMEDY = "Give the tokenizer of an XLM-RoBERTa."


class FramedSentencePieceTokenizer(FramedTokenizer):
    """Maps sentences to the ids of their SentencePiece pieces, between `<s>` and `</s>`.

    The ids are those of Hugging Face's `XLMRobertaTokenizer`, except for two: here `<pad>` has the
    id 0 and `<s>` the id 1, there it is the other way round. A special token that is spelled out in
    a text is read as ordinary characters.

    Args:
        model: A Unigram model of SentencePiece. Its first pieces are `<pad>`, `<s>`, `</s>` and
            unknown, and if it has `<mask>`, that is the last piece
            (`use_st5.convert.tokenizer_files.read_framed_model`).
    """

    kind: ClassVar[str] = "framed_sentencepieces"
    keeps_spaces: ClassVar[bool] = False
    marks_second_text: ClassVar[bool] = False

    def __init__(self, model: bytes) -> None:
        if _PADDING_FIRST not in model[: 2 * len(_PADDING_FIRST)]:
            raise ValueError(f"The SentencePiece model lacks <pad>. {_FRAMED_REMEDY}")
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
        self._assets = written_assets(self, {_FRAMED_ASSET: model})

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """Builds the tokenizer of an exported model from the SentencePiece model in its assets."""
        return cls(read_bounded(folder / _FRAMED_ASSET, limit=FILE_LIMIT, remedy=_FRAMED_REMEDY))

    def pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        """The ids of the texts without special tokens."""
        # Hugging Face's tokenizers read U+0085 as white space, SentencePiece itself does not.
        spaced = tf.strings.regex_replace(as_utf8(text), "\u0085", " ")
        pieces = self._tokenizer.tokenize(spaced)
        return pieces.with_row_splits_dtype(tf.int64)  # as in the other tokenizers
