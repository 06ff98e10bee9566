"""Corpora to vectors on Apache Beam: this machine, Dataflow, Flink, Spark (extra `beam`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.beam.corpus import CorpusReport as CorpusReport
    from use_st5.beam.corpus import embed_corpus as embed_corpus
    from use_st5.beam.corpus import embed_texts as embed_texts
    from use_st5.beam.corpus import read_vectors as read_vectors

__getattr__, __dir__, __all__ = public_names(__name__)
