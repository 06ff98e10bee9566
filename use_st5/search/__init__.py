"""Nearest neighbours among vectors, exactly and in bounded memory, and what is mined with them."""

from use_st5.search.exact_search import exact_search
from use_st5.search.hard_negatives import mine_hard_negatives

__all__ = ["exact_search", "mine_hard_negatives"]
