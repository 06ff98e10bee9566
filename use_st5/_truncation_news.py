"""What is said of texts that a model cuts; apart, since commands say it before NumPy is loaded."""

from __future__ import annotations


def truncation_news(count: int, total: int, max_length: int) -> str:
    """How many texts a model does not read to their end, as the beginning of a sentence."""
    verb = "is" if count == 1 else "are"
    return f"{count:,} of {total:,} texts {verb} longer than {max_length:,} tokens"
