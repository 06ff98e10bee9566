"""A model whose texts come in many parts, and what is said of them all at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from use_st5._cli.truncation import encode_counting, say_truncated

if TYPE_CHECKING:
    import numpy as np

    from use_st5.encoder import SentenceEncoder


class CountingEncoder:
    """Encodes as the model does, and counts the texts that it cuts instead of warning of each part.

    Args:
        encoder: The model.
    """

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder
        self._total = self._truncated = 0

    def encode(self, texts: list[str], **options: Any) -> np.ndarray:
        """Vectors of texts `[texts, dimension]`; `options` are those of the model's `encode`."""
        vectors, truncated = encode_counting(self._encoder, texts, **options)
        self._total += len(texts)
        self._truncated += truncated
        return vectors

    def say_truncated(self) -> None:
        """One line for all texts so far, if there is anything to say."""
        say_truncated(self._encoder, self._truncated, self._total)
