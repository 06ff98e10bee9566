"""Tokenizer files of Hugging Face: ways to write one tokenizer, and what is refused."""

from __future__ import annotations

import base64
import copy
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.convert.tokenizer_examples import MERGES, PIECES, WORDS, byte_pair, ids_of, wordpiece
from use_st5.convert.tokenizer_files import model_proto, read_sentencepiece_model, read_tokenizer
from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

TEXTS = ["the cats", "É Ca é", "今日", "", "don't", "the 😀"]


def write(folder: Path, name: str, content: object) -> Path:
    folder.mkdir(exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def ids(folder: Path) -> np.ndarray:
    return read_tokenizer(folder).padded(tf.constant(TEXTS)).numpy()


SETTINGS: list[dict[str, Any]] = [
    {},
    {"do_lower_case": False},
    {"strip_accents": False},
    {"do_lower_case": False, "tokenize_chinese_chars": False},
    {"do_lower_case": False, "strip_accents": True},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_word_pieces_from_either_file(settings: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    plain = write(tmp_path / "plain", "vocab.txt", "".join(f"{word}\n" for word in WORDS))
    write(plain, "tokenizer_config.json", {"unk_token": "[UNK]", **settings})
    names = {"do_lower_case": "lowercase", "tokenize_chinese_chars": "handle_chinese_chars"}
    normalizer = {names.get(name, name): value for name, value in settings.items()}
    whole = write(tmp_path / "whole", "tokenizer.json", wordpiece(**normalizer))
    np.testing.assert_array_equal(ids(whole), ids(plain))
    assert read_tokenizer(whole).vocabulary == read_tokenizer(plain).vocabulary
    # The settings of tokenizer_config.json come first, as in transformers.
    both = write(tmp_path / "both", "tokenizer.json", wordpiece())
    write(both, "tokenizer_config.json", settings)
    np.testing.assert_array_equal(ids(both), ids(plain))


@pytest.mark.parametrize("name", ["BertTokenizer", "PreTrainedTokenizerFast"])
def test_settings_that_contradict_the_normalizer(name: str, tmp_path: Path) -> None:
    """A tokenizer of BERT takes its settings, a generic one the normalizer of tokenizer.json."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    transformers = pytest.importorskip("transformers", reason="the extra `peers` is not installed")
    write(tmp_path, "config.json", {"model_type": "bert"})
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "decoder": None,
        **wordpiece(),
    }
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    content["added_tokens"] = [{**each, **flags} for each in content["added_tokens"]]
    write(tmp_path, "tokenizer.json", content)
    settings = {"do_lower_case": False, "strip_accents": False, "tokenize_chinese_chars": False}
    write(tmp_path, "tokenizer_config.json", {"tokenizer_class": name, **settings})
    peer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    expected = [row.ids for row in peer.backend_tokenizer.encode_batch(TEXTS)]
    assert [np.trim_zeros(row, "b").tolist() for row in ids(tmp_path)] == expected


def test_byte_pairs_from_either_file(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain", "vocab.json", ids_of(PIECES))
    write(plain, "merges.txt", "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in MERGES))
    pairs = write(tmp_path / "pairs", "tokenizer.json", byte_pair(MERGES))
    strings = write(tmp_path / "strings", "tokenizer.json", byte_pair([*map(" ".join, MERGES)]))
    for folder in (pairs, strings):
        np.testing.assert_array_equal(ids(folder), ids(plain))
        assert read_tokenizer(folder).vocabulary == read_tokenizer(plain).vocabulary


def test_what_transformers_writes(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    transformers = pytest.importorskip("transformers", reason="the extra `peers` is not installed")
    plain = write(tmp_path / "bert", "vocab.txt", "".join(f"{word}\n" for word in WORDS))
    write(plain, "tokenizer_config.json", {"do_lower_case": False})
    roberta = write(tmp_path / "roberta", "vocab.json", ids_of([*PIECES, "<mask>"]))
    write(roberta, "merges.txt", "".join(f"{a} {b}\n" for a, b in MERGES))
    for folder, kind in (
        (plain, transformers.BertTokenizerFast),
        (roberta, transformers.RobertaTokenizerFast),
    ):
        peer = kind.from_pretrained(folder)
        peer.save_pretrained(tmp_path / "saved")
        np.testing.assert_array_equal(ids(tmp_path / "saved"), ids(folder))
        expected = [row.ids for row in peer.backend_tokenizer.encode_batch(TEXTS)]
        swap = {0: 1, 1: 0} if folder is roberta else {}
        found = [np.trim_zeros(row, "b").tolist() for row in ids(tmp_path / "saved")]
        assert found == [[swap.get(each, each) for each in row] for row in expected]


def changed(make: Callable[[], dict[str, Any]], path: str, value: object) -> dict[str, Any]:
    tokenizer = copy.deepcopy(make())
    *parents, name = path.split(".")
    place = tokenizer
    for parent in parents:
        place = place[parent]
    place[name] = value
    return tokenizer


REFUSED = [
    (wordpiece, "normalizer", {"type": "NFD"}, "expected WordPiece.*found WordPiece, NFD"),
    (wordpiece, "normalizer.clean_text", False, "clean_text, .*found .False"),
    (wordpiece, "post_processor", None, r"post_processor: expected .*'\[SEP\]'\].*, found \[\]"),
    (wordpiece, "model.max_input_chars_per_word", 50, "expected .*100.*found .*50"),
    (wordpiece, "model.vocab.cat", 4, "sorted ids: expected .0, 1"),
    (wordpiece, "model.vocab", {"a": 0}, r"words .*\[PAD\], .*\[UNK\]"),
    (wordpiece, "model", {"type": "Unigram", "vocab": []}, "found Unigram, BertNormalizer"),
    (wordpiece, "added_tokens", [{"id": 12, "content": "covid", "single_word": True}],
     r"'covid': single_word, lstrip, rstrip: expected \(False, .*found \(True"),
    (wordpiece, "added_tokens", [{"id": 2**40, "content": "covid"}],
     r"\$.added_tokens\[0\].id: expected int <= 2147483647"),
    (wordpiece, "model.unk_token", "u" * 10**5, r"expected .*'\[UNK\]'.*found \(True, 'u{192}\. "),
    (wordpiece, "pre_tokenizer.type", "p" * 10**5, r"found WordPiece, BertNormalizer, p{80}\. "),
    (wordpiece, "post_processor.cls", ["c" * 10**5, 2], r"found \['c{198}\. "),
    (wordpiece, "post_processor",
     {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": []}}]},
     r"post_processor: expected"),
    (byte_pair, "pre_tokenizer.add_prefix_space", True, "add_prefix_space: expected False, found"),
    (byte_pair, "normalizer", {"type": "NFKC"}, "found BPE, NFKC, ByteLevel"),
    (byte_pair, "model.merges", ["a b c"], "too many values"),
    (byte_pair, "model.ignore_merges", True, "model: expected"),
    (byte_pair, "post_processor", {"type": "ByteLevel"}, r"found \['ByteLevel'\]"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "path", "value", "message"), REFUSED)
def test_another_tokenizer_is_refused_in_one_line(
    make: Any, path: str, value: object, message: str, tmp_path: Path
) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    whole = (lambda: byte_pair([*MERGES])) if make is byte_pair else wordpiece
    write(tmp_path, "tokenizer.json", changed(whole, path, value))
    with pytest.raises(ValueError, match=message) as caught:
        read_tokenizer(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "tokenizer.json"))
    assert "\n" not in str(caught.value)


def test_no_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"expected tokenizer.json, vocab.txt, vocab.json and"
    ):
        read_tokenizer(tmp_path)
    write(tmp_path, "vocab.json", ids_of(PIECES))
    with pytest.raises(FileNotFoundError, match="merges.txt"):
        read_tokenizer(tmp_path)
    write(tmp_path, "tokenizer_config.json", {"do_basic_tokenize": False})
    with pytest.raises(ValueError, match="tokenizer_config.json: do_basic_tokenize: "):
        read_tokenizer(tmp_path)


def test_mt5_rebuilt_from_what_transformers_5_writes(tmp_path: Path, data_dir: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra `peers` is not installed")
    spm = pytest.importorskip("sentencepiece", reason="the extra `dev` is not installed")
    model = data_dir / "vocab/mt5-cn-subset/sentencepiece_cn.model"
    shutil.copy(model, tmp_path / "spiece.model")
    assert read_sentencepiece_model(tmp_path) == model.read_bytes()
    tokenizer = transformers.T5TokenizerFast.from_pretrained(tmp_path, extra_ids=0)
    folder = tmp_path / "saved"
    tokenizer.save_pretrained(folder)
    assert not (folder / "spiece.model").exists()
    rebuilt = spm.SentencePieceProcessor(model_proto=read_sentencepiece_model(folder))
    original = spm.SentencePieceProcessor(model_file=str(model))
    texts = ["", "naïve café 😀", "\x00", "ﬁ ½"]
    for language in ("de", "zh", "th", "ur"):
        text = (data_dir / f"xnli/dev-{language}.tsv").read_text(encoding="utf-8")
        texts += text.split("\n")[:500]
    assert rebuilt.encode(texts) == original.encode(texts)
    # These are bytes; transformers' own tokenizer has an unknown token there.
    assert original.encode("Ж") == [259, 211, 153]


def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="tokenizer.json: expected a file"):
        read_sentencepiece_model(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE", "vocab": {}}}')
    with pytest.raises(ValueError, match="found .*BPE.*Give the tokenizer"):
        read_sentencepiece_model(tmp_path)


def test_t5_rebuilt_without_generated_code(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if protobuf were older than the generated code in the package sentencepiece."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    monkeypatch.setitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", None)
    original = (repository / "use_st5/tokenizers/vocabularies/t5.model").read_bytes()
    proto = model_proto()
    proto.ParseFromString(original)
    assert len(proto.pieces) == 32_000
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    tokenizer = {
        "model": {
            "type": "Unigram",
            "unk_id": 2,
            "vocab": [[each.piece, each.score] for each in proto.pieces] + [["<extra_id_0>", 0.0]],
        },
        "added_tokens": [{"content": "<pad>"}, {"content": "<extra_id_0>"}],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    rebuilt = SentencePieceTokenizer(read_sentencepiece_model(tmp_path))
    texts = ["How old are you?", "", "naïve café 😀", "ﬁ ½", "  two  spaces "]
    expected = SentencePieceTokenizer(original).padded(texts)
    assert (rebuilt.padded(texts).numpy() == expected.numpy()).all()


def test_the_message_is_that_of_the_package() -> None:
    try:
        from sentencepiece import sentencepiece_model_pb2
    except Exception as error:  # its generated code needs a newer protobuf
        pytest.skip(f"sentencepiece's generated code does not load: {error}")
    for name in ("pieces", "trainer_spec", "normalizer_spec"):
        mine = model_proto().DESCRIPTOR.fields_by_name[name].message_type
        theirs = sentencepiece_model_pb2.ModelProto.DESCRIPTOR.fields_by_name[name].message_type
        for field in mine.fields:
            assert field.number == theirs.fields_by_name[field.name].number, field.name
