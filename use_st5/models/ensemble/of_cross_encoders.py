"""Several cross-encoders that answer as one: the mean of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import keras
from keras import ops

from use_st5.models.ensemble.ensemble import Ensemble
from use_st5.models.ensemble.family import EnsembleFamily


@keras.saving.register_keras_serializable(package="use_st5")
class CrossEncoderEnsemble(Ensemble):
    """The mean of several cross-encoders' scores, given as the logit of a score.

    `log(m / (1 − m))` with `m = mean σ(logitᵢ)`: the ensemble of cross-encoders of Trans-Encoder
    (Liu et al. 2022, arXiv 2109.13059, section 2.4).

    Args:
        members: Two or more cross-encoders, built, which read the same ids.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, both texts in a row.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, 1]`.

    Raises:
        ValueError: There are fewer than two members, one is there twice, or one compares no pairs.
    """

    def __init__(self, members: Sequence[keras.Model], **kwargs: Any) -> None:
        super().__init__(members, **kwargs)
        if self.dimension != 1 or self.stages is not None:
            raise ValueError(
                "Expected cross-encoders of one tokenizer, received members of the dimension "
                f"{self.dimension}{'' if self.stages is None else ' and several tokenizers'}."
            )

    def combined(self, vectors: Sequence[Any]) -> Any:
        """The logit of the mean score: float32 `[batch, 1]`."""
        logits = ops.stack(vectors, axis=0)
        high, low = ops.log_sigmoid(logits), ops.log_sigmoid(-logits)
        return ops.logsumexp(high, axis=0) - ops.logsumexp(low, axis=0)


class CrossEncoderEnsembleFamily(EnsembleFamily):
    """Several cross-encoders of one tokenizer (`CrossEncoderEnsemble`)."""

    name = "cross_encoder_ensemble"
    model_types = (CrossEncoderEnsemble,)
    tokenizers: ClassVar = {}
    texts = 2


FAMILY = CrossEncoderEnsembleFamily()
