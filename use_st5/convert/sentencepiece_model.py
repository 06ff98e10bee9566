"""The SentencePiece model of a folder, as a file or rebuilt from its tokenizer.json."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from use_st5.io.records import named_errors, read_bounded, read_record
from use_st5.tokenizers.sentencepiece_tokenizer import (
    MODEL_LIMIT,
    UNIGRAM,
    checked_proto,
    model_proto,
)

_FILES = ("spiece.model", "sentencepiece.model")
_REBUILT_FROM = "tokenizer.json"
_AGAIN = "Copy it again."

# The file of XLM-RoBERTa; fairseq put special tokens of its own before the pieces.
_FRAMED_FILE = "sentencepiece.bpe.model"
_FRAMED_FIRST = ("<pad>", "<s>", "</s>", "<unk>")
_MASK = "<mask>"

# The types of pieces in sentencepiece_model.proto.
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_PAD, _EOS = "<pad>", "</s>"
# A vocabulary with all of these, such as mT5's, spells characters that it has no piece for.
_BYTES = frozenset(f"<0x{byte:02X}>" for byte in range(256))


def read_sentencepiece_model(folder: str | os.PathLike[str]) -> bytes:
    """The SentencePiece model of a T5 or mT5 folder, as `SentencePieceTokenizer` takes it.

    Folders written by transformers 5 contain only `tokenizer.json`. The model is then rebuilt from
    it: the same pieces, scores and normalisation, without the sentinels (`<extra_id_0>` and so on),
    which no text contains. (transformers 5 does not store that mT5's byte pieces are bytes; the
    rebuilt model marks them as bytes again.)
    """
    for name in _FILES:
        if (path := Path(folder, name)).is_file():
            content = read_bounded(path, limit=MODEL_LIMIT, remedy=_AGAIN)
            with named_errors(path, _AGAIN):
                checked_proto(content)
            return content
    path = Path(folder, _REBUILT_FROM)
    if not path.is_file():
        raise FileNotFoundError(
            f"{os.fspath(folder)}: expected {', '.join(_FILES)} or {_REBUILT_FROM}, found none."
        )
    remedy = (
        f"Give the tokenizer of a T5: a Unigram model with pieces {_PAD}, {_EOS} and unknown at 0, "
        "1 and 2."
    )
    tokenizer = read_record(path, _Tokenizer, remedy=remedy, limit=MODEL_LIMIT)
    with named_errors(path, remedy):
        return _rebuild(tokenizer)


def read_framed_model(folder: str | os.PathLike[str]) -> bytes:
    """The SentencePiece model of XLM-RoBERTa, as `FramedSentencePieceTokenizer` takes it.

    The id of a piece is that of Hugging Face: fairseq's special tokens come before the pieces,
    which begin at 4. The only difference: here `<pad>` is 0 and `<s>` is 1. The source is
    `tokenizer.json`, or the original `sentencepiece.bpe.model`.
    """
    remedy = "Give the tokenizer of an XLM-RoBERTa."
    if (path := Path(folder, _REBUILT_FROM)).is_file():
        tokenizer = read_record(path, _Tokenizer, remedy=remedy, limit=MODEL_LIMIT)
        with named_errors(path, remedy):
            return _framed(tokenizer)
    path = Path(folder, _FRAMED_FILE)
    content = read_bounded(path, limit=MODEL_LIMIT, remedy=remedy)
    with named_errors(path, remedy):
        return _framed_original(content)


def _framed(tokenizer: _Tokenizer) -> bytes:
    """Builds the model from a `tokenizer.json`, whose vocabulary has the special tokens."""
    model, pieces = tokenizer.model, tokenizer.model.vocab
    pad, start, *other_tokens = _FRAMED_FIRST
    first = [piece for piece, _ in pieces[: len(_FRAMED_FIRST)]]
    if (model.type, model.unk_id, first) != ("Unigram", 3, [start, pad, *other_tokens]):
        raise ValueError(_other(model))
    if model.byte_fallback:
        raise ValueError("$.model.byte_fallback: expected False, found True.")
    has_mask = [piece for piece, _ in pieces[-1:]] == [_MASK]
    ordinary = pieces[len(_FRAMED_FIRST) : -1 if has_mask else None]
    return _framed_proto(ordinary, _precompiled(tokenizer.normalizer), mask=has_mask)


def _framed_original(content: bytes) -> bytes:
    """Builds the model from fairseq's: unknown, `<s>` and `</s>`, then the pieces."""
    proto = checked_proto(content)
    pieces = [(each.piece, each.score) for each in proto.pieces]
    first = [piece for piece, _ in pieces[:3]]
    if first != ["<unk>", "<s>", "</s>"]:
        raise ValueError(f"expected a Unigram model, found one that begins with {first!s:.200}.")
    return _framed_proto(pieces[3:], proto.normalizer_spec.precompiled_charsmap, mask=True)


def _framed_proto(pieces: Sequence[tuple[str, float]], table: bytes, *, mask: bool) -> bytes:
    """A SentencePiece model of the special tokens and ordinary pieces, with our ids."""
    special = [(each, 0.0, _UNKNOWN if each == "<unk>" else _CONTROL) for each in _FRAMED_FIRST]
    ordinary = [(piece, score, _NORMAL) for piece, score in pieces]
    last = [(_MASK, 0.0, _CONTROL)] if mask else []
    return _unigram_model([*special, *ordinary, *last], table, pad=0, bos=1, eos=2, unk=3)


def _unigram_model(
    pieces: Sequence[tuple[str, float, int]], table: bytes, *, spells: bool = False, **ids: int
) -> bytes:
    """A Unigram model of pieces with scores and types."""
    proto = model_proto()
    for piece, score, kind in pieces:
        proto.pieces.add(piece=piece, score=score, type=kind)
    spec = proto.trainer_spec
    spec.model_type, spec.vocab_size = UNIGRAM, len(pieces)
    spec.pad_piece, spec.eos_piece = _PAD, _EOS
    if spells:
        spec.byte_fallback = True
    for name, number in ids.items():
        setattr(spec, f"{name}_id", number)
    proto.normalizer_spec.name = "nmt_nfkc"
    proto.normalizer_spec.precompiled_charsmap = table
    content = proto.SerializeToString()
    checked_proto(content)
    return content


class _Unigram(msgspec.Struct):
    type: str
    unk_id: int | None
    vocab: list[tuple[str, float]]
    byte_fallback: bool = False


class _Added(msgspec.Struct):
    content: str


class _Normalizer(msgspec.Struct):
    type: str
    precompiled_charsmap: str = ""
    normalizers: list[_Normalizer] = []


class _Tokenizer(msgspec.Struct):
    model: _Unigram
    added_tokens: list[_Added]
    normalizer: _Normalizer


def _rebuild(tokenizer: _Tokenizer) -> bytes:
    model, pieces = tokenizer.model, tokenizer.model.vocab
    if (model.type, model.unk_id, [p for p, _ in pieces[:2]]) != ("Unigram", 2, [_PAD, _EOS]):
        raise ValueError(_other(model))
    sentinels = {token.content for token in tokenizer.added_tokens} - {_PAD, _EOS}
    has_bytes = {piece for piece, _ in pieces} >= _BYTES
    kept_pieces = []
    for number, (piece, score) in enumerate(pieces):
        if number != model.unk_id and piece in sentinels:
            continue
        kind = {0: _CONTROL, 1: _CONTROL, model.unk_id: _UNKNOWN}.get(number, _NORMAL)
        kept_pieces.append((piece, score, _BYTE if has_bytes and piece in _BYTES else kind))
    table = _precompiled(tokenizer.normalizer)
    return _unigram_model(kept_pieces, table, spells=has_bytes, pad=0, eos=1, unk=2, bos=-1)


def _other(model: _Unigram) -> str:
    first = [piece for piece, _ in model.vocab[: len(_FRAMED_FIRST)]]
    return (
        f"$.model: found {model.type:.80} with unk_id {model.unk_id} that begins with "
        f"{first!s:.200}."
    )


def _precompiled(normalizer: _Normalizer) -> bytes:
    """The table of the only "Precompiled" step, which may be part of a sequence."""
    steps = normalizer.normalizers or [normalizer]
    tables = [step.precompiled_charsmap for step in steps if step.type == "Precompiled"]
    if len(tables) != 1:
        raise ValueError(f"$.normalizer: expected one precompiled table, found {len(tables)}.")
    try:
        return base64.b64decode(tables[0], validate=True)
    except ValueError as error:
        raise ValueError(
            f"$.normalizer: precompiled_charsmap: expected base64, found {tables[0]!r:.200} "
            f"({error})."
        ) from error
