from __future__ import annotations

import base64
import json
import shutil
import sys
from pathlib import Path

import pytest

from use_st5.convert.sentencepiece_model import model_proto, read_sentencepiece_model
from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer


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
    with pytest.raises(FileNotFoundError, match=r"expected spiece.model.*found none"):
        read_sentencepiece_model(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE", "vocab": {}}}')
    with pytest.raises(
        ValueError, match=r"model.vocab: expected array, .*Give the tokenizer of a T5"
    ):
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
