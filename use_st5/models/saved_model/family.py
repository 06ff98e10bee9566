"""The family of SavedModels of other origins, such as those of TensorFlow Hub."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from use_st5.export.encoder_graph import TEXTS, EncoderGraph, graph_of
from use_st5.models.family import Family
from use_st5.models.saved_model.model import TextSavedModel
from use_st5.tokenizers.byte_tokenizer import ByteTokenizer
from use_st5.tokenizers.tokenizer import Tokenizer


class SavedModelFamily(Family):
    """Text embeddings with unknown layers; they are trained as they are."""

    name = "saved_model"
    model_types = (TextSavedModel,)
    presets: ClassVar = {}
    tokenizers: ClassVar = {ByteTokenizer.kind: ByteTokenizer}
    learning_rates: ClassVar = {"": 1e-4}
    compiles = False  # XLA does not support strings.
    rebuilt = False

    def graph(
        self,
        model: TextSavedModel,
        tokenizer: Tokenizer,
        *,
        precision: str,
        max_length: int | None,
    ) -> EncoderGraph:
        """The graph of the SavedModel itself, which reads strings."""
        if max_length is not None:
            raise ValueError(
                "A SavedModel of another origin reads texts in its own way: leave max_length out. "
                f"Received: max_length={max_length}"
            )
        graph = EncoderGraph.of_model(
            model,
            tokenizer,
            max_length=None,
            embed_text=model.encoder.vectors,
            embed_ids=lambda ids, training: model.encoder.vectors(
                ByteTokenizer.strings(ids), training
            ),
            preprocess=graph_of(tokenizer.padded, TEXTS[1]),
        )
        # Tracks the tables and assets of the SavedModel too.
        return dataclasses.replace(
            graph, tracked={**graph.tracked, "saved_model": model.encoder.model}
        )


FAMILY = SavedModelFamily()
