"""Sentence-T5 (Ni et al. 2021)."""
