"""The promises of every model for every batch of strings."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.fuzz.strings import Check, cleaned
from tests.fuzz.tiny_models import export_sentence_t5
from use_st5.encode.encoder import SentenceEncoder
from use_st5.hub.model_names import bundled_folder, bundled_names

_TOLERANCE = 1e-5
# One text in this many is encoded in the other ways, too: a Transformer needs 0.01 s for each.
_OTHER_WAYS = 10
# Texts that the SavedModel is called with at a time; it pads all to the longest.
_RAW = 64


MODELS = (*bundled_names(), "sentence_t5")


def model_check(name: str) -> Check:
    """Vectors are finite, of unit length, and the same in every way to encode a text.

    The ways: `encode` of bytes; `encode` of str in the other order and other batches; the
    SavedModel itself; `encode` of a str whose broken bytes are lone surrogates.

    Args:
        name: One of `MODELS`; "sentence_t5" is a tiny one, which is made here.
    """
    encoder = _sentence_t5() if name == "sentence_t5" else SentenceEncoder(bundled_folder(name))

    def encode(texts: list[bytes] | list[str], batch_size: int = 64) -> np.ndarray:
        return encoder.encode(texts, batch_size=batch_size, on_truncation="ignore")

    def check(texts: list[bytes]) -> None:
        vectors = encode(texts)
        assert vectors.shape == (len(texts), encoder.dimension)
        assert np.isfinite(vectors).all(), "not finite"
        lengths = np.linalg.norm(vectors, axis=1)
        if name == "use_dan_multilingual":  # Zeros stand for a text without pieces.
            lengths = lengths[lengths > 0]
        _equal(lengths, 1.0, "unit length")
        some, expected = texts[::_OTHER_WAYS], vectors[::_OTHER_WAYS]
        _equal(encode(cleaned(some)[::-1], 37)[::-1], expected, "str in another order")
        raw = [encoder.model(tf.constant(some[i : i + _RAW])) for i in range(0, len(some), _RAW)]
        _equal(np.concatenate(raw), expected, "the SavedModel itself")
        escaped = [text.decode("utf-8", "surrogateescape") for text in texts[:20]]
        _equal(encode(escaped), encode([_replaced(text) for text in escaped]), "lone surrogates")

    return check


def _sentence_t5() -> SentenceEncoder:
    with tempfile.TemporaryDirectory(prefix="use_st5_fuzz_") as folder:
        return SentenceEncoder(export_sentence_t5(Path(folder, "tiny")))


def _replaced(text: str) -> str:
    return "".join("\ufffd" if 0xD800 <= ord(each) < 0xE000 else each for each in text)


def _equal(found: np.ndarray, expected: np.ndarray | float, what: str) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=_TOLERANCE, err_msg=what)
