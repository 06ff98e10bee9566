"""XLM-RoBERTa's ids, compared with Hugging Face's, over T5's pieces and normalisation."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tokenizers.real_sentences import real_sentences
from use_st5.convert.tokenizer_files import model_proto, read_framed_model, read_tokenizer
from use_st5.tokenizers.sentencepiece_tokenizer import T5_VOCABULARY

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

from use_st5.tokenizers.sentencepiece_tokenizer import (  # noqa: E402
    FramedSentencePieceTokenizer,
)

TEXTS = [
    "Hello, world!", "", " ", "naïve café ﬁﬂ ½ …", "日本語 と 中文", "👩‍👩‍👧 emoji 🎉!", "a" * 150,
    "  two  spaces\tand\nlines ", "Straße für die Mäuse.", "x▁y", "\u00a0\u3000",
    "the\u0085cat",
]  # fmt: skip


def t5_proto() -> Any:
    proto = model_proto()
    proto.ParseFromString(T5_VOCABULARY.read_bytes())
    return proto


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}


def whole() -> dict[str, Any]:
    """A `tokenizer.json` of an XLM-RoBERTa with T5's pieces."""
    proto = t5_proto()
    pieces = [
        [each.piece, each.score] for each in proto.pieces if each.type in (0, 1)
    ]  # 0: not set, which means ordinary
    special = [[name, 0.0] for name in ("<s>", "<pad>", "</s>", "<unk>")]
    vocabulary = [*special, *pieces, ["<mask>", 0.0]]
    table = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    frame = {name: {"SpecialToken": {"id": name, "type_id": 0}} for name in ("<s>", "</s>")}
    one, two = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    end = frame["</s>"]
    ids = {"<s>": 0, "</s>": 2}
    return {
        "version": "1.0", "truncation": None, "padding": None, "decoder": None,
        "added_tokens": [
            {"id": number, "content": name, "special": True, "single_word": False,
             "lstrip": False, "rstrip": False, "normalized": False}
            for number, name in enumerate(["<s>", "<pad>", "</s>", "<unk>"])
        ],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": table},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"},
            METASPACE,
        ]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [frame["<s>"], one, end],
            "pair": [frame["<s>"], one, end, end, two, end],
            "special_tokens": {
                name: {"id": name, "ids": [number], "tokens": [name]}
                for name, number in ids.items()
            },
        },
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocabulary, "byte_fallback": False},
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("xlm_roberta")
    (home / "tokenizer.json").write_text(json.dumps(whole()), encoding="utf-8")
    return home


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> FramedSentencePieceTokenizer:
    found = read_tokenizer(folder)
    assert isinstance(found, FramedSentencePieceTokenizer)
    return found


def rows(ids: Any) -> list[list[int]]:
    """The rows without padding, with Hugging Face's ids."""
    swap = {1: 0, 0: 1}
    return [
        [swap.get(each, each) for each in np.trim_zeros(row, "b").tolist()] for row in np.array(ids)
    ]


def test_ids_of_texts_and_pairs(tokenizer: FramedSentencePieceTokenizer, folder: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `peers` is not installed")
    peer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    expected = [each.ids for each in peer.encode_batch(TEXTS)]
    assert rows(tokenizer.padded(TEXTS)) == expected
    assert tokenizer.token_counts(TEXTS).numpy().tolist() == [*map(len, expected)]
    pairs = [*zip(TEXTS, TEXTS[::-1], strict=True)]
    expected = [each.ids for each in peer.encode_batch(pairs)]
    assert rows(tokenizer.padded_pairs(TEXTS, TEXTS[::-1])) == expected


@pytest.mark.end_to_end
def test_ids_of_real_sentences(
    tokenizer: FramedSentencePieceTokenizer, folder: Path, data_dir: Path
) -> None:
    """Ids differ only if two ways to cut a word have the same score, and so rounding decides."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `peers` is not installed")
    peer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    scores = np.array([score for _, score in whole()["model"]["vocab"]])
    # Without the line numbers of a file, and without a special token that one line contains.
    texts = [each.split("\t")[-1].replace("<unk>", "unk") for each in real_sentences(data_dir)[::4]]
    different = 0
    for start in range(0, len(texts), 1000):
        some = texts[start : start + 1000]
        expected = [each.ids for each in peer.encode_batch(some)]
        for one, two in zip(rows(tokenizer.padded(some)), expected, strict=True):
            if one != two:
                different += 1
                assert scores[one].sum() == pytest.approx(scores[two].sum(), abs=1e-3)
    assert different <= 10, different


def test_special_tokens(tokenizer: FramedSentencePieceTokenizer) -> None:
    assert (tokenizer.separator, tokenizer.padding_id) == (2, 1)
    assert tokenizer.mask == tokenizer.vocabulary.size - 1 == len(whole()["model"]["vocab"]) - 1
    # In a text, special tokens are ordinary characters.
    assert 2 not in tokenizer.pieces(["</s> <mask>"]).numpy()[0].tolist()


def test_the_original_file_gives_the_same_model(folder: Path, tmp_path: Path) -> None:
    """Fairseq's ids are those of its SentencePiece model plus 1."""
    source, proto = t5_proto(), model_proto()
    for piece, kind in (("<unk>", 2), ("<s>", 3), ("</s>", 3)):
        proto.pieces.add(piece=piece, type=kind)
    for each in source.pieces:
        if each.type in (0, 1):
            proto.pieces.add(piece=each.piece, score=each.score, type=1)
    proto.trainer_spec.model_type = 1
    table = source.normalizer_spec.precompiled_charsmap
    proto.normalizer_spec.precompiled_charsmap = table
    (tmp_path / "sentencepiece.bpe.model").write_bytes(proto.SerializeToString())
    assert read_framed_model(tmp_path) == read_framed_model(folder)
    assert read_tokenizer(tmp_path).vocabulary == read_tokenizer(folder).vocabulary


def test_an_exported_vocabulary(tokenizer: FramedSentencePieceTokenizer) -> None:
    (asset,) = tokenizer._assets
    home = Path(asset.asset_path.numpy().decode()).parent
    again = FramedSentencePieceTokenizer.from_assets(home)
    assert again.vocabulary == tokenizer.vocabulary
    np.testing.assert_array_equal(again.padded(TEXTS), tokenizer.padded(TEXTS))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model.vocab", [["<pad>", 0.0], ["</s>", 0.0]], r"first pieces: .*found .*'<pad>'"),
        ("model.byte_fallback", True, "byte_fallback: expected False, found True"),
        ("normalizer", {"type": "Lowercase"}, "found Unigram, Lowercase, Sequence"),
        ("pre_tokenizer", {"type": "ByteLevel"}, r"expected \['Metaspace'\], found \['ByteL"),
        ("post_processor", None, r"expected \['<s>', '</s>'\], found \[\]"),
        ("pre_tokenizer", METASPACE | {"replacement": "_"},
         r"expected \('▁', 'always', True\), found \('_', 'always', True\)"),
        ("pre_tokenizer.pretokenizers",
         [{"type": "WhitespaceSplit"}, METASPACE | {"prepend_scheme": "first"}], "found .*'first'"),
        ("pre_tokenizer", METASPACE | {"prepend_scheme": "never"}, "found .*'never'"),
        ("pre_tokenizer", METASPACE | {"add_prefix_space": False}, "found .*False"),
        ("normalizer", {"type": "Replace", "pattern": {"String": "a"}, "content": "b"},
         r"Replace: expected .* \{2,\}.*, found \(\{'String': 'a'\}, 'b'\)"),
        ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "ab=?" * 1000},
         "base64|padding|ase64|character"),
        ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "////f2FhYWE="},
         "tokenizer.json: .*a damaged"),
        ("model.unk_id", 10**9, "found .*1000000000"),
        ("model.vocab.9", ["c" * 10**6, -1.0], "pieces that are empty or longer"),
        ("model.vocab.9", ["c", 1e308], "scores beyond"),
    ],
)  # fmt: skip
def test_another_tokenizer_is_refused(
    path: str, value: object, message: str, tmp_path: Path
) -> None:
    content = whole()
    content["model"]["vocab"] = content["model"]["vocab"][:20]
    *parents, name = path.split(".")
    place = content
    for parent in parents:
        place = place[parent]
    place[int(name) if name.isdecimal() else name] = value
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        read_tokenizer(tmp_path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < len(str(tmp_path)) + 600


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lacks <pad>"):
        FramedSentencePieceTokenizer(b"\xff\x00")
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"\xff\x00")
    with pytest.raises(ValueError, match=r"sentencepiece.bpe.model: .*Give the tokenizer"):
        read_tokenizer(tmp_path)
