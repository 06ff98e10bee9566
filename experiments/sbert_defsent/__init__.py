"""SBERT, DefSent and their combinations (Tsukagoshi, Sasano and Takeda 2022)."""
