"""Sentence encoders for BERTopic, KeyBERT and LangChain.

BERTopic and KeyBERT check the type of a model. If they do not know the type, they silently use
their own default model. So these functions return an object of the library's own type.

mteb needs no function here: its `SentenceTransformerEncoderWrapper` takes the encoder itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from use_st5._imports import require
from use_st5.encode.encoder import SentenceEncoder


def bertopic_backend(encoder: SentenceEncoder) -> Any:
    """The encoder for `BERTopic(embedding_model=…)`, a `bertopic.backend.BaseEmbedder`.

    Examples:
        >>> BERTopic(embedding_model=bertopic_backend(use_st5.load("use_dan_en")))
    """
    return _embedder(require("bertopic.backend", "integrations"), encoder, bertopic_backend)


def keybert_backend(encoder: SentenceEncoder) -> Any:
    """The encoder for `KeyBERT(model=…)`, a `keybert.backend.BaseEmbedder`.

    Examples:
        >>> KeyBERT(keybert_backend(use_st5.load("use_dan_en")))
    """
    return _embedder(require("keybert.backend", "integrations"), encoder, keybert_backend)


def langchain_embeddings(encoder: SentenceEncoder) -> Any:
    """The encoder for LangChain's vector stores, a `langchain_core.embeddings.Embeddings`.

    Queries and documents get the model's prompts for them, if it has some.

    Examples:
        >>> InMemoryVectorStore(langchain_embeddings(use_st5.load("use_dan_en")))
    """
    base: Any = require("langchain_core.embeddings", "integrations").Embeddings

    class Embeddings(base):
        """Turns texts into lists of numbers."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return encoder.encode_document(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return encoder.encode_query(text).tolist()

        def __reduce__(self) -> tuple[Callable[..., Any], tuple[SentenceEncoder]]:
            return langchain_embeddings, (encoder,)

    return Embeddings()


def _embedder(library: Any, encoder: SentenceEncoder, made_by: Callable[..., Any]) -> Any:
    """Returns an object of the library's `BaseEmbedder`; its pickle calls `made_by` again."""

    class Embedder(library.BaseEmbedder):
        """Turns documents and words into vectors."""

        def embed(self, documents: list[str], verbose: bool = False) -> np.ndarray:
            return encoder.encode(documents, show_progress=verbose)

        def __reduce__(self) -> tuple[Callable[..., Any], tuple[SentenceEncoder]]:
            return made_by, (encoder,)

    return Embedder(embedding_model=encoder)
