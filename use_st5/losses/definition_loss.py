"""DefSent: predict the word that a sentence defines."""

from __future__ import annotations

from typing import Any

import keras

from use_st5.losses.task_loss import Feature, Gather, TaskLoss, cross_entropy, encode_together


@keras.saving.register_keras_serializable(package="use_st5")
class DefinitionLoss(TaskLoss):
    """`−log softmax(g(s))[word]` for the vector `s` of the definition and the MLM head `g`.

    DefSent (Tsukagoshi et al. 2021, section 3). The head `g` is `encoder.word_logits`: it predicted
    masked words during pre-training, over the whole vocabulary. The code of the paper freezes this
    head and all embeddings: use `TrainingArguments(freeze=("all_embeddings", "head"))`.

    Inputs:
        | feature | kind |
        |---|---|
        | definition | ids `[batch, length]` |
        | word | integers `[batch]`, the id of the defined word, which is one token |

    Relations:
        It needs a dictionary and a pre-trained head. `ClassificationLoss` needs labelled pairs and
        creates its own head. The two losses train different properties (Tsukagoshi et al. 2022).
        The vectors have the width of the encoder's hidden states, because there is no projection
        before the head.

    Examples:
        >>> data = ArrayData({"definition": ids, "word": labels})
        >>> task = Task("definitions", DefinitionLoss(), data)
        >>> task.check_features()
    """

    features = (Feature("definition", "ids"), Feature("word", "label"))
    metric_names = ("accuracy",)

    def check_encoder(self, encoder: keras.Model) -> None:
        """Checks that the encoder has an MLM head."""
        if not hasattr(encoder, "word_logits") or not getattr(encoder, "head", True):
            name = type(encoder).__name__
            raise ValueError(f"Expected an encoder with head=True, received {name} without a head.")

    def call(
        self, encoder: keras.Model, batch: dict[str, Any], training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        (vectors,) = encode_together(encoder, [batch["definition"]], training)
        labels = keras.ops.cast(batch["word"], "int32")
        return cross_entropy(labels, encoder.word_logits(vectors))
