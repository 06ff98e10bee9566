"""Texts with a label that can be told from the toys' vectors."""

from __future__ import annotations

import itertools

from tests.toy_encoders import WORDS

# Texts, each with the word that it begins and ends with as its label.
ABOUT = [
    (" ".join([word, *others, word, word]), f"about {word}")
    for word in WORDS[:4]
    for others in itertools.permutations(WORDS[4:9], 2)
]
LABELS = sorted({label for _, label in ABOUT})
