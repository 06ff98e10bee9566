"""What the commands say of texts that the model does not read to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from use_st5._cli.output import say
from use_st5._truncation_news import truncation_news

if TYPE_CHECKING:
    import numpy as np

    from use_st5.encoder import SentenceEncoder


def encode_counting(
    encoder: SentenceEncoder, texts: list[str], **options: Any
) -> tuple[np.ndarray, int]:
    """The vectors of texts, and how many of the texts were cut."""
    vectors = encoder.encode(texts, on_truncation="ignore", **options)
    return vectors, len(encoder.truncated(texts))


def say_truncated(encoder: SentenceEncoder, count: int, total: int) -> None:
    """One line for all texts of a command, if there is anything to say."""
    if count and encoder.max_length is not None:
        news = truncation_news(count, total, encoder.max_length)
        say(f"{news}; the rest of them was not read")
