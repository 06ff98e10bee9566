"""A tiny BERT or RoBERTa as transformers saves it, and the outputs of a BERT's blocks."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from use_st5.models.bert import names as bert_names
from use_st5.models.bert.model import BertConfig, SentenceBert

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "##s", "a", ".")
CONFIG = BertConfig(12, 2, 8, 12, 2, max_positions=16, separator_id=3)
# Indexed by whether it is a RoBERTa.
HF_NAMES = (bert_names.HUGGING_FACE, bert_names.HUGGING_FACE_ROBERTA)
SETTINGS = {
    "vocab_size": 12,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "layer_norm_eps": 1e-12,
}


def write(folder: Path, *, roberta: bool = False, head: bool = True) -> dict[str, np.ndarray]:
    """Writes settings, words and random weights, and returns the weights by path."""
    rng = np.random.default_rng(0)
    paths = bert_names.weight_shapes(CONFIG, head=head)
    weights = {path: rng.normal(size=shape).astype(np.float32) for path, shape in paths.items()}
    names = HF_NAMES[roberta].names(CONFIG, head=head)
    write_settings(folder, roberta=roberta)
    write_tensors(folder, {names[path]: stored(path, array) for path, array in weights.items()})
    return weights


def write_settings(folder: Path, *, roberta: bool = False, **changes: Any) -> None:
    """Writes `config.json` and `vocab.txt`."""
    of_type = {"model_type": "bert", "max_position_embeddings": 16, "type_vocab_size": 2}
    if roberta:
        of_type |= {"model_type": "roberta", "pad_token_id": 1, "max_position_embeddings": 18}
    settings = {**SETTINGS, **of_type, **changes}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")


def write_tensors(folder: Path, tensors: dict[str, np.ndarray]) -> None:
    """Writes `model.safetensors`."""
    whole = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    save_file(whole, folder / "model.safetensors")


def stored(path: str, array: np.ndarray) -> np.ndarray:
    """Returns an array as torch stores it."""
    return array.T if path.endswith("/kernel") else array


def assert_weights(model: SentenceBert, weights: dict[str, np.ndarray]) -> None:
    """Checks that a model has these weights, given by path."""
    variables = bert_names.weight_variables(model)
    assert variables.keys() == weights.keys()
    for path, array in weights.items():
        np.testing.assert_array_equal(np.asarray(variables[path]), array, err_msg=path)


def token_vectors(model: SentenceBert, ids: Any) -> Any:
    """The last block's outputs; rows at padding hold numbers without meaning."""
    return model.token_outputs(model.embedding(ids), ids)[0]


def first_blocks(model: SentenceBert, number: int) -> SentenceBert:
    """A model of the first blocks, with the same weights."""
    part = SentenceBert(dataclasses.replace(model.config, num_layers=number), pooling=model.pooling)
    part.build()
    weights = bert_names.weight_variables(model)
    for path, variable in bert_names.weight_variables(part).items():
        variable.assign(weights[path])
    return part
