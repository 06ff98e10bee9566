"""The Universal Sentence Encoder (Cer et al. 2018)."""
