"""The family of BERT: presets, tokenizers, checkpoints, precisions, graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.tokenizer_files import read_tokenizer
from use_st5.convert.weights import check_vocabulary
from use_st5.export.encoder_graph import EncoderGraph, padded_graph
from use_st5.export.stored_weights import stored_table
from use_st5.layers.lora_dense import LoRADense
from use_st5.models.bert.checkpoint import MODEL_TYPES, ModelType, can_read, read_sentence_bert
from use_st5.models.bert.model import (
    BERT_PRESETS,
    POOLINGS,
    BertConfig,
    SentenceBert,
)
from use_st5.models.family import Family
from use_st5.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer
from use_st5.tokenizers.sentencepiece_tokenizer import FramedSentencePieceTokenizer
from use_st5.tokenizers.tokenizer import Tokenizer
from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer, read_words

_LINEAR = ("query", "key", "value", "output", "inner", "outer")


class BertFamily(Family):
    """Sentence-BERT (`SentenceBert`), built from a BERT or a RoBERTa."""

    name = "bert"
    model_types: ClassVar[tuple[type[SentenceBert], ...]] = (SentenceBert,)
    presets: ClassVar[Mapping[str, BertConfig]] = BERT_PRESETS
    tokenizers: ClassVar = {
        each.kind: each
        for each in (WordPieceTokenizer, BytePairTokenizer, FramedSentencePieceTokenizer)
    }
    harmless = ("dropout", "attention_dropout")
    precisions = ("float32", "int8")
    poolings = POOLINGS
    reads = tuple(kind.label for kind in MODEL_TYPES.values())
    lora_targets: ClassVar = {"query_value": ("query", "value"), "all_linear": _LINEAR}
    learning_rates: ClassVar = {"": 2e-5, "labels": 5e-5, "inference": 5e-5, "few_labels": 1e-4}

    def fresh(
        self, preset: str, tokenizer: Tokenizer, *, dtype: Any = None, **changes: Any
    ) -> SentenceBert:
        """A model of a named shape, whose table has a row for each id of the tokenizer."""
        changes.setdefault("vocabulary_size", tokenizer.vocabulary.size)
        if getattr(tokenizer, "marks_second_text", True):
            changes.setdefault("separator_id", getattr(tokenizer, "separator", None))
        model = self.model_types[0].from_preset(preset, dtype=dtype, **changes)
        model.build()
        return model

    def graph(
        self, model: SentenceBert, tokenizer: Tokenizer, *, precision: str, max_length: int | None
    ) -> EncoderGraph:
        """The graph over padded ids, without the head; int8 rounds all but the token types."""
        embeddings, table, kernels = model.embedding.embeddings, None, []
        if precision != "float32" or embeddings.dtype == "float32":
            table = stored_table(embeddings, precision)
        if precision != "float32":
            kernels = [layer.kernel for layer in self.lora_layers(model).values()]
            if model.position_embedding is not None:
                kernels.append(model.position_embedding.embeddings)
            if model.projection is not None:
                kernels.append(model.projection.kernel)
        return padded_graph(
            model,
            tokenizer,
            table=table,
            kernels=kernels,
            max_length=max_length,
            unread=model.head.variables if model.head else (),
        )

    def max_tokens(self, model: SentenceBert) -> int:
        """The number of rows of the position table."""
        return model.config.max_positions

    def config(self, model: SentenceBert) -> dict[str, Any]:
        """The configuration that `restore` needs; without a head, as in a SavedModel."""
        return {**super().config(model), "head": False}

    def word_model(self, model: SentenceBert, *, pooling: str | None = None) -> SentenceBert | None:
        """A copy with the masked language model's head and no dense layer before it."""
        return model.pooled(pooling or model.pooling, head=True)

    def pair_model(self, model: SentenceBert) -> SentenceBert:
        """A copy whose vector is the output of the first token, as in BERT's own classifiers."""
        return model.pooled("cls")

    def can_read(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint contains a BERT or a similar model."""
        return can_read(checkpoint)

    def model_type(self, checkpoint: Checkpoint) -> ModelType:
        """The type of the model in a checkpoint that the family `can_read`."""
        return MODEL_TYPES[checkpoint.settings.get("model_type", "bert")]

    def read(self, checkpoint: Checkpoint, *, dtype: Any = None) -> tuple[SentenceBert, Tokenizer]:
        """A Sentence-BERT; for a plain BERT, its outputs are pooled."""
        kind = self.model_type(checkpoint)
        tokenizer = read_framed_tokenizer(checkpoint, kind.label, kind.tokenizers)
        model = read_sentence_bert(
            checkpoint,
            separator=tokenizer.separator if tokenizer.marks_second_text else None,
            padding=tokenizer.padding_id,
            model_type=kind,
            dtype=dtype,
        )
        # The Model Garden has no settings: its tensors tell the number of rows.
        size, rows = tokenizer.vocabulary.size, model.config.vocabulary_size
        check_vocabulary(size, rows, folder=checkpoint.beside, given=checkpoint.vocabulary)
        return model, tokenizer

    def lora_layers(self, model: SentenceBert) -> dict[str, LoRADense]:
        """The linear layers of the attention and the feed-forward layer in every block."""
        return {
            f"{block.name}/{role}": layer
            for block in model.blocks
            for role, layer in block.linear_layers.items()
        }


def read_framed_tokenizer(
    checkpoint: Checkpoint,
    label: str,
    kinds: tuple[type[FramedTokenizer], ...],
    *,
    needs_frame: bool = True,
) -> FramedTokenizer:
    """The tokenizer in the checkpoint's folder, or in the folder of the given vocabulary."""
    vocabulary = checkpoint.vocabulary
    folder = vocabulary.parent if vocabulary else checkpoint.beside
    tokenizer: FramedTokenizer
    if checkpoint.format == "TensorFlow":
        # The original BERT's: only its words show whether the model is cased.
        words = read_words(vocabulary or folder / "vocab.txt")
        cased = any(word != word.lower() for word in words if not word.startswith("["))
        tokenizer = WordPieceTokenizer(words, lower_case=not cased)
    else:
        tokenizer = read_tokenizer(folder, needs_frame=needs_frame)
    if type(tokenizer) not in kinds:
        found = type(tokenizer).__name__
        raise ValueError(f"{folder}: expected a tokenizer of {label}, found a {found}.")
    if isinstance(rows := checkpoint.settings.get("vocab_size"), int):
        check_vocabulary(tokenizer.vocabulary.size, rows, folder=folder, given=vocabulary)
    modules = checkpoint.modules
    if modules and modules.lower_case and not getattr(tokenizer.vocabulary, "lower_case", False):
        raise ValueError(f"{checkpoint.where}: do_lower_case: the tokenizer keeps capitals.")
    return tokenizer


FAMILY = BertFamily()
