"""A small USE-DAN and a small USE Transformer, exported once."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders "dan" and "transformer"; the latter reads eight tokens of a text."""
    from use_st5.models.use_dan.model import USEDAN, USEDANConfig
    from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
    from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
    from use_st5.tokenizers.token_tokenizer import UnigramTokenizer
    from use_st5.trainable_encoder import TrainableEncoder

    root = tmp_path_factory.mktemp("resources")
    vocabulary = NGramVocabulary(("the", "water", "house"), unigram_buckets=4)
    dan = USEDAN(USEDANConfig(vocabulary.size, embedding_dim=8, hidden_dims=(8, 8)))
    dan.build()
    TrainableEncoder(dan, NGramTokenizer(vocabulary), name="dan").export(root / "dan")
    transformer = USETransformer(USETransformerConfig(vocabulary.size, 4, 1, 8, 8, 2, dimension=8))
    transformer.build()
    TrainableEncoder(
        transformer, UnigramTokenizer(vocabulary), name="transformer", max_length=8
    ).export(root / "transformer")
    return {"dan": root / "dan", "transformer": root / "transformer"}
