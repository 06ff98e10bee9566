"""The pieces of T5's vocabulary as a teacher reads them."""

from __future__ import annotations

import numpy as np

from use_st5._imports import require
from use_st5.text.sentencepiece_vectorizer import T5_VOCABULARY

# Padding, the end of a sentence and the unknown piece come first.
NUM_SPECIAL = 3
_SPACE = "\u2581"


def spelled_pieces() -> list[str]:
    """The pieces from id `NUM_SPECIAL` on, without the mark of a space where there is more."""
    text = require("tensorflow_text", "text")
    tokenizer = text.SentencepieceTokenizer(model=T5_VOCABULARY.read_bytes())
    ids = np.arange(NUM_SPECIAL, int(tokenizer.vocab_size()), dtype=np.int32)
    names = (each.decode() for each in tokenizer.id_to_string(ids).numpy())
    return [name.removeprefix(_SPACE) or name for name in names]
