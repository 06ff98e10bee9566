"""Search, saved indexes, and mining of paraphrases, translations and hard negatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.search.bitext import mine_bitext as mine_bitext
    from use_st5.search.duplicates import find_communities as find_communities
    from use_st5.search.duplicates import mine_paraphrases as mine_paraphrases
    from use_st5.search.exact import exact_search as exact_search
    from use_st5.search.hard_negatives import mine_hard_negatives as mine_hard_negatives
    from use_st5.search.vector_index import VectorIndex as VectorIndex

__getattr__, __dir__, __all__ = public_names(__name__)
