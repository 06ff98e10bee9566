"""The family of Sentence-T5: presets, tokenizer, checkpoints, precisions and graph."""

from __future__ import annotations

from typing import Any, ClassVar

from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.tokenizer_files import read_sentencepiece_model
from use_st5.convert.weights import check_vocabulary
from use_st5.export.encoder_graph import EncoderGraph, padded_graph
from use_st5.export.stored_weights import stored_table
from use_st5.layers.lora_dense import LoRADense
from use_st5.models.family import Family
from use_st5.models.t5.checkpoint import can_read, open_t5, read_sentence_t5
from use_st5.models.t5.model import T5, T5_PRESETS, T5_ROWS
from use_st5.models.t5.sentence_t5 import POOLINGS, SentenceT5
from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from use_st5.tokenizers.tokenizer import Tokenizer

_LINEAR = ("query", "key", "value", "output", "inner", "linear", "outer")


class T5Family(Family):
    """Sentence-T5 (`SentenceT5`), and the plain T5 that it is built from."""

    name = "t5"
    model_types = (SentenceT5, T5)
    presets = T5_PRESETS
    tokenizers: ClassVar = {SentencePieceTokenizer.kind: SentencePieceTokenizer}
    precisions = ("float32", "int8")
    max_length = 256
    harmless = ("dropout", "tied_softmax", "scaled_softmax")
    poolings = POOLINGS
    reads = ("T5", "mT5")
    lora_targets: ClassVar = {"query_value": ("query", "value"), "all_linear": _LINEAR}
    learning_rates: ClassVar = {"": 1e-4}

    def fresh(
        self, preset: str, tokenizer: Tokenizer, *, dtype: Any = None, **changes: Any
    ) -> SentenceT5:
        """Builds a model of a named shape; the ids must fit the number of rows in the preset."""
        model = SentenceT5.from_preset(preset, dtype=dtype, **changes)
        if tokenizer.vocabulary.size > model.config.vocabulary_size:
            rows, size = model.config.vocabulary_size, tokenizer.vocabulary.size
            raise ValueError(f"vocabulary_size: expected {size:,} or more, {preset} has {rows:,}.")
        model.build()
        return model

    def usual_tokenizer(self) -> SentencePieceTokenizer:
        """T5's own English vocabulary."""
        return SentencePieceTokenizer()

    def graph(
        self, model: SentenceT5, tokenizer: Tokenizer, *, precision: str, max_length: int | None
    ) -> EncoderGraph:
        """The graph over padded ids; int8 rounds all matrices."""
        embeddings, table, kernels = model.embedding.embeddings, None, []
        if precision != "float32" or embeddings.dtype == "float32":
            table = stored_table(embeddings, precision)
        if precision != "float32":
            if model.decoder is not None:
                raise ValueError("A Sentence-T5 with a decoder is exported in float32, not int8.")
            layers = [*self.lora_layers(model).values()]
            if model.projection is not None:
                layers.append(model.projection)
            kernels = [layer.kernel for layer in layers]
        return padded_graph(model, tokenizer, table=table, kernels=kernels, max_length=max_length)

    def prepare_for_training(self, model: SentenceT5 | T5) -> None:
        """Scales the vectors of a plain T5 to length 1 (Ni et al. 2021, section 3.2)."""
        if isinstance(model, SentenceT5) and model.projection is None:
            model.normalize = True

    def can_read(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint contains a T5, T5 1.1, mT5, or a dual encoder of these."""
        return can_read(checkpoint)

    def read(
        self, checkpoint: Checkpoint, *, dtype: Any = None
    ) -> tuple[SentenceT5, SentencePieceTokenizer]:
        """A Sentence-T5; for a plain T5, the raw encoder of the paper's section 6.1."""
        vocabulary, rows = checkpoint.vocabulary, open_t5(checkpoint)[1].vocabulary_size
        if vocabulary is not None:
            tokenizer = SentencePieceTokenizer(vocabulary)
        elif checkpoint.folder is not None:
            tokenizer = SentencePieceTokenizer(read_sentencepiece_model(checkpoint.folder))
        elif rows == T5_ROWS:
            tokenizer = SentencePieceTokenizer()
        else:
            numbers = f"{rows:,} rows, T5's has {T5_ROWS:,}"
            raise ValueError(f"{checkpoint.where}: its table has {numbers}: give its --vocabulary.")
        size = tokenizer.vocabulary.size
        check_vocabulary(size, rows, folder=checkpoint.folder, given=vocabulary)
        return read_sentence_t5(checkpoint, dtype=dtype), tokenizer

    def lora_layers(self, model: SentenceT5 | T5) -> dict[str, LoRADense]:
        """The linear layers of the attentions and feed-forward layers in every block."""
        return {
            f"{stack.name}/{block.name}/{part.name}/{role}": layer
            for stack in (model.encoder, model.decoder)
            if stack is not None
            for block in stack.blocks
            for part in (block.attention, getattr(block, "cross", None), block.feed_forward)
            if part is not None
            for role, layer in part.linear_layers.items()
        }


FAMILY = T5Family()
