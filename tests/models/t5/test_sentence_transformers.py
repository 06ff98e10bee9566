from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from use_st5.convert.checkpoint import open_checkpoint
from use_st5.convert.sentencepiece_model import read_sentencepiece_model
from use_st5.models.t5.checkpoint import read_sentence_t5
from use_st5.models.t5.family import FAMILY
from use_st5.tokenizers.sentencepiece_tokenizer import T5_VOCABULARY, SentencePieceTokenizer

torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")
pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

TEXTS = ["How old are you?", "", "naïve café 😀", "What is your age? " * 12]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A model of sentence-transformers laid out as sentence-t5-base, and its folder."""
    base = tmp_path_factory.mktemp("base")
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=32_128, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=2
    )
    transformers.T5EncoderModel(config).save_pretrained(base)
    shutil.copy(T5_VOCABULARY, base / "spiece.model")
    transformers.T5Tokenizer.from_pretrained(base).save_pretrained(base)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
    modules = [
        Transformer(str(base), max_seq_length=64),
        Pooling(16, "mean"),
        Dense(16, 24, bias=False, activation_function=torch.nn.Identity()),
        Normalize(),
    ]
    model = sentence_transformers.SentenceTransformer(modules=modules)
    folder = tmp_path_factory.mktemp("saved")
    model.save(str(folder))
    return model, folder


def test_strings_to_vectors(saved: tuple[Any, Path]) -> None:
    peer, folder = saved
    model, tokenizer = FAMILY.read(open_checkpoint(folder))
    vectors = model(tokenizer.padded(tf.constant(TEXTS), 64))
    np.testing.assert_allclose(vectors, peer.encode(TEXTS), atol=1e-5)


def test_the_older_layout_of_the_pooling(saved: tuple[Any, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(saved[1], tmp_path / "old")
    old = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    path = folder / "1_Pooling" / "config.json"
    path.write_text(json.dumps({"word_embedding_dimension": 16, **old}), encoding="utf-8")
    assert read_sentence_t5(open_checkpoint(folder)).dimension == 24
    path.write_text(json.dumps({**old, "pooling_mode_cls_token": True}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"to be the mean, found 'cls\+mean'"):
        read_sentence_t5(open_checkpoint(folder))


def test_the_pooling_is_not_asked_for(saved: tuple[Any, Path]) -> None:
    for pooling in ("mean", "first"):
        with pytest.raises(ValueError, match="modules.json: expected no pooling as an argument"):
            FAMILY.read(open_checkpoint(saved[1]), pooling=pooling)


def test_another_dense_layer_is_refused(saved: tuple[Any, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(saved[1], tmp_path / "other")
    path = folder / "2_Dense" / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, "bias": True}), encoding="utf-8")
    with pytest.raises(ValueError, match="without bias and activation, found bias True"):
        read_sentence_t5(open_checkpoint(folder))


def test_a_rebuilt_vocabulary_gives_the_same_ids(
    saved: tuple[Any, Path], tmp_path: Path, data_dir: Path
) -> None:
    shutil.copy(saved[1] / "tokenizer.json", tmp_path)
    assert not (saved[1] / "spiece.model").exists(), "transformers 5 writes none"
    rebuilt = SentencePieceTokenizer(read_sentencepiece_model(tmp_path))
    original = SentencePieceTokenizer()
    assert rebuilt.vocabulary.size == original.vocabulary.size == 32_000
    path = data_dir / "oewn_definitions.tsv"
    texts = [*TEXTS, "a\u00a0b ﬁ ½ ẞ", *path.read_text(encoding="utf-8").splitlines()[::4]]
    for start in range(0, len(texts), 8192):
        batch = tf.constant(texts[start : start + 8192])
        np.testing.assert_array_equal(rebuilt.padded(batch), original.padded(batch))
