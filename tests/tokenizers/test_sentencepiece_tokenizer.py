from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
spm = pytest.importorskip("sentencepiece", reason="the extra `dev` is not installed")

from use_st5.convert.tokenizer_files import read_sentencepiece_model  # noqa: E402
from use_st5.tokenizers.sentencepiece_tokenizer import (  # noqa: E402
    T5_VOCABULARY,
    SentencePieceTokenizer,
    model_proto,
)

ODD = [
    "", "   ", " a  b ", "tab\there", "é́ ½ ﬁ ẞ", "😀 emoji 漢字", "a\u00a0b\u200bc\ufeff",
    "<extra_id_0> </s> <pad> <unk>", "Hmmm", "a" * 3000, "word " * 10_000, "\x00 nul", "ﷺ",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieceTokenizer:
    return SentencePieceTokenizer()


@pytest.fixture(scope="module")
def package() -> spm.SentencePieceProcessor:
    return spm.SentencePieceProcessor(model_file=str(T5_VOCABULARY))


def ids(tokenizer: SentencePieceTokenizer, texts: list, **options: int) -> list[list[int]]:
    """The ids of each text, padding removed."""
    rows = tokenizer.padded(tf.constant(texts, tf.string), **options).numpy()
    return [np.trim_zeros(row, "b").tolist() for row in rows]


def test_golden() -> None:
    # Ids of T5's vocabulary as printed in the documentation of transformers' T5.
    tokenizer = SentencePieceTokenizer()
    assert ids(tokenizer, ["The house is wonderful."]) == [[37, 629, 19, 1627, 5, 1]]
    assert tokenizer.vocabulary.size == 32_000


def test_odd_texts_have_the_ids_of_the_sentencepiece_package(
    tokenizer: SentencePieceTokenizer, package: spm.SentencePieceProcessor
) -> None:
    expected = [[*row, package.eos_id()] for row in package.encode(ODD)]
    assert ids(tokenizer, ODD) == expected


def test_real_texts_have_the_ids_of_the_sentencepiece_package(
    tokenizer: SentencePieceTokenizer, package: spm.SentencePieceProcessor, data_dir: Path
) -> None:
    files = [
        *sorted(data_dir.glob("text/100_english_novels/corpus/*.txt"))[:3],
        data_dir / "oewn_definitions.tsv",
        data_dir / "self_dialogue.jsonl",
        data_dir / "sts_raw/stsbenchmark/sts-train.csv",
    ]
    texts = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    texts = [text[:400] for text in texts[:: max(1, len(texts) // 50_000)]]
    assert len(texts) > 40_000
    for start in range(0, len(texts), 4096):
        batch = texts[start : start + 4096]
        expected = [[*row, package.eos_id()] for row in package.encode(batch)]
        assert ids(tokenizer, batch) == expected


def test_a_long_text_is_cut_before_the_end_is_added(tokenizer: SentencePieceTokenizer) -> None:
    (whole,) = ids(tokenizer, ["one two three four five six seven"])
    rows = tokenizer.padded(tf.constant(["one two three four five six seven", "one"]), 4).numpy()
    assert rows.tolist() == [[*whole[:3], 1], [whole[0], 1, 0, 0]]
    assert rows.dtype == np.int32


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes(b"no such thing")
    with pytest.raises(ValueError, match="spiece.model: expected a SentencePiece model"):
        SentencePieceTokenizer(tmp_path / "spiece.model")
    with pytest.raises(FileNotFoundError):
        SentencePieceTokenizer(tmp_path / "absent.model")
    with pytest.raises(ValueError, match=">= 2, received 1"):
        SentencePieceTokenizer().padded(tf.constant(["a"]), 1)


def with_charsmap(change: Callable[[bytearray], bytes | bytearray]) -> bytes:
    proto = t5_proto()
    table = bytearray(proto.normalizer_spec.precompiled_charsmap)
    proto.normalizer_spec.precompiled_charsmap = bytes(change(table))
    return proto.SerializeToString()


def with_piece(**changes: Any) -> bytes:
    proto = t5_proto()
    for name, value in changes.items():
        setattr(proto.pieces[100], name, value)
    return proto.SerializeToString()


def with_spec(**changes: Any) -> bytes:
    proto = t5_proto()
    for name, value in changes.items():
        setattr(proto.trainer_spec, name, value)
    return proto.SerializeToString()


def t5_proto() -> Any:
    proto = model_proto()
    proto.ParseFromString(T5_VOCABULARY.read_bytes())
    return proto


FAR = b"\xff\xff\xff\x7f"  # a unit of the trie that leads far beyond it
TEXTS_FAR = b"\xff\xff\xff\xff"  # a unit that leads to a text far beyond all


# tensorflow-text crashes at most of these, and makes other ids of the others.
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: with_charsmap(lambda table: b"\0\0\0\x80" + table[4:]), "a damaged"),
        (lambda: with_charsmap(lambda table: b"\0\0\0\0" + table[4:]), "a damaged"),
        (lambda: with_charsmap(lambda table: b"ab"), "a damaged"),
        (lambda: with_charsmap(lambda table: table[:-1]), "a damaged"),
        (lambda: with_charsmap(lambda table: table[:4] + FAR + table[8:]), "a damaged"),
        (lambda: with_charsmap(lambda table: table[:4] + TEXTS_FAR + table[8:]), "a damaged"),
        (lambda: with_piece(piece="c" * 10**6), "pieces that are empty or longer"),
        (lambda: with_piece(piece=""), "pieces that are empty"),
        (lambda: with_piece(piece="▁the"), "a piece twice"),
        (lambda: with_piece(score=math.nan), "scores beyond"),
        (lambda: with_piece(score=1e38), "scores beyond"),
        (lambda: with_spec(unk_id=-1), "unk_id -1"),
        (lambda: with_spec(unk_id=100), "unk_id 100"),
        (lambda: with_spec(model_type=2), "type 2"),
        (lambda: b"", "0 pieces"),
        (lambda: T5_VOCABULARY.read_bytes()[:1001], "SentencePiece model .*pars"),
    ],
)
def test_damage_is_refused_before_tensorflow_text_reads_it(
    tmp_path: Path, make: Callable[[], bytes], message: str
) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(make())
    for read in (lambda: SentencePieceTokenizer(path), lambda: read_sentencepiece_model(tmp_path)):
        with pytest.raises(ValueError, match=f"spiece.model: expected .*{message}") as caught:
            read()
        assert len(str(caught.value)) < len(str(path)) + 400


@pytest.fixture(scope="module")
def mt5_subset(data_dir: Path) -> tuple[Path, list[int]]:
    """32,596 of mT5's 250,100 pieces, and their ids in mT5."""
    folder = data_dir / "vocab/mt5-cn-subset"
    kept = json.loads((folder / "sentencepiece_cn_keep_tokens.json").read_text())
    return folder / "sentencepiece_cn.model", kept


def test_mt5_spells_what_it_has_no_piece_for(
    mt5_subset: tuple[Path, list[int]], data_dir: Path
) -> None:
    package = spm.SentencePieceProcessor(model_file=str(mt5_subset[0]))
    tokenizer = SentencePieceTokenizer(mt5_subset[0])
    texts = [*ODD]
    for language in ("en", "zh", "ru", "th", "vi", "ar", "hi"):
        text = (data_dir / f"xnli/dev-{language}.tsv").read_text(encoding="utf-8")
        texts += [field for line in text.split("\n")[:200] for field in line.split("\t")[:2]]
    expected = package.encode(texts)
    assert any(3 <= piece < 259 for row in expected for piece in row)
    assert ids(tokenizer, texts) == [[*row, package.eos_id()] for row in expected]


def test_pieces_of_a_subset_have_the_ids_of_the_whole(
    mt5_subset: tuple[Path, list[int]],
) -> None:
    model, kept = mt5_subset
    whole = SentencePieceTokenizer(model, piece_ids=kept)
    # 250,000 pieces and 100 sentinels, the last of which is <extra_id_0>.
    assert whole.vocabulary.size == 250_100
    part = SentencePieceTokenizer(model)
    assert part.vocabulary.size == 32_596
    text = ["\u6211\u7231\u4f60 Hello", "", "\u0416"]
    assert ids(whole, text) == [[kept[piece] for piece in row] for row in ids(part, text)]
    # mT5's piece 260 is the full stop, 261 the comma.
    assert ids(whole, [",."])[0][-3:] == [261, 260, 1]


@pytest.mark.parametrize("wrong", [[0, 1, 2], [*range(1, 40_000)], [0, 1, *range(50_000, 0, -1)]])
def test_piece_ids_that_do_not_fit(wrong: list[int]) -> None:
    with pytest.raises(ValueError, match="expected 32000 ascending"):
        SentencePieceTokenizer(piece_ids=wrong)
