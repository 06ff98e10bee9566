"""Definitions as a task: name the word that a sentence defines."""

from __future__ import annotations

from typing import Any

import keras

from use_st5.losses.task_loss import (
    LOCAL,
    Feature,
    Gather,
    TaskLoss,
    cross_entropy,
    encode_together,
)


@keras.saving.register_keras_serializable(package="use_st5")
class DefinitionLoss(TaskLoss):
    """`−log softmax(g(s))[word]`, `s` the vector of the definition, `g` the encoder's own head.

    DefSent (Tsukagoshi et al. 2021, section 3): the head `g` is the one that predicted masked words
    in pre-training, `encoder.word_logits`, over the whole vocabulary. In the paper's code it and
    all embeddings stay as they are: `Stage.freeze` with "head" and "all_embeddings".

    Inputs:
        | feature | kind |
        |---|---|
        | definition | ids `[batch, length]` |
        | word | integers `[batch]`, the id of the defined word, which is one token |

    Relations:
        Needs a dictionary and a pre-trained head where `ClassificationLoss` needs labelled pairs
        and makes its own; the two see different things (Tsukagoshi et al. 2022). Its vectors are
        as wide as the encoder's own states: no projection stands before the head.

    Example:
        >>> data = ArrayData({"definition": ids, "word": labels})
        >>> task = Task("definitions", DefinitionLoss(), data)
        >>> task.check_features()
    """

    metric_names = ("accuracy",)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The definition, and the word."""
        return (Feature("definition", "ids"), Feature("word", "label"))

    def check_encoder(self, encoder: keras.Model) -> None:
        """Checks that the encoder names words.

        Raises:
            ValueError: It has no `word_logits`, or no head behind it.
        """
        if not hasattr(encoder, "word_logits") or not getattr(encoder, "head", True):
            raise ValueError(
                "Expected an encoder with the head that predicts masked words (`word_logits`): a "
                f"SentenceBert with head=True. Received: {type(encoder).__name__} without one"
            )

    def call(
        self,
        encoder: keras.Model,
        batch: dict[str, Any],
        training: bool = False,
        gather: Gather = LOCAL,
    ) -> tuple[Any, dict[str, Any]]:
        del gather  # Rows do not meet here.
        (vectors,) = encode_together(encoder, [batch["definition"]], training)
        labels = keras.ops.cast(batch["word"], "int32")
        return cross_entropy(labels, encoder.word_logits(vectors))
