from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from use_st5.convert.sentencepiece_model import read_sentencepiece_model


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
    # Bytes: transformers' own tokenizer has an unknown token there.
    assert original.encode("Ж") == [259, 211, 153]


def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"expected spiece.model.*found none"):
        read_sentencepiece_model(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE", "vocab": {}}}')
    with pytest.raises(
        ValueError, match=r"model.vocab: expected array, .*Give the tokenizer of a T5"
    ):
        read_sentencepiece_model(tmp_path)
