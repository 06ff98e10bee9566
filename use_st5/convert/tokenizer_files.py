"""The tokenizer of a Hugging Face folder, from any of its files."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from use_st5.io.records import Count, check_record, named_errors, read_bounded, read_record
from use_st5.tokenizers.byte_pair_tokenizer import (
    ROBERTA_TOKENS,
    BytePairTokenizer,
    read_merges,
    read_pieces,
)
from use_st5.tokenizers.framed_tokenizer import (
    FILE_LIMIT,
    AddedToken,
    FramedTokenizer,
    SpecialTokens,
)
from use_st5.tokenizers.sentencepiece_tokenizer import (
    UNIGRAM,
    FramedSentencePieceTokenizer,
    checked_proto,
    model_proto,
)
from use_st5.tokenizers.wordpiece_tokenizer import BERT_TOKENS, WordPieceTokenizer, read_words

_WHOLE, _SETTINGS = "tokenizer.json", "tokenizer_config.json"
_WORDS, _PIECES, _MERGES = "vocab.txt", "vocab.json", "merges.txt"
_T5_MODELS = ("spiece.model", "sentencepiece.model")
# The file of XLM-RoBERTa; fairseq put special tokens of its own before the pieces.
_FRAMED_MODEL = "sentencepiece.bpe.model"
# MPNet's pre-training used BERT's words and RoBERTa's special tokens.
MPNET_TOKENS = SpecialTokens(
    padding="<pad>", start="<s>", separator="</s>", mask="<mask>", between=2
)
# Of vocabularies that have no tokens to put around a text.
_UNFRAMED = SpecialTokens(start="[UNK]", separator="[UNK]")
_REMEDY = "Give the tokenizer of a BERT, an MPNet, a RoBERTa, an XLM-RoBERTa or a T5."
# Tokenizer classes of transformers, without the end "Fast". A generic one is what tokenizer.json
# describes. Both kinds give a model no token types, unless `model_input_names` lists them.
_GENERIC = ("PreTrainedTokenizer", "TokenizersBackend")
_WITHOUT_TYPES = (
    "DistilBertTokenizer",
    "MPNetTokenizer",
    "RobertaTokenizer",
    "XLMRobertaTokenizer",
)
# The settings of `tokenizer_config.json`, which override those of `tokenizer.json`.
_KINDS: dict[str, Any] = {
    "tokenizer_class": str | None,
    "model_input_names": list[str] | None,
    "do_lower_case": bool,
    "strip_accents": bool | None,
    "tokenize_chinese_chars": bool,
    "add_prefix_space": bool,
    "do_basic_tokenize": Literal[True],
    "word_tokenizer_type": Literal["basic"],
}
# The only replacements of XLM-RoBERTa's normalizer: of several spaces by one.
_REPLACED = [({"Regex": " {2,}"}, space) for space in (" ", "▁")]


class _Part(msgspec.Struct):
    """A model, a normalizer, a pre-tokenizer or a post-processor of a `tokenizer.json`."""

    type: str
    vocab: Any = None
    merges: Any = None
    unk_id: int | None = None
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    max_input_chars_per_word: int | None = None
    dropout: float | None = None
    byte_fallback: bool = False
    ignore_merges: bool = False

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True
    precompiled_charsmap: str | None = None
    normalizers: list[_Part] = []

    add_prefix_space: bool = True
    use_regex: bool = True
    replacement: str = "▁"
    prepend_scheme: str = "always"
    pattern: dict[str, str] = {}
    content: str = ""
    pretokenizers: list[_Part] = []

    cls: tuple[str, int] | None = None
    sep: tuple[str, int] | None = None
    # Such as {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", …}}.
    single: list[dict[str, dict[str, Any]]] = []
    pair: list[dict[str, dict[str, Any]]] = []


class _Added(msgspec.Struct):
    content: str
    id: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] = 0
    special: bool = False
    normalized: bool = True
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False


class _Tokenizer(msgspec.Struct):
    model: _Part
    normalizer: _Part | None = None
    pre_tokenizer: _Part | None = None
    post_processor: _Part | None = None
    added_tokens: list[_Added] = []


def read_tokenizer(folder: str | os.PathLike[str], *, needs_frame: bool = True) -> FramedTokenizer:
    """Builds the tokenizer that a folder's tokenizer files describe.

    The files are `tokenizer.json`, which comes first, or `vocab.txt` (BERT), `vocab.json` and
    `merges.txt` (RoBERTa), or `sentencepiece.bpe.model` (XLM-RoBERTa); and `tokenizer_config.json`,
    if there is one. Without `needs_frame`, a model that ignores the special tokens around a text, a
    WordPiece vocabulary may lack them.
    """
    folder = Path(folder)
    settings = _read_settings(folder)
    if (path := folder / _WHOLE).is_file():
        tokenizer = _read_whole(path)
        with named_errors(path, _REMEDY):
            return _from_whole(tokenizer, settings, needs_frame)
    if (path := folder / _WORDS).is_file():
        words = read_words(path)
        special = BERT_TOKENS if BERT_TOKENS.start in words else MPNET_TOKENS
        with named_errors(path, _REMEDY):
            return _wordpieces(words, settings, _Part(""), special)
    if (path := folder / _PIECES).is_file() or (folder / _MERGES).is_file():
        merges, pieces = read_merges(folder / _MERGES), read_pieces(path)
        with named_errors(path, _REMEDY):
            _expect("add_prefix_space", settings.get("add_prefix_space", False), False)
            return BytePairTokenizer(pieces, merges)
    if (folder / _FRAMED_MODEL).is_file():
        return FramedSentencePieceTokenizer(read_framed_model(folder))
    names = f"{_WHOLE}, {_WORDS}, {_PIECES} and {_MERGES}, or {_FRAMED_MODEL}"
    raise FileNotFoundError(f"{folder}: expected {names}, found none. {_REMEDY}")


def marks_second_text(
    folder: str | os.PathLike[str], tokenizer: FramedTokenizer, *, token_types: int
) -> bool:
    """Whether the second text of a pair has the token type 1, as transformers gives it."""
    settings = _read_settings(Path(folder))
    names = settings.get("model_input_names")
    without_types = _class_name(settings) in (*_GENERIC, *_WITHOUT_TYPES)
    gives_types = "token_type_ids" in names if names is not None else not without_types
    gives_types = gives_types and token_types > 1
    marks = gives_types and tokenizer.marks_second_text
    if (path := Path(folder) / _WHOLE).is_file():
        processor = _read_whole(path).post_processor
        with named_errors(path, _REMEDY):
            start, separator = _frame(processor)
            first = [(start, 0), ("A", 0), *[(separator, 0)] * tokenizer.between]
            second = [("B", int(marks)), (separator, int(marks))]
            found = [(token, kind if gives_types else 0) for token, kind in _pair(processor)]
            _expect("$.post_processor: a pair as (token, type)", found, [*first, *second])
    return marks


def _read_settings(folder: Path) -> dict[str, Any]:
    if not (path := folder / _SETTINGS).is_file():
        return {}
    settings = read_record(path, dict[str, Any], remedy=_REMEDY, limit=FILE_LIMIT)
    for name in _KINDS.keys() & settings.keys():
        check_record(settings[name], _KINDS[name], where=f"{path}: {name}", remedy=_REMEDY)
    return settings


def _class_name(settings: dict[str, Any]) -> str:
    """The tokenizer's class without the end "Fast"; if none is given, BERT's is used."""
    return (settings.get("tokenizer_class") or "BertTokenizer").removesuffix("Fast")


def _read_whole(path: Path) -> _Tokenizer:
    return read_record(path, _Tokenizer, remedy=_REMEDY, limit=FILE_LIMIT)


def _from_whole(
    tokenizer: _Tokenizer, settings: dict[str, Any], needs_frame: bool
) -> FramedTokenizer:
    """The tokenizer of a `tokenizer.json`."""
    if _class_name(settings) in _GENERIC:
        settings = {name: settings[name] for name in settings if name == "add_prefix_space"}
    model, frame = tokenizer.model, _frame(tokenizer.post_processor)
    added = []
    for token in tokenizer.added_tokens:
        if not token.special:
            what = f"$.added_tokens: {token.content!r}: single_word, lstrip, rstrip"
            _expect(what, (token.single_word, token.lstrip, token.rstrip), (False,) * 3)
            added.append(AddedToken(token.content, token.id, token.normalized))
    normalizer, pre_tokenizer = (
        part or _Part("none") for part in (tokenizer.normalizer, tokenizer.pre_tokenizer)
    )
    parts = (model.type, normalizer.type, pre_tokenizer.type)
    if parts == ("WordPiece", "BertNormalizer", "BertPreTokenizer"):
        special = _UNFRAMED
        if needs_frame or frame not in ([], ["A"]):
            special = _special(frame, BERT_TOKENS, MPNET_TOKENS)
        affix, limit = model.continuing_subword_prefix, model.max_input_chars_per_word
        options: tuple[Any, ...] = (normalizer.clean_text, model.unk_token, affix, limit)
        _expect("$.normalizer.clean_text, $.model", options, (True, "[UNK]", "##", 100))
        ids = check_record(model.vocab, dict[str, Count], where="model.vocab", remedy="")
        words = sorted(ids, key=ids.__getitem__)
        _expect("$.model.vocab: sorted ids", sorted(ids.values()), [*range(len(ids))])
        return _wordpieces(words, settings, normalizer, special, added)
    if parts in (("BPE", "none", "ByteLevel"), ("BPE", "NFC", "ByteLevel")):
        special = _special(frame, ROBERTA_TOKENS, BERT_TOKENS)  # the second ones are ModernBERT's
        switches = (pre_tokenizer.use_regex, bool(model.dropout), model.byte_fallback)
        affixes = (model.continuing_subword_prefix or "", model.end_of_word_suffix or "")
        usual = (True, False, False, False, "", "")
        options = (*switches, model.ignore_merges, *affixes)
        _expect("$.pre_tokenizer.use_regex, $.model", options, usual)
        prefix_space = settings.get("add_prefix_space", pre_tokenizer.add_prefix_space)
        _expect("add_prefix_space", prefix_space, False)
        pieces = check_record(model.vocab, dict[str, Count], where="model.vocab", remedy="")
        pieces |= {each.content: each.id for each in tokenizer.added_tokens if each.special}
        kind = list[str | tuple[str, str]]
        merges = check_record(model.merges, kind, where="model.merges", remedy="")
        # In older files a merge is one string with a space between the pieces.
        pairs = [(a, b) for a, b in (m.split(" ") if isinstance(m, str) else m for m in merges)]
        compose = normalizer.type == "NFC"
        return BytePairTokenizer(pieces, pairs, special=special, added=added, compose=compose)
    steps = {each.type for each in _steps(normalizer)}
    if model.type == "Unigram" and not added and steps <= {"Precompiled", "Replace"}:
        _expect("$.post_processor", frame, ["<s>", "</s>"])
        _expect_spaces(_steps(normalizer), _steps(pre_tokenizer))
        return FramedSentencePieceTokenizer(_framed(tokenizer))
    found = ", ".join(f"{part:.80}" for part in parts)
    raise ValueError(f"expected WordPiece, BPE or Unigram with their usual parts; found {found}.")


def _steps(part: _Part) -> list[_Part]:
    """The steps of a sequence, or the only step."""
    return [*part.normalizers, *part.pretokenizers] if part.type == "Sequence" else [part]


def _expect_spaces(normalizers: list[_Part], pre_tokenizers: list[_Part]) -> None:
    """Each word must begin with "▁", and several spaces be one."""
    for each in normalizers:
        replaced = (each.pattern, each.content)
        if each.type == "Replace" and replaced not in _REPLACED:
            _expect("$.normalizer: Replace", replaced, _REPLACED[0])
    words = [each for each in pre_tokenizers if each.type != "WhitespaceSplit"]
    _expect("$.pre_tokenizer", [each.type for each in words], ["Metaspace"])
    found = (words[0].replacement, words[0].prepend_scheme, words[0].add_prefix_space)
    # The first part of a text is the whole text if nothing splits it before.
    if found != ("▁", "first", True) or len(pre_tokenizers) > 1:
        what = "$.pre_tokenizer: Metaspace: replacement, prepend_scheme, add_prefix_space"
        _expect(what, found, ("▁", "always", True))


def _special(frame: list[str], *kinds: SpecialTokens) -> SpecialTokens:
    """The special tokens of a vocabulary, recognised by those that frame a text."""
    frames = [[each.start, each.separator] for each in kinds]
    if frame not in frames:
        _expect("$.post_processor", frame, " or ".join(map(str, frames)))
    return kinds[frames.index(frame)]


def _wordpieces(
    words: list[str],
    settings: dict[str, Any],
    normalizer: _Part,
    special: SpecialTokens,
    added: Sequence[AddedToken] = (),
) -> WordPieceTokenizer:
    return WordPieceTokenizer(
        words,
        lower_case=settings.get("do_lower_case", normalizer.lowercase),
        strip_accents=settings.get("strip_accents", normalizer.strip_accents),
        split_chinese=settings.get("tokenize_chinese_chars", normalizer.handle_chinese_chars),
        special=special,
        added=added,
    )


def _expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise ValueError(f"{what:.200}: expected {expected!s:.200}, found {found!s:.200}.")


def _frame(processor: _Part | None) -> list[str]:
    """The special tokens before and after a text."""
    if processor is None:
        return []
    if processor.type in ("BertProcessing", "RobertaProcessing"):
        return [each[0] for each in (processor.cls, processor.sep) if each]
    if processor.type != "TemplateProcessing":
        return [processor.type]
    tokens = [str(value.get("id")) for part in processor.single for value in part.values()]
    return [tokens[0], tokens[2]] if len(tokens) == 3 and tokens[1] == "A" else tokens


def _pair(processor: _Part | None) -> list[tuple[Any, Any]]:
    """The tokens of a pair and their types; "A" and "B" are the texts."""
    if processor is not None and processor.type == "TemplateProcessing":
        parts = [value for part in processor.pair for value in part.values()]
        return [(value.get("id"), value.get("type_id", 0)) for value in parts]
    start, separator = _frame(processor)
    if processor is not None and processor.type == "RobertaProcessing":
        return [(each, 0) for each in (start, "A", separator, separator, "B", separator)]
    return [(start, 0), ("A", 0), (separator, 0), ("B", 1), (separator, 1)]


# SentencePiece models, as files or rebuilt from a tokenizer.json.

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
    it, without the sentinels (`<extra_id_0>` and so on), and with mT5's byte pieces as bytes.
    """
    for name in _T5_MODELS:
        if (path := Path(folder, name)).is_file():
            content = read_bounded(path, limit=FILE_LIMIT, remedy=_REMEDY)
            with named_errors(path, _REMEDY):
                checked_proto(content)
            return content
    path = Path(folder, _WHOLE)
    tokenizer = _read_whole(path)
    model = tokenizer.model
    with named_errors(path, _REMEDY):
        pieces = _unigrams(model, unknown=2, first=[_PAD, _EOS])
        sentinels = {token.content for token in tokenizer.added_tokens} - {_PAD, _EOS}
        has_bytes = {piece for piece, _ in pieces} >= _BYTES
        kept_pieces = []
        for number, (piece, score) in enumerate(pieces):
            kind = {0: _CONTROL, 1: _CONTROL, 2: _UNKNOWN}.get(number, _NORMAL)
            if kind == _UNKNOWN or piece not in sentinels:
                is_byte = has_bytes and piece in _BYTES
                kept_pieces.append((piece, score, _BYTE if is_byte else kind))
        table = _precompiled(tokenizer)
        return _unigram_model(kept_pieces, table, spells=has_bytes, pad=0, eos=1, unk=2, bos=-1)


def read_framed_model(folder: str | os.PathLike[str]) -> bytes:
    """The SentencePiece model of XLM-RoBERTa, as `FramedSentencePieceTokenizer` takes it.

    The id of a piece is that of Hugging Face: fairseq's special tokens come before the pieces,
    which begin at 4. The only difference: here `<pad>` is 0 and `<s>` is 1. The source is
    `tokenizer.json`, or the original `sentencepiece.bpe.model`.
    """
    if (path := Path(folder, _WHOLE)).is_file():
        tokenizer = _read_whole(path)
        with named_errors(path, _REMEDY):
            return _framed(tokenizer)
    path = Path(folder, _FRAMED_MODEL)
    content = read_bounded(path, limit=FILE_LIMIT, remedy=_REMEDY)
    with named_errors(path, _REMEDY):
        # fairseq's model: unknown, `<s>` and `</s>`, then the pieces.
        proto = checked_proto(content)
        pieces = [(each.piece, each.score) for each in proto.pieces]
        _expect("its first pieces", [piece for piece, _ in pieces[:3]], ["<unk>", "<s>", "</s>"])
        return _framed_proto(pieces[3:], proto.normalizer_spec.precompiled_charsmap, mask=True)


def _framed(tokenizer: _Tokenizer) -> bytes:
    """Builds the model from a `tokenizer.json`, whose vocabulary has the special tokens."""
    pad, start, *other_tokens = _FRAMED_FIRST
    pieces = _unigrams(tokenizer.model, unknown=3, first=[start, pad, *other_tokens])
    _expect("$.model.byte_fallback", tokenizer.model.byte_fallback, False)
    has_mask = [piece for piece, _ in pieces[-1:]] == [_MASK]
    ordinary = pieces[len(_FRAMED_FIRST) : -1 if has_mask else None]
    return _framed_proto(ordinary, _precompiled(tokenizer), mask=has_mask)


def _framed_proto(pieces: Sequence[tuple[str, float]], table: bytes, *, mask: bool) -> bytes:
    """A SentencePiece model of the special tokens and ordinary pieces, with our ids."""
    special = [(each, 0.0, _UNKNOWN if each == "<unk>" else _CONTROL) for each in _FRAMED_FIRST]
    ordinary = [(piece, score, _NORMAL) for piece, score in pieces]
    last = [(_MASK, 0.0, _CONTROL)] if mask else []
    return _unigram_model([*special, *ordinary, *last], table, pad=0, bos=1, eos=2, unk=3)


def _unigrams(model: _Part, *, unknown: int, first: list[str]) -> list[tuple[str, float]]:
    """The pieces of a model and their scores, if it is one that begins as it should."""
    found = model.vocab if isinstance(model.vocab, list) else []
    kind = list[tuple[str, float]]
    pieces = check_record(found, kind, where="model.vocab", remedy="")
    beginning = (model.type, model.unk_id, [piece for piece, _ in pieces[: len(first)]])
    _expect("$.model: type, unk_id, first pieces", beginning, ("Unigram", unknown, first))
    return pieces


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


def _precompiled(tokenizer: _Tokenizer) -> bytes:
    """The table of the only "Precompiled" step, which may be part of a sequence."""
    normalizer = tokenizer.normalizer or _Part("none")
    steps = [step for step in _steps(normalizer) if step.type == "Precompiled"]
    _expect("$.normalizer: the number of precompiled tables", len(steps), 1)
    return base64.b64decode(steps[0].precompiled_charsmap or "", validate=True)
