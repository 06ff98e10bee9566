"""The tokenizer of a Hugging Face folder, from any of its files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from use_st5.convert.sentencepiece_model import read_framed_model
from use_st5.io.records import Count, check_record, named_errors, read_record
from use_st5.tokenizers.added_tokens import AddedToken
from use_st5.tokenizers.byte_pair_tokenizer import (
    FILE_LIMIT,
    ROBERTA_TOKENS,
    BytePairTokenizer,
    read_merges,
    read_pieces,
)
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer, SpecialTokens
from use_st5.tokenizers.sentencepiece_tokenizer import FramedSentencePieceTokenizer
from use_st5.tokenizers.wordpiece_tokenizer import BERT_TOKENS, WordPieceTokenizer, read_words

_WHOLE, _SETTINGS = "tokenizer.json", "tokenizer_config.json"
_WORDS, _PIECES, _MERGES = "vocab.txt", "vocab.json", "merges.txt"
_UNIGRAM_MODEL = "sentencepiece.bpe.model"
# MPNet's pre-training used BERT's words and RoBERTa's special tokens.
MPNET_TOKENS = SpecialTokens(
    padding="<pad>", start="<s>", separator="</s>", mask="<mask>", between=2
)
_WORD_PIECE_TOKENS = (BERT_TOKENS, MPNET_TOKENS)
# The second one is ModernBERT's.
_BYTE_PAIR_TOKENS = (ROBERTA_TOKENS, BERT_TOKENS)
_REMEDY = "Give the tokenizer of a BERT, an MPNet, a RoBERTa or an XLM-RoBERTa."
# Tokenizer classes of transformers, without the end "Fast". A generic one is what tokenizer.json
# describes. Both kinds give a model no token types, unless `model_input_names` lists them.
_GENERIC = ("PreTrainedTokenizer", "TokenizersBackend")
_WITHOUT_TYPES = (
    "DistilBertTokenizer",
    "MPNetTokenizer",
    "RobertaTokenizer",
    "XLMRobertaTokenizer",
)
# The only replacements of XLM-RoBERTa's normalizer: of several spaces by one.
_REPLACED = [({"Regex": " {2,}"}, space) for space in (" ", "▁")]


class _Settings(msgspec.Struct):
    """The settings of `tokenizer_config.json`, which override those of `tokenizer.json`."""

    tokenizer_class: str | None = None
    model_input_names: list[str] | None = None

    do_lower_case: bool | msgspec.UnsetType = msgspec.UNSET
    strip_accents: bool | None | msgspec.UnsetType = msgspec.UNSET
    tokenize_chinese_chars: bool | msgspec.UnsetType = msgspec.UNSET
    add_prefix_space: bool | msgspec.UnsetType = msgspec.UNSET
    do_basic_tokenize: Literal[True] = True
    word_tokenizer_type: Literal["basic"] = "basic"

    def of(self, name: str, otherwise: Any) -> Any:
        """A setting, or else what the normalizer has."""
        value = getattr(self, name)
        return otherwise if value is msgspec.UNSET else value

    @property
    def class_name(self) -> str:
        """The tokenizer's class without the end "Fast"; if none is given, BERT's is used."""
        return (self.tokenizer_class or "BertTokenizer").removesuffix("Fast")

    @property
    def gives_types(self) -> bool:
        """Whether the tokenizer gives token types, or a model has type 0 everywhere."""
        if self.model_input_names is not None:
            return "token_type_ids" in self.model_input_names
        return self.class_name not in (*_GENERIC, *_WITHOUT_TYPES)


class _Framing(msgspec.Struct):
    """A special token or a text in a template."""

    id: str
    type_id: int = 0


class _Part(msgspec.Struct):
    """A normalizer, a pre-tokenizer or a post-processor."""

    type: str
    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True
    add_prefix_space: bool = True
    use_regex: bool = True
    replacement: str = "▁"
    prepend_scheme: str = "always"
    pattern: dict[str, str] = {}
    content: str = ""
    cls: tuple[str, int] | None = None
    sep: tuple[str, int] | None = None
    single: list[dict[str, _Framing]] = []
    pair: list[dict[str, _Framing]] = []
    normalizers: list[_Part] = []
    pretokenizers: list[_Part] = []


class _Model(msgspec.Struct):
    type: str
    vocab: Any
    merges: Any = None
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    max_input_chars_per_word: int | None = None
    dropout: float | None = None
    byte_fallback: bool = False
    ignore_merges: bool = False


class _Added(msgspec.Struct):
    id: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    content: str
    special: bool = False
    normalized: bool = True
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False


class _Tokenizer(msgspec.Struct):
    model: _Model
    normalizer: _Part | None = None
    pre_tokenizer: _Part | None = None
    post_processor: _Part | None = None
    added_tokens: list[_Added] = []


class _Processed(msgspec.Struct):
    post_processor: _Part | None = None


def read_tokenizer(folder: str | os.PathLike[str]) -> FramedTokenizer:
    """Builds the tokenizer that a folder's tokenizer files describe.

    The files are `tokenizer.json`, which comes first, or `vocab.txt` (BERT), `vocab.json` and
    `merges.txt` (RoBERTa), or `sentencepiece.bpe.model` (XLM-RoBERTa); and `tokenizer_config.json`,
    if there is one.
    """
    folder = Path(folder)
    settings = _read_settings(folder)
    if (path := folder / _WHOLE).is_file():
        return _from_whole(path, settings)
    if (path := folder / _WORDS).is_file():
        words = read_words(path)
        special = BERT_TOKENS if BERT_TOKENS.start in words else MPNET_TOKENS
        return _wordpieces(path, words, settings, _Part(""), special)
    if (path := folder / _PIECES).is_file() or (folder / _MERGES).is_file():
        merges = read_merges(folder / _MERGES)
        return _byte_pairs(path, read_pieces(path), merges, settings, prefix_space=False)
    if (folder / _UNIGRAM_MODEL).is_file():
        return FramedSentencePieceTokenizer(read_framed_model(folder))
    raise FileNotFoundError(
        f"{folder}: expected {_WHOLE}, {_WORDS}, {_PIECES} and {_MERGES}, or {_UNIGRAM_MODEL}, "
        f"found none. {_REMEDY}"
    )


def marks_second_text(
    folder: str | os.PathLike[str], tokenizer: FramedTokenizer, *, token_types: int
) -> bool:
    """Whether the second text of a pair has the token type 1, as transformers gives it to a model.

    Args:
        folder: The folder of a checkpoint of transformers.
        tokenizer: What `read_tokenizer` makes of it.
        token_types: The number of token types that the model has.
    """
    gives_types = token_types > 1 and _read_settings(Path(folder)).gives_types
    marks = gives_types and tokenizer.marks_second_text
    if (path := Path(folder) / _WHOLE).is_file():
        processed = read_record(path, _Processed, remedy=_REMEDY, limit=FILE_LIMIT)
        start, separator = _frame(processed.post_processor)
        first = [(start, 0), ("A", 0), *[(separator, 0)] * tokenizer.between]
        second = [("B", int(marks)), (separator, int(marks))]
        found = [(token, kind * gives_types) for token, kind in _pair(processed.post_processor)]
        _expect(path, "$.post_processor: a pair as (token, type)", found, [*first, *second])
    return marks


def _read_settings(folder: Path) -> _Settings:
    if not (path := folder / _SETTINGS).is_file():
        return _Settings()
    return read_record(path, _Settings, remedy=_REMEDY, limit=FILE_LIMIT)


def _from_whole(path: Path, settings: _Settings) -> FramedTokenizer:
    """The tokenizer of a `tokenizer.json`."""
    tokenizer = read_record(path, _Tokenizer, remedy=_REMEDY, limit=FILE_LIMIT)
    if settings.class_name in _GENERIC:
        settings = _Settings(add_prefix_space=settings.add_prefix_space)
    model = tokenizer.model
    added_tokens = _added(path, tokenizer.added_tokens)
    normalizer, pre_tokenizer = (
        part or _Part("none") for part in (tokenizer.normalizer, tokenizer.pre_tokenizer)
    )
    parts = (model.type, normalizer.type, pre_tokenizer.type)
    if parts == ("WordPiece", "BertNormalizer", "BertPreTokenizer"):
        special = _special(path, _frame(tokenizer.post_processor), _WORD_PIECE_TOKENS)
        options = (model.unk_token, model.continuing_subword_prefix, model.max_input_chars_per_word)
        found = (normalizer.clean_text, *options)
        _expect(path, "$.normalizer.clean_text, $.model", found, (True, "[UNK]", "##", 100))
        words = _in_order(path, model.vocab)
        return _wordpieces(path, words, settings, normalizer, special, added_tokens)
    if parts in (("BPE", "none", "ByteLevel"), ("BPE", "NFC", "ByteLevel")):
        special = _special(path, _frame(tokenizer.post_processor), _BYTE_PAIR_TOKENS)
        affixes = (model.continuing_subword_prefix or "", model.end_of_word_suffix or "")
        switches = (
            pre_tokenizer.use_regex,
            model.dropout or 0,
            model.byte_fallback,
            model.ignore_merges,
            *affixes,
        )
        usual = (True, 0, False, False, "", "")
        _expect(path, "$.pre_tokenizer.use_regex, $.model", switches, usual)
        pieces = _checked(path, model.vocab, dict[str, Count])
        pieces |= {each.content: each.id for each in tokenizer.added_tokens if each.special}
        merges = [*_pairs(path, _checked(path, model.merges, list[str | tuple[str, str]]))]
        prefix_space = pre_tokenizer.add_prefix_space
        how = {"special": special, "added": added_tokens, "compose": normalizer.type == "NFC"}
        return _byte_pairs(path, pieces, merges, settings, prefix_space=prefix_space, **how)
    steps = {each.type for each in _steps(normalizer)}
    if model.type == "Unigram" and not added_tokens and steps <= {"Precompiled", "Replace"}:
        _expect(path, "$.post_processor", _frame(tokenizer.post_processor), ["<s>", "</s>"])
        _check_spaces(path, _steps(normalizer), _steps(pre_tokenizer))
        return FramedSentencePieceTokenizer(read_framed_model(path.parent))
    raise ValueError(
        f"{path}: expected model, normalizer and pre-tokenizer WordPiece, BertNormalizer and "
        "BertPreTokenizer; BPE, none and ByteLevel; or Unigram, Precompiled and Metaspace; found "
        f"{parts[0]:.80}, {parts[1]:.80} and {parts[2]:.80}. {_REMEDY}"
    )


def _steps(part: _Part) -> list[_Part]:
    """The steps of a sequence, or the only step."""
    return [*part.normalizers, *part.pretokenizers] if part.type == "Sequence" else [part]


def _check_spaces(path: Path, normalizers: list[_Part], pre_tokenizers: list[_Part]) -> None:
    """Checks that each word begins with "▁", and that several spaces are one.

    `WhitespaceSplit` may be missing: the tokenizer class of transformers adds it.
    """
    for each in normalizers:
        replaced = (each.pattern, each.content)
        if each.type == "Replace" and replaced not in _REPLACED:
            _expect(path, "$.normalizer: Replace", replaced, _REPLACED[0])
    words = [each for each in pre_tokenizers if each.type != "WhitespaceSplit"]
    _expect(path, "$.pre_tokenizer", [each.type for each in words], ["Metaspace"])
    found = (words[0].replacement, words[0].prepend_scheme, words[0].add_prefix_space)
    # The first part of a text is the whole text if nothing splits it before.
    if found != ("▁", "first", True) or len(pre_tokenizers) > 1:
        what = "$.pre_tokenizer: Metaspace: replacement, prepend_scheme, add_prefix_space"
        _expect(path, what, found, ("▁", "always", True))


def _added(path: Path, tokens: Sequence[_Added]) -> list[AddedToken]:
    """The added tokens that are not special."""
    ordinary = [token for token in tokens if not token.special]
    for token in ordinary:
        _expect(
            path,
            f"$.added_tokens: {token.content!r}: single_word, lstrip, rstrip",
            (token.single_word, token.lstrip, token.rstrip),
            (False, False, False),
        )
    return [AddedToken(token.content, token.id, token.normalized) for token in ordinary]


def _special(path: Path, frame: list[str], kinds: Sequence[SpecialTokens]) -> SpecialTokens:
    """The special tokens of a vocabulary, recognised by those that frame a text."""
    frames = [[each.start, each.separator] for each in kinds]
    if frame not in frames:
        _expect(path, "$.post_processor", frame, " or ".join(map(str, frames)))
    return kinds[frames.index(frame)]


def _wordpieces(
    path: Path,
    words: list[str],
    settings: _Settings,
    normalizer: _Part,
    special: SpecialTokens,
    added: Sequence[AddedToken] = (),
) -> WordPieceTokenizer:
    with named_errors(path):
        return WordPieceTokenizer(
            words,
            lower_case=settings.of("do_lower_case", normalizer.lowercase),
            strip_accents=settings.of("strip_accents", normalizer.strip_accents),
            split_chinese=settings.of("tokenize_chinese_chars", normalizer.handle_chinese_chars),
            special=special,
            added=added,
        )


def _byte_pairs(
    path: Path,
    pieces: dict[str, int],
    merges: list[tuple[str, str]],
    settings: _Settings,
    *,
    prefix_space: bool,
    **how: Any,
) -> BytePairTokenizer:
    _expect(path, "add_prefix_space", settings.of("add_prefix_space", prefix_space), False)
    with named_errors(path):
        return BytePairTokenizer(pieces, merges, **how)


def _expect(path: Path, what: str, found: object, expected: object) -> None:
    if found != expected:
        raise ValueError(
            f"{path}: {what:.200}: expected {expected!s:.200}, found {found!s:.200}. {_REMEDY}"
        )


def _frame(processor: _Part | None) -> list[str]:
    """The special tokens before and after a text."""
    if processor is None:
        return []
    if processor.type in ("BertProcessing", "RobertaProcessing"):
        return [each[0] for each in (processor.cls, processor.sep) if each]
    if processor.type != "TemplateProcessing":
        return [processor.type]
    # Such as {"SpecialToken": {"id": "[CLS]", …}}, {"Sequence": {"id": "A", …}} and one more.
    tokens = [value.id for part in processor.single for value in part.values()]
    return [tokens[0], tokens[2]] if len(tokens) == 3 and tokens[1] == "A" else tokens


def _pair(processor: _Part | None) -> list[tuple[str, int]]:
    """The tokens of a pair and their types; "A" and "B" are the texts."""
    if processor is not None and processor.type == "TemplateProcessing":
        parts = [value for part in processor.pair for value in part.values()]
        return [(value.id, value.type_id) for value in parts]
    start, separator = _frame(processor)
    if processor is not None and processor.type == "RobertaProcessing":
        return [(each, 0) for each in (start, "A", separator, separator, "B", separator)]
    return [(start, 0), ("A", 0), (separator, 0), ("B", 1), (separator, 1)]


def _in_order(path: Path, vocabulary: Any) -> list[str]:
    """The words of a vocabulary in the order of their ids."""
    ids = _checked(path, vocabulary, dict[str, Count])
    words = sorted(ids, key=ids.__getitem__)
    if [ids[word] for word in words] != [*range(len(words))]:
        raise ValueError(
            f"{path}: $.model.vocab: expected the ids 0 to {len(words) - 1:,}, each once, found "
            f"others. {_REMEDY}"
        )
    return words


def _pairs(path: Path, merges: Iterable[str | tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Merges as pairs; in older files a merge is one string with a space between the pieces."""
    for merge in merges:
        parts = tuple(merge.split(" ")) if isinstance(merge, str) else merge
        if len(parts) != 2:
            raise ValueError(
                f"{path}: $.model.merges: expected pairs of pieces, found {merge!r:.80}. {_REMEDY}"
            )
        yield parts[0], parts[1]


def _checked(path: Path, value: Any, kind: Any) -> Any:
    return check_record(value, kind, where=os.fspath(path), remedy=_REMEDY)
