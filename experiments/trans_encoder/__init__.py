"""Trans-Encoder (Liu et al. 2022)."""
