"""The SentencePiece model of a Hugging Face folder, rebuilt where only `tokenizer.json` is left."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import msgspec

from use_st5._records import read_bounded, read_record
from use_st5.convert.sentencepiece_message import model_proto
from use_st5.text.sentencepiece_vectorizer import MODEL_LIMIT

_FILES = ("spiece.model", "sentencepiece.model")
_REBUILT_FROM = "tokenizer.json"

# The types of pieces in sentencepiece_model.proto.
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_UNIGRAM = 1
_PAD, _EOS = "<pad>", "</s>"
# With all of these, as mT5's has them, a vocabulary spells characters that it has no piece for.
_BYTES = frozenset(f"<0x{byte:02X}>" for byte in range(256))


def read_sentencepiece_model(folder: str | os.PathLike[str]) -> bytes:
    """The SentencePiece model of a T5 or mT5 folder, as `SentencePieceVectorizer` takes it.

    Folders written by transformers 5 hold only `tokenizer.json`; the model is then rebuilt from it:
    the same pieces, scores and normalisation, without the sentinels (`<extra_id_0>` and so on),
    which no text contains. (transformers 5 forgets that mT5's bytes are bytes; here they are again
    what they were.)

    Raises:
        FileNotFoundError: The folder has neither.
        ValueError: `tokenizer.json` is not that of a T5 or mT5.
    """
    for name in _FILES:
        if (path := Path(folder, name)).is_file():
            return read_bounded(path, limit=MODEL_LIMIT, remedy="Copy it again.")
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
    try:
        return _rebuild(tokenizer)
    except ValueError as error:
        raise ValueError(f"{path}: {error}. {remedy}") from error


class _Unigram(msgspec.Struct):
    type: str
    unk_id: int | None
    vocab: list[tuple[str, float]]


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
        raise ValueError(f"$.model: found {model.type} that begins with {pieces[:3]}")
    sentinels = {token.content for token in tokenizer.added_tokens} - {_PAD, _EOS}
    spells = {piece for piece, _ in pieces} >= _BYTES
    proto = model_proto()
    for number, (piece, score) in enumerate(pieces):
        if number != model.unk_id and piece in sentinels:
            continue
        kind = {0: _CONTROL, 1: _CONTROL, model.unk_id: _UNKNOWN}.get(number, _NORMAL)
        kind = _BYTE if spells and piece in _BYTES else kind
        proto.pieces.add(piece=piece, score=score, type=kind)
    proto.trainer_spec.model_type = _UNIGRAM
    proto.trainer_spec.byte_fallback = spells
    proto.trainer_spec.vocab_size = len(proto.pieces)
    for name, number in (("pad", 0), ("eos", 1), ("unk", 2), ("bos", -1)):
        setattr(proto.trainer_spec, f"{name}_id", number)
    proto.trainer_spec.pad_piece, proto.trainer_spec.eos_piece = _PAD, _EOS
    proto.normalizer_spec.name = "nmt_nfkc"
    proto.normalizer_spec.precompiled_charsmap = base64.b64decode(
        _precompiled(tokenizer.normalizer)
    )
    return proto.SerializeToString()


def _precompiled(normalizer: _Normalizer) -> str:
    """The table of the one "Precompiled" step, alone or in a sequence."""
    steps = normalizer.normalizers or [normalizer]
    tables = [step.precompiled_charsmap for step in steps if step.type == "Precompiled"]
    if len(tables) != 1:
        raise ValueError(f"$.normalizer: expected one precompiled table, found {len(tables)}")
    return tables[0]
