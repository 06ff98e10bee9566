"""The family of ModernBERT: that of BERT, with its own model and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from use_st5.convert.checkpoint import Checkpoint
from use_st5.models.bert.family import BertFamily, read_framed_tokenizer
from use_st5.models.bert.model import SentenceBert
from use_st5.models.modernbert.checkpoint import MODEL_TYPE, read_modernbert
from use_st5.models.modernbert.model import MODERNBERT_PRESETS, SentenceModernBert
from use_st5.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer

_LINEAR = ("query", "key", "value", "output", "inner", "linear", "outer")


class ModernBertFamily(BertFamily):
    """ModernBERT (`SentenceModernBert`)."""

    name = "modernbert"
    model_types = (SentenceModernBert,)
    presets = MODERNBERT_PRESETS
    tokenizers: ClassVar = {BytePairTokenizer.kind: BytePairTokenizer}
    reads = ("ModernBERT",)
    lora_targets: ClassVar = {"query_value": ("query", "value"), "all_linear": _LINEAR}

    def word_model(self, model: SentenceBert, *, pooling: str | None = None) -> None:
        """Returns None, because the masked language model's head is not read."""
        return

    def can_read(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint contains a ModernBERT."""
        return checkpoint.settings.get("model_type") == MODEL_TYPE

    def read(
        self,
        checkpoint: Checkpoint,
        *,
        pooling: str | None = None,
        vocabulary: Path | None = None,
        dtype: Any = None,
        on_tensor: Callable[[str], None] = lambda name: None,
    ) -> tuple[SentenceModernBert, FramedTokenizer]:
        """A ModernBERT, whose outputs are pooled."""
        tokenizer = read_framed_tokenizer(
            checkpoint, "ModernBERT", (BytePairTokenizer,), vocabulary
        )
        model = read_modernbert(
            checkpoint,
            padding=tokenizer.padding_id,
            pooling=pooling,
            dtype=dtype,
            on_tensor=on_tensor,
        )
        return model, tokenizer


FAMILY = ModernBertFamily()
