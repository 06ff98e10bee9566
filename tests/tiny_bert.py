"""A folder in Hugging Face's format that holds a tiny BERT with random weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from tests.corpora_folder import WORDS
from use_st5.models.bert import names as bert_names
from use_st5.models.bert.model import BertConfig

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_OTHERS = ("a", "of", "kind", "animal", "another", "person", "one", "who", "that", "music", ".")
VOCABULARY = (*_SPECIAL, *WORDS, *_OTHERS)


def write_tiny_bert(folder: Path, *, head: bool, pooler: bool = False, seed: int = 0) -> Path:
    """Writes the folder: `config.json`, `vocab.txt` and the weights, with or without the heads."""
    config = BertConfig(
        vocabulary_size=len(VOCABULARY),
        num_layers=1,
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=2,
        max_positions=128,
        num_token_types=2,
    )
    draw = np.random.default_rng(seed)
    names = bert_names.HUGGING_FACE.names(config, head=head)
    tensors = {}
    for path, shape in bert_names.weight_shapes(config, head=head).items():
        values = draw.normal(0, 0.3, shape).astype(np.float32) + path.endswith("/scale")
        kernel = path.endswith("/kernel")
        tensors[names[path]] = np.ascontiguousarray(values.T if kernel else values)
    if pooler:
        tensors["pooler.dense.weight"] = draw.normal(0, 0.3, (8, 8)).astype(np.float32)
        tensors["pooler.dense.bias"] = draw.normal(0, 0.3, 8).astype(np.float32)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors")
    settings = {
        "model_type": "bert",
        "vocab_size": config.vocabulary_size,
        "hidden_size": config.hidden_dim,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.intermediate_dim,
        "max_position_embeddings": config.max_positions,
        "type_vocab_size": config.num_token_types,
    }
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    return folder


def write_sentence_bert(folder: Path, *, seed: int = 0) -> Path:
    """Writes the same as a model of sentence-transformers that averages the tokens."""
    write_tiny_bert(folder, head=False, seed=seed)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    pooling = {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True}
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder
