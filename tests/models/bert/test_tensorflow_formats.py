"""BERTs of TensorFlow's checkpoints: written by their names, and beside transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.models.bert.huggingface_folder import CONFIG, WORDS, assert_weights
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.models.bert import checkpoint_names
from use_st5.models.bert.checkpoints import knows, read, read_sentence_bert
from use_st5.models.bert.tensorflow_formats import tensorflow_tensors
from use_st5.trainable_encoder import TrainableEncoder

SETTINGS = {
    "vocab_size": 12, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12, "max_position_embeddings": 16, "type_vocab_size": 2,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.02, "directionality": "bidi",
}  # fmt: skip
BLOCK = "bert/encoder/layer_1"
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def write(prefix: Path, tensors: dict[str, Any]) -> None:
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=[*tensors],
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(tensor) for tensor in tensors.values()],
    )


def write_settings(folder: Path, words: tuple[str, ...] = WORDS, **changes: Any) -> None:
    (folder / "bert_config.json").write_text(json.dumps({**SETTINGS, **changes}))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")


def original_names(config: Any = CONFIG) -> dict[str, str]:
    """Path → name in google-research/bert, spelled out beside the table that is tested."""
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
    paths = checkpoint_names.shapes(CONFIG, head=True)
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
    write(tmp_path / "bert_model.ckpt", tensors)
    write_settings(tmp_path)
    return tmp_path, arrays


@pytest.mark.parametrize("given", ["", "bert_model.ckpt", "bert_model.ckpt.index"])
def test_an_archive_of_the_original(
    original: tuple[Path, dict[str, np.ndarray]], given: str
) -> None:
    folder, arrays = original
    checkpoint = open_checkpoint(folder / given)
    assert knows(checkpoint)
    model = read_sentence_bert(checkpoint, separator=3)
    assert model.config == CONFIG
    assert_weights(model, arrays)


def test_the_text_stage_lies_beside_it(original: tuple[Path, dict[str, np.ndarray]]) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    folder, _ = original
    encoder = TrainableEncoder.load(folder / "bert_model.ckpt", pooling="cls")
    assert encoder.encode(["the cat", "The Cats"]).shape == (2, 8)
    assert encoder.vectorizer.vocabulary.lower_case
    write_settings(folder, (*WORDS[:-1], "The"))
    assert not TrainableEncoder.load(folder).vectorizer.vocabulary.lower_case


def test_what_is_missing_is_said(original: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, _ = original
    with pytest.raises(ValueError, match="does not fit the model"):
        write_settings(folder, num_hidden_layers=10**9)
        read_sentence_bert(open_checkpoint(folder), separator=3)
    with pytest.raises(ValueError, match=r"Left over: bert/encoder/layer_1/att"):
        write_settings(folder, num_hidden_layers=1)
        read_sentence_bert(open_checkpoint(folder), separator=3)
    with pytest.raises(ValueError, match=r"bert_config.json: \$.hidden_act: expected 'gelu'"):
        write_settings(folder, hidden_act="relu")
        read_sentence_bert(open_checkpoint(folder), separator=3)
    (folder / "bert_config.json").unlink()
    with pytest.raises(ValueError, match="bert_config.json, beside the checkpoint, found none"):
        read_sentence_bert(open_checkpoint(folder / "bert_model.ckpt"), separator=3)
    with pytest.raises(FileNotFoundError, match="no file `checkpoint`"):
        write_settings(folder)
        write(folder / "another", {"a": np.zeros(2, np.float32)})
        open_checkpoint(folder)


GARDEN_TABLES = {
    "words": "_embedding_layer/embeddings",
    "positions": "_position_embedding_layer/embeddings",
    "types": "_type_embedding_layer/embeddings",
    "norm/scale": "_embedding_norm_layer/gamma",
    "norm/shift": "_embedding_norm_layer/beta",
}
GARDEN_HEAD = {
    "head/transform/kernel": "masked_lm/dense/kernel",
    "head/transform/bias": "masked_lm/dense/bias",
    "head/norm/scale": "masked_lm/layer_norm/gamma",
    "head/norm/shift": "masked_lm/layer_norm/beta",
    "head/bias": "masked_lm/output_bias.Sbias",
}


def garden(root: str, head: str | None, *, numbered: bool = False) -> dict[str, np.ndarray]:
    """The weights by the names and in the shapes of the Model Garden."""
    stored = {}
    roles = {
        "query": "_attention_layer/_query_dense", "key": "_attention_layer/_key_dense",
        "value": "_attention_layer/_value_dense", "output": "_attention_layer/_output_dense",
        "attention_norm": "_attention_layer_norm", "inner": "_intermediate_dense",
        "outer": "_output_dense", "output_norm": "_output_layer_norm",
    }  # fmt: skip
    parts = {"scale": "gamma", "shift": "beta"}
    tables = dict(GARDEN_TABLES)
    if numbered:
        ends = ["0/embeddings", "1/embeddings", "2/embeddings", "3/gamma", "3/beta"]
        tables = {path: f"layer_with_weights-{end}" for path, end in zip(tables, ends, strict=True)}
    for path, array in weights().items():
        if path in tables:
            stored[root + tables[path]] = array
        elif path in GARDEN_HEAD:
            if head is not None:
                stored[head + GARDEN_HEAD[path]] = array
        else:
            block, role, part = path.split("/")
            number = int(block.removeprefix("block_"))
            if role in ("query", "key", "value"):
                array = array.reshape(*array.shape[:-1], 2, 4)
            elif (role, part) == ("output", "kernel"):
                array = array.reshape(2, 4, 8)
            place = (
                f"layer_with_weights-{4 + number}" if numbered else f"_transformer_layers/{number}"
            )
            stored[f"{root}{place}/{roles[role]}/{parts.get(part, part)}"] = array
    pooler = "layer_with_weights-6" if numbered else "_pooler_layer"
    stored |= {
        f"{root}{pooler}/kernel": np.zeros((8, 8), "f"),
        f"{root}{pooler}/bias": np.zeros(8, "f"),
    }
    return {f"{name}{VALUE}": array for name, array in stored.items()}


@pytest.mark.parametrize(
    ("root", "head", "numbered"),
    [
        ("encoder/", None, False),
        ("model/", None, True),
        ("encoder/", "", False),
        ("model/encoder_network/", "model/", False),
        ("encoder/", "", True),
    ],
)
def test_a_bert_of_the_model_garden(
    tmp_path: Path, root: str, head: str | None, numbered: bool
) -> None:
    """Written by its names; `test_model_garden` has the library itself."""
    write(
        tmp_path / "ckpt-1", garden(root, head, numbered=numbered) | {"save_counter" + VALUE: 1.0}
    )
    model = read_sentence_bert(open_checkpoint(tmp_path / "ckpt-1"), separator=3)
    assert (model.config.num_heads, model.config.activation) == (2, "gelu_tanh")
    expected = weights()
    if head is None:
        expected = {path: array for path, array in expected.items() if "head" not in path}
    assert_weights(model, expected)


def test_a_table_that_the_head_shares(tmp_path: Path) -> None:
    tensors = garden("encoder/", "")
    table = tensors.pop(f"encoder/{GARDEN_TABLES['words']}{VALUE}")
    write(tmp_path / "ckpt", {**tensors, f"masked_lm/embedding_table{VALUE}": table})
    assert_weights(read_sentence_bert(open_checkpoint(tmp_path / "ckpt"), separator=3), weights())


def test_what_is_no_bert_of_the_model_garden(tmp_path: Path) -> None:
    write(tmp_path / "two", garden("a/", None) | garden("b/", None))
    with pytest.raises(
        ValueError, match="expected one BERT of the Model Garden, found 2, below a/"
    ):
        tensorflow_tensors(open_checkpoint(tmp_path / "two"))
    without = garden("a/", None)
    del without[f"a/{GARDEN_TABLES['types']}{VALUE}"]
    write(tmp_path / "without", without)
    with pytest.raises(ValueError, match="among them _type_embedding_layer/embeddings"):
        tensorflow_tensors(open_checkpoint(tmp_path / "without"))
    projected = garden("a/", None) | {
        f"a/_embedding_projection/kernel{VALUE}": np.ones((4, 8), "f")
    }
    write(tmp_path / "projected", projected)
    with pytest.raises(ValueError, match="Left over: _embedding_projection/kernel"):
        read_sentence_bert(open_checkpoint(tmp_path / "projected"), separator=3)
    write(tmp_path / "other", {"a": np.zeros(2, np.float32)})
    assert not knows(open_checkpoint(tmp_path / "other"))


def test_the_original_beside_transformers(tmp_path: Path) -> None:
    """Its names, written from torch's weights, give torch's vectors and logits."""
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    transformers: Any = pytest.importorskip(
        "transformers", reason="the extra `peers` is not installed"
    )
    torch.manual_seed(0)
    settings = {name: value for name, value in SETTINGS.items() if name != "directionality"}
    peer = transformers.BertForMaskedLM(transformers.BertConfig(**settings)).eval()
    with torch.no_grad():
        for parameter in peer.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    state = {name: tensor.detach().numpy() for name, tensor in peer.state_dict().items()}
    ours = checkpoint_names.hugging_face(CONFIG, head=True)
    tensors = {}
    for path, name in original_names().items():
        array = state[ours[path] if ours[path] in state else f"bert.{ours[path]}"]
        tensors[name] = array.T.copy() if path.endswith("/kernel") else array
    write(tmp_path / "bert_model.ckpt", tensors)
    write_settings(tmp_path)
    model = read_sentence_bert(open_checkpoint(tmp_path), separator=3)
    ids = np.array([[2, 5, 6, 3, 7, 8, 3], [2, 4, 3, 0, 0, 0, 0]], np.int32)
    types = np.array([[0, 0, 0, 0, 1, 1, 1], [0] * 7])
    with torch.no_grad():
        found = peer(
            torch.tensor(ids),
            attention_mask=torch.tensor(ids != 0),
            token_type_ids=torch.tensor(types),
            output_hidden_states=True,
        )
    mask = (ids != 0)[..., None]
    hidden = np.asarray(found.hidden_states[-1])
    np.testing.assert_allclose(model(ids), (hidden * mask).sum(1) / mask.sum(1), atol=1e-5)
    logits = model.word_logits(model.token_vectors(ids))
    np.testing.assert_allclose(np.asarray(logits) * mask, found.logits.numpy() * mask, atol=1e-5)


def test_the_families_ask_each_its_own(original: tuple[Path, dict[str, np.ndarray]]) -> None:
    from use_st5.models.family import families

    checkpoint = open_checkpoint(original[0])
    assert [name for name, family in families().items() if family.knows(checkpoint)] == ["bert"]
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    assert read(checkpoint)[1].separator == 3
