"""Ids of a Transformer's tokens without TensorFlow, compared with those of the graph."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.engines.fuzzed import every_code_point, fuzzed_texts
from tests.tokenizers.real_sentences import real_sentences
from tests.tokenizers.test_added_tokens import write
from tests.tokenizers.test_framed_sentencepiece_tokenizer import whole
from use_st5.convert.tokenizer_files import MPNET_TOKENS, read_framed_model
from use_st5.engines.token_ids import FramedIds, open_tokenizer
from use_st5.hub.model_names import bundled_folder
from use_st5.tokenizers.byte_pair_tokenizer import BytePairTokenizer, byte_letters
from use_st5.tokenizers.framed_tokenizer import AddedToken
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.sentencepiece_tokenizer import (
    FramedSentencePieceTokenizer,
    SentencePieceTokenizer,
)
from use_st5.tokenizers.token_tokenizer import PieceTokenizer, UnigramTokenizer
from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

MERGES = [("t", "h"), ("th", "e"), ("Ġ", "c"), ("a", "t"), ("Ġc", "at"), ("a", "a"), ("'", "s")]
HARD = [
    *("don't we'll I'd it's 's's", "the cat's thethe cat" * 5, "x" * 300, "[SEP] <s> </s> <mask>"),
    *(
        " a  b ",
        "a \n\nb",
        "trail \n ",
        "1st 22nd ½ Ⅻ",
        "😀😀 👍🏽",
        "漢字 かな 한국어",
        "हिन्दी में ไทย",
    ),
    *("", " ", "İ ẞ ß ﬁ é", "antidisestablishmentarianism-like 26,000", "q" * 40 + " zz#@!"),
]


def tokenizer(kind: str, data_dir: Path | None) -> Any:
    """One of the graph's tokenizers."""
    if kind in ("pieces", "unigrams"):
        path = bundled_folder("use_transformer_en") / "assets" / "vocabulary.txt"
        made = PieceTokenizer if kind == "pieces" else UnigramTokenizer
        return made(NGramVocabulary.load(path))
    pytest.importorskip("tokenizers", reason="the extra `onnx` is not installed")
    if kind == "byte_pair":
        pieces = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", *byte_letters(), *map("".join, MERGES))
        return BytePairTokenizer({piece: n for n, piece in enumerate(pieces)}, MERGES)
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    if kind == "sentencepieces":
        pytest.importorskip("sentencepiece", reason="the extra `onnx` is not installed")
        return SentencePieceTokenizer()
    if kind == "framed_sentencepieces":
        with tempfile.TemporaryDirectory() as folder:
            return FramedSentencePieceTokenizer(read_framed_model(write(Path(folder), whole())))
    if data_dir is None:
        words = [
            "[PAD]",
            "[UNK]",
            "[CLS]",
            "[SEP]",
            *["the", "cat", "##s", "a", "##n", "##t", "do", "'", "i", "ß", "é"],
        ]
    else:
        words = (data_dir / "vocab/bert-base-uncased/vocab.txt").read_text("utf-8").splitlines()
    return WordPieceTokenizer(words, lower_case=data_dir is not None)


def test_padding_and_the_first_piece_change_places(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="the extra `onnx` is not installed")
    pieces = (*byte_letters(), *map("".join, MERGES), "</s>", "<s>", "<unk>", "<mask>", "<pad>")
    graph = BytePairTokenizer({piece: n for n, piece in enumerate(pieces)}, MERGES)
    for asset in graph._assets:
        shutil.copy(asset.asset_path.numpy().decode(), tmp_path)
    rows = [row[row != 0].tolist() for row in graph.padded(tf.constant(HARD)).numpy()]
    assert open_tokenizer("byte_pair", tmp_path).ids(HARD) == rows


@pytest.mark.parametrize("kind", ["byte_pair", "sentencepieces", "wordpiece"])
@pytest.mark.parametrize("far", ["\n" * 3_000, " " * 3_000, "\u200b" * 3_000, "0a" * 1_500 + " "])
def test_the_first_tokens_of_a_long_text_may_be_far(
    kind: str, far: str, tmp_path: Path, data_dir: Path | None
) -> None:
    graph = tokenizer(kind, data_dir)
    for asset in graph._assets:
        shutil.copy(asset.asset_path.numpy().decode(), tmp_path)
    engine = open_tokenizer(kind, tmp_path)
    texts = [f"{far}the cat", f"the{far}cat", f"the cat {far} a cat", "the cat " * 500 + far]
    rows = [row[row != 0].tolist() for row in graph.padded(tf.constant(texts), 10).numpy()]
    assert engine.ids(texts, 10) == rows


KINDS = [
    "pieces",
    "unigrams",
    "byte_pair",
    "sentencepieces",
    "framed_sentencepieces",
    "wordpiece",
]


def check(made: Any, kind: str, folder: Path, texts: list[str]) -> None:
    root = tf.train.Checkpoint(tokenizer=made)
    tf.saved_model.save(root, str(folder / "model"))
    ours = open_tokenizer(kind, folder / "model" / "assets")
    for limit in (None, 9):
        for start in range(0, len(texts), 2000):
            batch = texts[start : start + 2000]
            graph = made.padded(tf.constant(batch), limit).numpy()
            expected = [np.trim_zeros(row, "b").tolist() for row in graph]
            found = ours.ids(batch, limit)
            for text, one, other in zip(batch, found, expected, strict=True):
                assert one == other, repr(text)
            if isinstance(ours, FramedIds):
                assert by_tokenizers(ours, folder / "tokenizer.json", batch, limit) == found


def by_tokenizers(
    ours: FramedIds, file: Path, texts: list[str], limit: int | None
) -> list[list[int]]:
    """The ids from the file that we write for the package tokenizers."""
    from tokenizers import Tokenizer

    ours.write(file, limit)
    return [each.ids for each in Tokenizer.from_file(str(file)).encode_batch_fast(texts)]


@pytest.mark.parametrize("kind", KINDS)
def test_hard_and_fuzzed_texts(kind: str, tmp_path: Path) -> None:
    texts = [*HARD, *fuzzed_texts(1000)]
    if kind in ("byte_pair", "wordpiece"):  # Their tables of Unicode are compared elsewhere.
        texts = [*HARD, *(text for text in fuzzed_texts(1000) if max(text, default="a") < "\u3000")]
    check(tokenizer(kind, None), kind, tmp_path, texts)


@pytest.mark.parametrize("kind", KINDS)
def test_real_sentences(kind: str, tmp_path: Path, data_dir: Path) -> None:
    check(tokenizer(kind, data_dir), kind, tmp_path, real_sentences(data_dir, 6000))


def test_pieces_of_code_points(tmp_path: Path) -> None:
    texts = [f"qz{text}xq" for text in every_code_point("{}")[::97]]
    check(tokenizer("pieces", None), "pieces", tmp_path, texts)


def test_runs_after_unknown_characters(tmp_path: Path) -> None:
    """Pieces of a run have equal sums of scores: how they are rounded depends on what is before."""
    runs = [
        f"{before}{mark * n}" for before in "漢😀é☃" for mark in "_-.=*!+#" for n in range(1, 32)
    ]
    texts = [*runs, *("漢字___ ___", "\u2581漢____________", "ﬁ\u0301漢****", "e\u0301 漢________")]
    check(tokenizer("sentencepieces", None), "sentencepieces", tmp_path, texts)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({}))
    with pytest.raises(ValueError, match="no engine has a tokenizer 'letters'"):
        open_tokenizer("letters", tmp_path)


def test_other_special_tokens_are_known_and_added_ones_are_refused() -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    pytest.importorskip("tokenizers", reason="the extra `onnx` is not installed")
    words = ["<s>", "<pad>", "</s>", "[UNK]", "the", "cat"]

    def assets(**how: Any) -> tuple[WordPieceTokenizer, Path]:
        made = WordPieceTokenizer(words, special=MPNET_TOKENS, **how)
        return made, Path(made._assets[0].asset_path.numpy().decode()).parent

    made, folder = assets()
    expected = made.padded(["the cat ran"]).numpy().tolist()
    assert open_tokenizer("wordpiece", folder).ids(["the cat ran"]) == expected == [[1, 4, 5, 3, 2]]
    made, folder = assets(added=[AddedToken("covid", 6)])
    with pytest.raises(ValueError, match="has added tokens.*backend='tensorflow'"):
        open_tokenizer("wordpiece", folder)


@pytest.mark.parametrize(
    ("kind", "file", "content", "message"),
    [
        ("wordpiece", "wordpiece.json", b"{", r"expected JSON"),
        ("wordpiece", "vocab.txt", b"[PAD]\n[UNK]\n[SEP]\n", r"\[CLS\]"),
        ("wordpiece", "vocab.txt", b"\xff", "UnicodeDecodeError"),
        ("byte_pair", "vocab.json", b'{"<s>": 0}', "<pad>"),
        ("byte_pair", "vocab.json", b'{"<s>": "a"}', "expected int"),
        ("byte_pair", "merges.txt", b"t h e\n", "is no file of a tokenizer"),
        ("byte_pair", "merges.txt", b"nothing known\n", "is no file of a tokenizer"),
        ("sentencepieces", "sentencepiece.model", b"other", "is no file of a tokenizer"),
        ("sentencepieces", "piece_ids.txt", b"1 two", "is no file of a tokenizer"),
    ],
)
def test_damaged_assets_are_refused(
    kind: str, file: str, content: bytes, message: str, tmp_path: Path
) -> None:
    """The error is one line that names the file, as with TensorFlow."""
    made = tokenizer(kind, None)
    for asset in made._assets:
        shutil.copy(asset.asset_path.numpy().decode(), tmp_path)
    open_tokenizer(kind, tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=rf"/{re.escape(file)}: .*{message}.*again"):
        open_tokenizer(kind, tmp_path)
