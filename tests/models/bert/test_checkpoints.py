from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.models.bert import huggingface_folder as hf
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.models.bert.checkpoints import read_sentence_bert
from use_st5.models.bert.sentence_bert import SentenceBert
from use_st5.trainable_encoder import TrainableEncoder

FILE = "model.safetensors"


def read(folder: Path, **settings: Any) -> SentenceBert:
    return read_sentence_bert(open_checkpoint(folder), separator=3, **settings)


@pytest.mark.parametrize("head", [False, True])
def test_every_weight_is_read(tmp_path: Path, head: bool) -> None:
    weights = hf.write(tmp_path, head=head)
    seen: list[str] = []
    model = read(tmp_path, on_tensor=seen.append)
    hf.assert_weights(model, weights)
    assert model.config == hf.CONFIG
    assert (len(seen), model.pooling, model.normalize) == (len(weights), "mean", False)


def test_a_roberta_is_read_with_our_rows(tmp_path: Path) -> None:
    """Padding is our 0 and its 1; its positions begin at 2."""
    weights = hf.write(tmp_path, roberta=True)
    tensors = load_file(tmp_path / FILE)
    positions = tensors["embeddings.position_embeddings.weight"]
    unused = np.full((2, 8), 99, np.float32)
    tensors["embeddings.position_embeddings.weight"] = np.concatenate([unused, positions])
    hf.write_tensors(tmp_path, tensors)
    model = read(tmp_path)
    for path in ("words", "head/bias"):
        weights[path] = weights[path][[1, 0, *range(2, 12)]]
    hf.assert_weights(model, weights)


def test_names_of_other_writers(tmp_path: Path) -> None:
    """With a prefix, gamma and beta, buffers, pooler, next sentence, the table and bias twice."""
    weights = hf.write(tmp_path)
    renamed = {
        "bert.embeddings.position_ids": np.arange(16)[None],
        "bert.pooler.dense.weight": np.ones((8, 8), np.float32),
        "cls.seq_relationship.bias": np.ones(2, np.float32),
    }
    for name, tensor in load_file(tmp_path / FILE).items():
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        old = old.replace("LayerNorm.bias", "LayerNorm.beta")
        renamed[old if old.startswith("cls.") else f"bert.{old}"] = tensor
    renamed["cls.predictions.decoder.weight"] = weights["words"]
    renamed["cls.predictions.decoder.bias"] = renamed.pop("cls.predictions.bias")
    hf.write_tensors(tmp_path, renamed)
    hf.assert_weights(read(tmp_path), weights)


def test_shards(tmp_path: Path) -> None:
    weights = hf.write(tmp_path)
    tensors = load_file(tmp_path / FILE)
    (tmp_path / FILE).unlink()
    homes = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(tensors)}
    for shard in sorted({*homes.values()}):
        save_file({n: tensors[n] for n in tensors if homes[n] == shard}, tmp_path / shard)
    index = {"weight_map": homes}
    (tmp_path / f"{FILE}.index.json").write_text(json.dumps(index), encoding="utf-8")
    hf.assert_weights(read(tmp_path), weights)


def test_a_head_with_a_table_of_its_own_is_refused(tmp_path: Path) -> None:
    weights = hf.write(tmp_path)
    tensors = load_file(tmp_path / FILE)
    hf.write_tensors(tmp_path, {**tensors, "cls.predictions.decoder.weight": weights["words"] + 1})
    with pytest.raises(ValueError, match=r"decoder\.weight to be embeddings\.word_.* not tied"):
        read(tmp_path)
    bias = {"cls.predictions.decoder.bias": weights["head/bias"] + 1}
    hf.write_tensors(tmp_path, {**tensors, **bias})
    with pytest.raises(ValueError, match=r"decoder\.bias to be cls\.predictions\.bias again"):
        read(tmp_path)


def test_two_tensors_of_one_name_are_refused(tmp_path: Path) -> None:
    hf.write(tmp_path)
    tensors = load_file(tmp_path / FILE)
    again = {f"bert.{name}": tensor for name, tensor in tensors.items() if "types" in name}
    again["bert.embeddings.token_type_embeddings.weight"] = np.ones((2, 8), np.float32)
    hf.write_tensors(tmp_path, {**tensors, **again})
    with pytest.raises(ValueError, match="expected one tensor embeddings.token_type_embeddings"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position_embedding_type": "relative_key"}, r"\$\.position_embedding_type: expected 'ab"),
        ({"hidden_act": "silu"}, r"\$\.hidden_act: expected 'gelu' or .*received 'silu'"),
        ({"is_decoder": True}, r"\$\.is_decoder: expected False or None, received True"),
        ({"add_cross_attention": True}, r"\$\.add_cross_attention"),
        ({"pad_token_id": 1}, r"\$\.pad_token_id: expected 0 or None, received 1"),
        ({"num_attention_heads": 3}, r"config\.json: num_heads: expected a divisor"),
        ({"num_hidden_layers": 10**9}, "expected tensors of 1,000,000,000 layers"),
        ({"num_hidden_layers": 3}, r"Missing: encoder\.layer\.2"),
        ({"num_hidden_layers": 1}, r"Left over: encoder\.layer\.1"),
        ({"vocab_size": 11}, r"word_embeddings\.weight: expected \[11, 8\], found \[12, 8\]"),
        ({"hidden_size": "8"}, r"\$\.hidden_size"),
    ],
)
def test_settings_of_another_model(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    hf.write(tmp_path)
    hf.write_settings(tmp_path, **changes)
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path)
    assert "\n" not in str(error.value)


def test_the_tanh_gelu_is_read(tmp_path: Path) -> None:
    hf.write(tmp_path)
    hf.write_settings(tmp_path, hidden_act="gelu_new")
    assert read(tmp_path).config.activation == "gelu_tanh"


@pytest.mark.parametrize("pooling", ["cls", "max"])
def test_the_pooling_is_asked_for(tmp_path: Path, pooling: str) -> None:
    hf.write(tmp_path)
    assert read(tmp_path, pooling=pooling).pooling == pooling
    with pytest.raises(ValueError, match="Unknown pooling: 'first'"):
        read(tmp_path, pooling="first")


def test_a_vocabulary_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    hf.write(tmp_path)
    assert TrainableEncoder.load(tmp_path).encode("the cat sat").shape == (8,)
    (tmp_path / "vocab.txt").write_text("\n".join([*hf.WORDS, "x", "y", "z"]), encoding="utf-8")
    with pytest.raises(ValueError, match="at most 12 pieces, the rows of the table; it has 13"):
        TrainableEncoder.load(tmp_path)
    hf.write_settings(tmp_path, roberta=True)
    with pytest.raises(ValueError, match="tokenizer of a RoBERTa, found a WordPieceV"):
        TrainableEncoder.load(tmp_path)


def test_modules_of_sentence_transformers(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    hf.write(tmp_path)
    dense = {"linear.weight": np.ones((5, 8), "f"), "linear.bias": np.arange(5, dtype="f")}
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense", "3": "Normalize"}
    entries = [{"type": f"x.{kind}", "path": path} for path, kind in kinds.items()]
    (tmp_path / "modules.json").write_text(json.dumps(entries), encoding="utf-8")
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "2_Dense").mkdir()
    save_file(dense, tmp_path / "2_Dense" / FILE)

    def settings(activation: str, pooling: str) -> None:
        torch_class = f"torch.nn.modules.activation.{activation}"
        for path, content in (
            ("2_Dense", {"out_features": 5, "activation_function": torch_class}),
            ("1_Pooling", {"pooling_mode": pooling}),
        ):
            (tmp_path / path / "config.json").write_text(json.dumps(content), encoding="utf-8")

    settings("Tanh", "cls")
    model = read(tmp_path)
    assert (model.pooling, model.normalize, model.dimension) == ("cls", True, 5)
    ids = np.array([[2, 5, 6, 3]], np.int32)
    expected = np.tanh(np.asarray(model.token_vectors(ids))[:, 0].sum(1)[:, None] + np.arange(5))
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(model(ids), expected, atol=1e-5)
    assert TrainableEncoder.load(tmp_path).max_length == 16, "its positions"
    path = tmp_path / "sentence_bert_config.json"
    path.write_text('{"max_seq_length": 5}', encoding="utf-8")
    assert TrainableEncoder.load(tmp_path).max_length == 5
    assert TrainableEncoder.load(tmp_path, max_length=7).max_length == 7
    path.write_text('{"max_seq_length": 99, "do_lower_case": true}', encoding="utf-8")
    assert TrainableEncoder.load(tmp_path).max_length == 16
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    with pytest.raises(ValueError, match="capitals as small letters, as do_lower_case asks"):
        TrainableEncoder.load(tmp_path)
    settings("Softmax", "cls")
    with pytest.raises(ValueError, match=r"2_Dense.config\.json: expected one of .*'Softmax'"):
        read(tmp_path)
    settings("Tanh", "lasttoken")
    with pytest.raises(ValueError, match="expected one of the poolings .* found 'last"):
        read(tmp_path)
