"""Tiny text embedders of KerasHub."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.toy_encoders import WORDS
from use_st5.tokenizers.byte_pair_tokenizer import byte_letters


def bert() -> Any:
    """Makes a BERT with word pieces, segments and a limit of positions."""
    models = _models()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s"]
    backbone = models.BertBackbone(
        vocabulary_size=len(words),
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=20,
    )
    tokenizer = models.BertTokenizer(vocabulary=words, lowercase=True)
    preprocessor = models.BertTextEmbedderPreprocessor(tokenizer, sequence_length=16)
    return models.BertTextEmbedder(backbone, preprocessor=preprocessor)


def qwen() -> Any:
    """Makes a Qwen3 with byte pairs, a padding id other than 0, and last-token pooling."""
    models = _models()
    names = [*byte_letters(), "Ġt", "he", "<|im_end|>", "<|endoftext|>"]
    pieces = {name: number for number, name in enumerate(names)}
    tokenizer = models.Qwen3Tokenizer(vocabulary=pieces, merges=["Ġ t", "h e"])
    backbone = models.Qwen3Backbone(
        vocabulary_size=len(pieces),
        num_layers=2,
        num_query_heads=2,
        num_key_value_heads=1,
        head_dim=4,
        hidden_dim=8,
        intermediate_dim=16,
    )
    preprocessor = models.Qwen3TextEmbedderPreprocessor(tokenizer, sequence_length=64)
    return models.Qwen3TextEmbedder(backbone, preprocessor=preprocessor)


EMBEDDERS: dict[str, Callable[[], Any]] = {"bert": bert, "qwen": qwen}


def _models() -> Any:
    missing = "the extra `kerashub` is not installed"
    return pytest.importorskip("keras_hub", reason=missing).models
