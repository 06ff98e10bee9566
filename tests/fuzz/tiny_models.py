"""Small exported encoders, in place of models that are too large to ship and to download."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import keras
import numpy as np


def export_sentence_t5(folder: Path) -> Path:
    """Writes a Sentence-T5 of two layers and 24 dimensions over T5's own vocabulary."""
    from use_st5.models.t5.model import T5Config
    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
    from use_st5.trainable_encoder import TrainableEncoder

    keras.utils.set_random_seed(0)
    config = T5Config(32_128, 2, 16, 32, 2, 8, "gated_gelu", dropout=0.1)
    model = SentenceT5(config, projection_dim=24)
    model.build()
    TrainableEncoder(model, SentencePieceTokenizer(), name="tiny", max_length=128).export(folder)
    return folder


def export_use_dan(folder: Path) -> Path:
    """Writes a USE-DAN of a few words and 12 dimensions."""
    from use_st5.models.use_dan.model import USEDAN, USEDANConfig
    from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
    from use_st5.trainable_encoder import TrainableEncoder

    keras.utils.set_random_seed(0)
    words = ("how", "old", "are", "you", "train")
    vocabulary = NGramVocabulary(words, ("how old",), unigram_buckets=3, bigram_buckets=2)
    config = USEDANConfig(num_embeddings=vocabulary.size, embedding_dim=8, hidden_dims=(8, 12))
    model = USEDAN(config)
    model(np.ones((1, 1), np.int32))
    TrainableEncoder(model, NGramTokenizer(vocabulary), name="tiny", card="# Tiny\n").export(folder)
    return folder


def write_hugging_face(folder: Path) -> Path:
    """Writes a T5 folder of Hugging Face: one layer, 8 dimensions and T5's own vocabulary."""
    from safetensors.numpy import save_file

    from use_st5.models.t5.checkpoint import HUGGING_FACE
    from use_st5.models.t5.model import T5Config
    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.tokenizers.sentencepiece_tokenizer import T5_VOCABULARY

    folder.mkdir()
    config = {
        "model_type": "t5", "vocab_size": 32_128, "num_layers": 1, "num_decoder_layers": 1,
        "d_model": 8, "d_ff": 16, "num_heads": 2, "d_kv": 4, "feed_forward_proj": "relu",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shutil.copy(T5_VOCABULARY, folder / "spiece.model")
    model = SentenceT5(T5Config(32_128, 1, 8, 16, 2, 4))
    model.build()
    random = np.random.default_rng(0)
    tensors = {
        name: random.normal(size=target.stored_shape()).astype("f")
        for name, target in HUGGING_FACE.targets(model).items()
    }
    save_file(tensors, folder / "model.safetensors")
    return folder
