"""Sentence vectors as a step of a scikit-learn pipeline; needs the extra `evaluation`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from use_st5._imports import require
from use_st5.encode.encoder import SentenceEncoder, load
from use_st5.encode.sentences import OnEmpty
from use_st5.encode.token_limit import OnTruncation
from use_st5.hub.model_manifest import short_hash

_base = require("sklearn.base", "evaluation")
_TransformerMixin: Any = _base.TransformerMixin
_BaseEstimator: Any = _base.BaseEstimator


class SentenceVectors(_TransformerMixin, _BaseEstimator):
    """Turns texts into vectors, as the first step of a scikit-learn pipeline.

    `transform` works without `fit`, because the step has no parameters. The estimator and its
    pickles contain the model's name or folder, not its weights. The model is loaded once per
    process. `fit` stores the model's hash, so that a fitted pipeline refuses the vectors of another
    model.

    Args:
        model: The name of a bundled model, the folder of a SavedModel, or an encoder from
            `use_st5.load`.
        batch_size: Maximum number of texts in a batch.
        normalize: Whether each vector is scaled to length 1.
        prompt: Text that is added before each text.
        on_empty: What to do with empty texts; see `SentenceEncoder.encode`.
        on_truncation: What to do with texts that are too long; see `SentenceEncoder.encode`.

    Attributes:
        model_hash_: The identity of the model at the time of `fit`.

    Examples:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> classifier = make_pipeline(SentenceVectors("use_dan_en"), LogisticRegression())
        >>> classifier.fit(["Well done!", "What a mess."], [1, 0]).predict(["Very good."])
        array([1])
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | SentenceEncoder = "use_dan_en",
        *,
        batch_size: int = 512,
        normalize: bool = False,
        prompt: str = "",
        on_empty: OnEmpty = "encode",
        on_truncation: OnTruncation = "warn",
    ) -> None:
        self.model = model
        self.batch_size = batch_size
        self.normalize = normalize
        self.prompt = prompt
        self.on_empty = on_empty
        self.on_truncation = on_truncation

    def fit(self, X: Iterable[str], y: Any = None) -> SentenceVectors:  # noqa: N803
        """Stores the model's hash; does not read the texts."""
        self.model_hash_ = self._encoder().identity
        return self

    def transform(self, X: Iterable[str]) -> np.ndarray:  # noqa: N803
        """Returns the vectors of texts.

        Args:
            X: Any number of strings: a list, an array, or a column of a data frame.

        Returns:
            float32 `[texts, dimension]`. It is a ValueError if the model is not the same as at the
            time of `fit`.
        """
        if isinstance(X, str | bytes):
            raise TypeError(f"Expected a sequence of texts, received one: write [{X!r}].")
        encoder = self._encoder()
        if getattr(self, "model_hash_", encoder.identity) != encoder.identity:
            hashes = f"{short_hash(self.model_hash_)}, found {short_hash(encoder.identity)}"
            raise ValueError(f"This was fitted to the model {hashes}: fit again.")
        return encoder.encode(
            X,
            batch_size=self.batch_size,
            normalize_embeddings=self.normalize,
            prompt=self.prompt,
            on_empty=self.on_empty,
            on_truncation=self.on_truncation,
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Returns the names of the columns: `sentencevectors0`, `sentencevectors1` and so on."""
        names = [f"sentencevectors{column}" for column in range(self._encoder().dimension)]
        return np.array(names, dtype=object)

    def _encoder(self) -> SentenceEncoder:
        return self.model if isinstance(self.model, SentenceEncoder) else load(self.model)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.requires_fit = False
        return tags
