"""Toys whose weights are drawn by NumPy from a fixed seed, written as other libraries write them.

Nothing here depends on how use_st5 names its modules, layers or variables.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

import use_st5

WORDS = ("the", "a", "cat", "dog", "sat", "on", "mat", "how", "old", "are", "you", "what", "is")
BIGRAMS = ("the cat", "how old", "old are", "what is", "a dog")
TEXTS = ("", "the cat sat on the mat.", "How old are you? 🙂", "what is a dog " * 30)

# Settings of both Hugging Face folders; the tensors follow from these numbers.
_BERT: dict[str, Any] = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "layer_norm_eps": 1e-12,
}
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_T5_ROWS = 32_128


def draw(name: str, shape: tuple[int, ...], scale: float = 0.5) -> np.ndarray:
    """The weights of one tensor, which do not depend on other draws."""
    seed = np.frombuffer(name.encode(), np.uint8).tolist()
    values = scale * np.random.default_rng(seed).standard_normal(shape)
    return (values + ("norm" in name.lower() and name.endswith("weight"))).astype(np.float32)


def write_bert(folder: Path, *, cross: bool = False, layers: int = 2) -> Path:
    """A BERT with its language-model head; `cross`: a classifier of pairs with one label."""
    pieces = (*_SPECIAL, *WORDS, "##s", ".", "?")
    settings = {"model_type": "bert", "type_vocab_size": 2, "max_position_embeddings": 32, **_BERT}
    settings |= {"vocab_size": len(pieces), "num_hidden_layers": layers}
    if cross:
        settings |= {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "same"}}
    _write(folder, settings, _bert_tensors("bert", settings, cross=cross))
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")
    return folder


def write_roberta(folder: Path) -> Path:
    """A RoBERTa with byte-level pieces and two merges."""
    # The 256 letters that stand for bytes, as GPT-2 chose them.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = [chr(byte) for byte in printable] + [chr(256 + n) for n in range(len(others))]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *letters, "th", "the", "<mask>"]
    settings = {"model_type": "roberta", "type_vocab_size": 1, "max_position_embeddings": 34}
    settings |= {**_BERT, "vocab_size": len(pieces), "pad_token_id": 1}
    _write(folder, settings, _bert_tensors("roberta", settings, cross=False))
    ids = {piece: n for n, piece in enumerate(pieces)}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\nt h\nth e\n", encoding="utf-8")
    return folder


def _bert_tensors(prefix: str, shape: Mapping[str, Any], *, cross: bool) -> dict[str, np.ndarray]:
    width, inner = shape["hidden_size"], shape["intermediate_size"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (shape["vocab_size"], width),
        "embeddings.position_embeddings.weight": (shape["max_position_embeddings"], width),
        "embeddings.token_type_embeddings.weight": (shape["type_vocab_size"], width),
    }
    shapes |= _scaled("embeddings.LayerNorm", width)
    for n in range(shape["num_hidden_layers"]):
        block = f"encoder.layer.{n}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= _dense(f"{block}.attention.{part}", width, width)
        shapes |= _scaled(f"{block}.attention.output.LayerNorm", width)
        shapes |= _dense(f"{block}.intermediate.dense", width, inner)
        shapes |= _dense(f"{block}.output.dense", inner, width)
        shapes |= _scaled(f"{block}.output.LayerNorm", width)
    shapes = {f"{prefix}.{name}": each for name, each in shapes.items()}
    if cross:
        shapes |= _dense(f"{prefix}.pooler.dense", width, width) | _dense("classifier", width, 1)
    elif prefix == "bert":
        shapes |= _dense("cls.predictions.transform.dense", width, width)
        shapes |= _scaled("cls.predictions.transform.LayerNorm", width)
        shapes |= {"cls.predictions.bias": (shape["vocab_size"],)}
    return {name: draw(name, each) for name, each in shapes.items()}


def _dense(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _scaled(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def write_t5(folder: Path, *, multilingual: bool = False) -> Path:
    """A T5 1.0, or an mT5 (gated, with an output layer of its own), with T5's rows of pieces."""
    width, inner, heads, each = 8, 12, 2, 4
    settings: dict[str, Any] = {
        **{"model_type": "mt5" if multilingual else "t5", "vocab_size": _T5_ROWS},
        **{"d_model": width, "d_ff": inner, "num_heads": heads, "d_kv": each},
        **{"num_layers": 2, "num_decoder_layers": 2, "relative_attention_num_buckets": 32},
        **{"feed_forward_proj": "gated-gelu" if multilingual else "relu"},
        **{"tie_word_embeddings": not multilingual},
    }
    # The 32,128 rows of the table repeat 128 rows, and each adds one number of its own.
    rows = np.tile(draw("shared.weight", (128, width)), (251, 1))
    tensors = {"shared.weight": rows + draw("shared", (_T5_ROWS, 1), 0.1)}
    if multilingual:
        tensors["lm_head.weight"] = rows
    for stack, attentions in (("encoder", ("Self",)), ("decoder", ("Self", "EncDec"))):
        shapes: dict[str, tuple[int, ...]] = {f"{stack}.final_layer_norm.weight": (width,)}
        for n in range(2):
            block = f"{stack}.block.{n}.layer"
            for part, kind in enumerate(attentions):
                layer = f"{block}.{part}"
                shapes[f"{layer}.layer_norm.weight"] = (width,)
                for letter in "qkv":
                    shapes[f"{layer}.{kind}Attention.{letter}.weight"] = (heads * each, width)
                shapes[f"{layer}.{kind}Attention.o.weight"] = (width, heads * each)
            layer = f"{block}.{len(attentions)}"
            shapes[f"{layer}.layer_norm.weight"] = (width,)
            for name in ("wi_0", "wi_1") if multilingual else ("wi",):
                shapes[f"{layer}.DenseReluDense.{name}.weight"] = (inner, width)
            shapes[f"{layer}.DenseReluDense.wo.weight"] = (width, inner)
        bias = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        tensors |= {
            name: draw(name, shape) for name, shape in {**shapes, bias: (32, heads)}.items()
        }
    _write(folder, settings, tensors)
    (pieces,) = Path(use_st5.__file__).parent.rglob("*.model")  # T5's own, which the package holds
    shutil.copy(pieces, folder / "spiece.model")
    return folder


def _write(folder: Path, settings: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    whole = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    save_file(whole, folder / "model.safetensors")


def use_encoder(kind: str, **changes: Any) -> use_st5.TrainableEncoder:
    """A USE-DAN or a USE Transformer of 16 dimensions."""
    from use_st5.tokenizers import NGramTokenizer, NGramVocabulary, UnigramTokenizer

    tokenizer: Any
    if kind == "use_dan":
        tokenizer = NGramTokenizer(
            NGramVocabulary(WORDS, BIGRAMS, unigram_buckets=4, bigram_buckets=3)
        )
        shape: dict[str, Any] = {"embedding_dim": 8, "hidden_dims": (12, 16)}
    else:
        tokenizer = UnigramTokenizer(NGramVocabulary(WORDS, unigram_buckets=4))
        shape = {
            **{"embedding_dim": 8, "num_layers": 2, "hidden_dim": 12, "intermediate_dim": 20},
            **{"num_heads": 3, "dimension": 16, "max_length": 32, "early_output": 1},
        }
    encoder = use_st5.TrainableEncoder.fresh(f"{kind}_en", tokenizer, **shape, **changes)
    _fill(encoder.model)
    return encoder


def _fill(model: Any) -> None:
    """Draws weights that depend on their shape and their place among those of this shape."""
    places: dict[tuple[int, ...], itertools.count[int]] = {}
    for variable in model.weights:
        shape = tuple(variable.shape)
        place = next(places.setdefault(shape, itertools.count()))
        scale = bool(np.all(variable.numpy() == 1))  # of a layer norm
        variable.assign(draw(f"{shape} {place}", shape) * (0.2 if scale else 1.0) + scale)
