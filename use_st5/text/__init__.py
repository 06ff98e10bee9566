"""Strings to ids inside the graph: tokens, n-grams and their vocabularies."""
