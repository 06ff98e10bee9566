"""The name of a SentencePiece vocabulary: prepared data and models ask whether it is theirs."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class SentencePieceVocabulary:
    """What tells a vocabulary of pieces from another.

    Attributes:
        size: The largest id, plus 1.
        sha256: Of the SentencePiece model.
    """

    size: int
    sha256: str
