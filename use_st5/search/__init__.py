"""Nearest neighbours among vectors, exactly and in bounded memory."""

from use_st5.search.exact_search import exact_search

__all__ = ["exact_search"]
