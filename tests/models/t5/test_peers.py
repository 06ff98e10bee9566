"""T5 and Sentence-T5, read from folders of transformers and sentence-transformers."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.models.t5 import peer as t5_peer
from tests.models.t5.peer import PEER_IDS, peer_outputs, read_t5
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.convert.tokenizer_files import read_sentencepiece_model
from use_st5.models.t5.checkpoint import read_sentence_t5
from use_st5.models.t5.family import FAMILY
from use_st5.models.t5.sentence_t5 import POOLINGS
from use_st5.tokenizers.sentencepiece_tokenizer import T5_VOCABULARY, SentencePieceTokenizer

torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module", params=["relu", "gated_gelu"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """A model of transformers and the folder it was saved to, in several shards."""
    model = t5_peer.peer(request.param)
    folder = tmp_path_factory.mktemp("huggingface") / request.param
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len([*folder.glob("*.safetensors")]) > 2
    return model, folder


def long_ids() -> np.ndarray:
    """Ids longer than the relative bias's last exact distance, padded on the right."""
    ids = np.random.default_rng(0).integers(2, 100, (4, 150)).astype("int32")
    ids[1, 60:], ids[2, 3:] = 0, 0
    return ids


def peer_pass(peer: Any, ids: np.ndarray, decoder_ids: np.ndarray) -> Any:
    with torch.no_grad():
        return peer(
            input_ids=torch.tensor(ids).long(),
            attention_mask=torch.tensor(ids != 0).long(),
            decoder_input_ids=torch.tensor(decoder_ids).long(),
            output_hidden_states=True,
        )


def test_the_whole_model(saved: tuple[Any, Path]) -> None:
    peer, folder = saved
    model, ids = read_t5(open_checkpoint(folder)), long_ids()
    decoder_ids = np.pad(ids[::-1, :19], [(0, 0), (1, 0)])
    expected = peer_pass(peer, ids, decoder_ids).logits.numpy()
    logits = model({"encoder_ids": ids, "decoder_ids": decoder_ids})
    np.testing.assert_allclose(logits, expected, atol=2e-6 * max(np.abs(expected).max(), 10))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_sentence_encoder(saved: tuple[Any, Path], pooling: str) -> None:
    peer, folder = saved
    ids = long_ids()
    out = peer_pass(peer, ids, np.zeros((4, 1)))
    encoded, mask = out.encoder_last_hidden_state.numpy(), (ids != 0)[..., None]
    expected = {
        "mean": (encoded * mask).sum(1) / mask.sum(1),
        "first": encoded[:, 0],
        "decoder": out.decoder_hidden_states[-1].numpy()[:, 0],
    }[pooling]
    model = read_sentence_t5(open_checkpoint(folder).chosen(pooling=pooling))
    np.testing.assert_allclose(model(ids), expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_storage_is_computed_in_float32(
    saved: tuple[Any, Path], tmp_path: Path, dtype: str
) -> None:
    peer, folder = saved
    stored = transformers.T5ForConditionalGeneration.from_pretrained(
        folder, dtype=getattr(torch, dtype)
    )
    stored.save_pretrained(tmp_path)
    rounded = stored.float().eval()
    model = read_t5(open_checkpoint(tmp_path))
    assert model.embedding.embeddings.dtype == "float32"
    logits = model({"encoder_ids": PEER_IDS, "decoder_ids": np.zeros((3, 1), np.int32)})
    np.testing.assert_allclose(logits, peer_outputs(rounded)[0], atol=2e-5)


def test_an_encoder_alone(tmp_path: Path) -> None:
    config = transformers.T5Config(
        vocab_size=100, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=2
    )
    peer = transformers.T5EncoderModel(config).eval()
    peer.save_pretrained(tmp_path)
    with torch.no_grad():
        expected = peer(
            input_ids=torch.tensor(PEER_IDS).long(),
            attention_mask=torch.tensor(PEER_IDS != 0).long(),
        ).last_hidden_state[:, 0]
    np.testing.assert_allclose(
        read_sentence_t5(open_checkpoint(tmp_path).chosen(pooling="first"))(PEER_IDS),
        expected,
        atol=1e-5,
    )
    with pytest.raises(ValueError, match=r"tensors of the model. Missing: decoder.block.0"):
        read_sentence_t5(open_checkpoint(tmp_path).chosen(pooling="decoder"))


def test_what_does_not_fit_is_listed(saved: tuple[Any, Path], tmp_path: Path) -> None:
    peer, _ = saved
    peer.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))

    def load_with(**changes: Any) -> None:
        path.write_text(json.dumps({**config, **changes}), encoding="utf-8")
        read_t5(open_checkpoint(tmp_path))

    with pytest.raises(ValueError, match=r"Unknown: encoder.block.2.layer.0"):
        load_with(num_layers=2)
    with pytest.raises(ValueError, match=r"Missing: encoder.block.3"):
        load_with(num_layers=4)
    with pytest.raises(ValueError, match=r"shared.weight: expected \[99, 32\], found \[100, 32\]"):
        load_with(vocab_size=99)
    with pytest.raises(ValueError, match=r"\$.model_type: invalid enum value 'bert'"):
        load_with(model_type="bert")
    with pytest.raises(ValueError, match="feed_forward_proj: invalid enum value 'gated-silu'"):
        load_with(feed_forward_proj="gated-silu")


sentence_transformers = pytest.importorskip("sentence_transformers")
pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

TEXTS = ["How old are you?", "", "naïve café 😀", "What is your age? " * 12]


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
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


def test_strings_to_vectors(converted: tuple[Any, Path]) -> None:
    peer, folder = converted
    model, tokenizer = FAMILY.read(open_checkpoint(folder))
    vectors = model(tokenizer.padded(tf.constant(TEXTS), 64))
    np.testing.assert_allclose(vectors, peer.encode(TEXTS), atol=1e-5)


def test_the_older_layout_of_the_pooling(converted: tuple[Any, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(converted[1], tmp_path / "old")
    old = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    path = folder / "1_Pooling" / "config.json"
    path.write_text(json.dumps({"word_embedding_dimension": 16, **old}), encoding="utf-8")
    assert read_sentence_t5(open_checkpoint(folder)).dimension == 24
    path.write_text(json.dumps({**old, "pooling_mode_cls_token": True}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"Unknown pooling: 'cls\+mean'"):
        read_sentence_t5(open_checkpoint(folder))


def test_the_pooling_is_not_asked_for(converted: tuple[Any, Path]) -> None:
    for pooling in ("mean", "first"):
        with pytest.raises(ValueError, match="modules.json: sets the pooling"):
            FAMILY.read(open_checkpoint(converted[1]).chosen(pooling=pooling))


def test_another_dense_layer_is_refused(converted: tuple[Any, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(converted[1], tmp_path / "other")
    path = folder / "2_Dense" / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, "bias": True}), encoding="utf-8")
    with pytest.raises(ValueError, match="without bias and activation"):
        read_sentence_t5(open_checkpoint(folder))


def test_a_rebuilt_vocabulary_gives_the_same_ids(
    converted: tuple[Any, Path], tmp_path: Path, data_dir: Path
) -> None:
    shutil.copy(converted[1] / "tokenizer.json", tmp_path)
    assert not (converted[1] / "spiece.model").exists(), "transformers 5 writes none"
    rebuilt = SentencePieceTokenizer(read_sentencepiece_model(tmp_path))
    original = SentencePieceTokenizer()
    assert rebuilt.vocabulary.size == original.vocabulary.size == 32_000
    path = data_dir / "oewn_definitions.tsv"
    texts = [*TEXTS, "a\u00a0b ﬁ ½ ẞ", *path.read_text(encoding="utf-8").splitlines()[::4]]
    for start in range(0, len(texts), 8192):
        batch = tf.constant(texts[start : start + 8192])
        np.testing.assert_array_equal(rebuilt.padded(batch), original.padded(batch))
