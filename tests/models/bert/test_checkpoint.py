"""BERT and RoBERTa, read from folders of transformers and of google-research/bert."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.models.bert import huggingface_folder as hf
from tests.models.bert.huggingface_folder import CONFIG, WORDS, assert_weights, token_vectors
from tests.models.tensorflow_checkpoint import write_checkpoint
from tests.tiny_bert import write_tiny_bert
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.models.bert import names as bert_names
from use_st5.models.bert.checkpoint import can_read, read_sentence_bert
from use_st5.models.bert.model import SentenceBert
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.model_loading import copy_of

FILE = "model.safetensors"


def read(folder: Path, **chosen: Any) -> SentenceBert:
    return read_sentence_bert(open_checkpoint(folder).chosen(**chosen), separator=3)


@pytest.mark.parametrize("head", [False, True])
def test_every_weight_is_read(tmp_path: Path, head: bool) -> None:
    weights = hf.write(tmp_path, head=head)
    model = read(tmp_path)
    hf.assert_weights(model, weights)
    assert model.config == hf.CONFIG
    assert (model.pooling, model.normalize) == ("mean", False)


def test_a_roberta_is_read_with_our_rows(tmp_path: Path) -> None:
    """The id of padding is 0 here and 1 in a RoBERTa, whose positions begin at 2."""
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
    """They have a prefix, gamma and beta, buffers, pooler, next sentence, table and bias twice."""
    weights = hf.write(tmp_path)
    renamed = {
        "bert.embeddings.position_ids": np.arange(16)[None],
        "bert.pooler.dense.weight": np.ones((8, 8), np.float32),
        "bert.pooler.dense.bias": np.ones(8, np.float32),
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


def test_a_head_with_a_table_of_its_own_is_refused(tmp_path: Path) -> None:
    weights = hf.write(tmp_path)
    tensors = load_file(tmp_path / FILE)
    hf.write_tensors(tmp_path, {**tensors, "cls.predictions.decoder.weight": weights["words"] + 1})
    with pytest.raises(ValueError, match=r"decoder\.weight to be embeddings\.word_"):
        read(tmp_path)
    bias = {"cls.predictions.decoder.bias": weights["head/bias"] + 1}
    hf.write_tensors(tmp_path, {**tensors, **bias})
    with pytest.raises(ValueError, match=r"decoder\.bias to be cls\.predictions\.bias again"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position_embedding_type": "relative_key"}, r"\$\.position_embedding_type: invalid"),
        ({"hidden_act": "silu"}, r"\$\.hidden_act: invalid enum"),
        ({"num_attention_heads": 3}, "num_heads: expected a divisor"),
        ({"num_hidden_layers": 10**9}, "cannot make 1,000,000,000 layers"),
        ({"num_hidden_layers": 3}, r"Missing: encoder\.layer\.2"),
        ({"num_hidden_layers": 1}, r"Unknown: encoder\.layer\.1"),
        ({"vocab_size": 11}, r"word_embeddings\.weight: expected \[11, 8\]"),
        ({"layer_norm_eps": 1e15}, r"\$\.layer_norm_eps: expected float"),
        ({"max_position_embeddings": 2**40}, r"\$\.max_position_embeddings: expected int"),
        ({"model_type": ["bert"]}, "config.json: model_type: .*expected str"),
    ],
)
def test_settings_of_another_model(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    hf.write(tmp_path)
    hf.write_settings(tmp_path, **changes)
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path)
    assert "\n" not in str(error.value)


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
    with pytest.raises(ValueError, match="13 pieces, but the table has 12 rows"):
        TrainableEncoder.load(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(hf.WORDS[:5]), encoding="utf-8")
    with pytest.raises(ValueError, match="5 pieces, but the table 12 rows: it may be cut"):
        TrainableEncoder.load(tmp_path)
    named = TrainableEncoder.load(tmp_path, vocabulary=tmp_path / "vocab.txt")
    assert named.tokenizer.vocabulary.size == 5
    hf.write_settings(tmp_path, roberta=True)
    with pytest.raises(ValueError, match="tokenizer of RoBERTa, found a WordPieceT"):
        TrainableEncoder.load(tmp_path)


def test_weights_whose_vectors_are_not_finite_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    hf.write(tmp_path)
    tensors = load_file(tmp_path / FILE)
    scale = "encoder.layer.1.output.LayerNorm.weight"
    hf.write_tensors(tmp_path, {**tensors, scale: np.full(8, 3e38, np.float32)})
    with pytest.raises(ValueError, match="its weights are damaged, or too large"):
        TrainableEncoder.load(tmp_path)


def test_modules_of_sentence_transformers(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    hf.write(tmp_path)
    dense = {"linear.weight": np.ones((5, 8), "f"), "linear.bias": np.arange(5, dtype="f")}
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense", "3": "Normalize"}
    entries = [
        {"type": f"sentence_transformers.models.{kind}", "path": path}
        for path, kind in kinds.items()
    ]
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
    expected = np.tanh(np.asarray(token_vectors(model, ids))[:, 0].sum(1)[:, None] + np.arange(5))
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
    with pytest.raises(ValueError, match="do_lower_case: the tokenizer"):
        TrainableEncoder.load(tmp_path)
    settings("Softmax", "cls")
    with pytest.raises(ValueError, match=r"2_Dense.config\.json: expected one of .*'Softmax'"):
        read(tmp_path)
    settings("Tanh", "median")
    with pytest.raises(ValueError, match="Unknown pooling: 'median"):
        read(tmp_path)


SETTINGS = {
    "vocab_size": 12, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12, "max_position_embeddings": 16, "type_vocab_size": 2,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.02, "directionality": "bidi",
}  # fmt: skip
BLOCK = "bert/encoder/layer_1"


def write_bert_config(folder: Path, words: tuple[str, ...] = WORDS, **changes: Any) -> None:
    (folder / "bert_config.json").write_text(json.dumps({**SETTINGS, **changes}))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")


def original_names(config: Any = CONFIG) -> dict[str, str]:
    """Path → name in google-research/bert, written out independently of the tested table."""
    names = {
        "words": "bert/embeddings/word_embeddings",
        "positions": "bert/embeddings/position_embeddings",
        "types": "bert/embeddings/token_type_embeddings",
        "norm/scale": "bert/embeddings/LayerNorm/gamma",
        "norm/shift": "bert/embeddings/LayerNorm/beta",
        "head/transform/kernel": "cls/predictions/transform/dense/kernel",
        "head/transform/bias": "cls/predictions/transform/dense/bias",
        "head/norm/scale": "cls/predictions/transform/LayerNorm/gamma",
        "head/norm/shift": "cls/predictions/transform/LayerNorm/beta",
        "head/bias": "cls/predictions/output_bias",
    }
    layers = {
        "query": "attention/self/query", "key": "attention/self/key",
        "value": "attention/self/value", "output": "attention/output/dense",
        "inner": "intermediate/dense", "outer": "output/dense",
    }  # fmt: skip
    norms = {"attention_norm": "attention/output/LayerNorm", "output_norm": "output/LayerNorm"}
    for number in range(config.num_layers):
        for role, name in layers.items():
            for part in ("kernel", "bias"):
                names[f"block_{number}/{role}/{part}"] = (
                    f"bert/encoder/layer_{number}/{name}/{part}"
                )
        for role, name in norms.items():
            for part, stored in (("scale", "gamma"), ("shift", "beta")):
                names[f"block_{number}/{role}/{part}"] = (
                    f"bert/encoder/layer_{number}/{name}/{stored}"
                )
    return names


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    paths = bert_names.weight_shapes(CONFIG, head=True)
    return {path: rng.normal(size=shape).astype(np.float32) for path, shape in paths.items()}


@pytest.fixture
def original(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """The folder of an archive of google-research/bert, and its weights by path."""
    arrays, names = weights(), original_names()
    further = {
        "bert/pooler/dense/kernel": (8, 8), "bert/pooler/dense/bias": (8,),
        "cls/seq_relationship/output_weights": (2, 8), "cls/seq_relationship/output_bias": (2,),
        "output_weights": (3, 8), "output_bias": (3,), "global_step": (),
        f"{BLOCK}/output/dense/kernel/adam_m": (12, 8),
        f"{BLOCK}/output/dense/kernel/adam_v": (12, 8),
    }  # fmt: skip
    tensors = {names[path]: array for path, array in arrays.items()}
    tensors |= {name: np.zeros(shape, np.float32) for name, shape in further.items()}
    write_checkpoint(tmp_path / "bert_model.ckpt", tensors)
    write_bert_config(tmp_path)
    return tmp_path, arrays


@pytest.mark.parametrize("given", ["", "bert_model.ckpt", "bert_model.ckpt.index"])
def test_an_archive_of_the_original(
    original: tuple[Path, dict[str, np.ndarray]], given: str
) -> None:
    folder, arrays = original
    checkpoint = open_checkpoint(folder / given)
    assert can_read(checkpoint)
    model = read_sentence_bert(checkpoint, separator=3)
    assert model.config == CONFIG
    assert_weights(model, arrays)
    assert model.pooler.kernel.shape == (8, 8)


def test_the_tokenizer_lies_beside_it(original: tuple[Path, dict[str, np.ndarray]]) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    folder, _ = original
    encoder = TrainableEncoder.load(folder / "bert_model.ckpt", pooling="cls")
    assert encoder.encode(["the cat", "The Cats"]).shape == (2, 8)
    assert encoder.tokenizer.vocabulary.lower_case
    write_bert_config(folder, (*WORDS[:-1], "The"))
    assert not TrainableEncoder.load(folder).tokenizer.vocabulary.lower_case


def test_what_is_missing_is_said(original: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, _ = original
    with pytest.raises(ValueError, match="cannot make"):
        write_bert_config(folder, num_hidden_layers=10**9)
        read_sentence_bert(open_checkpoint(folder), separator=3)
    with pytest.raises(ValueError, match=r"Unknown: bert/encoder/layer_1/att"):
        write_bert_config(folder, num_hidden_layers=1)
        read_sentence_bert(open_checkpoint(folder), separator=3)
    with pytest.raises(ValueError, match=r"bert_config.json: \$.hidden_act: invalid enum"):
        write_bert_config(folder, hidden_act="relu")
        read_sentence_bert(open_checkpoint(folder), separator=3)
    (folder / "bert_config.json").unlink()
    with pytest.raises(ValueError, match="expected bert_config.json next to it, found none"):
        read_sentence_bert(open_checkpoint(folder / "bert_model.ckpt"), separator=3)
    with pytest.raises(FileNotFoundError, match="Give the checkpoint itself"):
        write_bert_config(folder)
        write_checkpoint(folder / "another", {"a": np.zeros(2, np.float32)})
        open_checkpoint(folder)


def test_a_model_carries_it_and_its_copies_do(tmp_path: Path) -> None:
    folder = write_tiny_bert(tmp_path / "bert", head=False, pooler=True)
    stored = load_file(folder / "model.safetensors")
    model = TrainableEncoder.of_checkpoint(open_checkpoint(folder)).model
    for each in (model, model.pooled("cls"), copy_of(model), copy_of(model, dropout=0.3)):
        np.testing.assert_array_equal(each.pooler.kernel, stored["pooler.dense.weight"].T)
        np.testing.assert_array_equal(each.pooler.bias, stored["pooler.dense.bias"])
    bare = SentenceBert(model.config)
    bare.build()
    assert bare.pooler is None
    assert len(bare.weights) == len(model.weights), "it is no weight of the model"
