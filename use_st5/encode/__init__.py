"""Encoding texts with a finished model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.encode.similarity import cosine as cosine
    from use_st5.encode.vector_store import VectorCache as VectorCache
    from use_st5.encode.vector_store import VectorStore as VectorStore

__getattr__, __dir__, __all__ = public_names(__name__)
