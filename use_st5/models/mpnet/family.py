"""The family of MPNet: that of BERT, with its own model and checkpoints."""

from __future__ import annotations

from typing import ClassVar

from use_st5.convert.checkpoint import Checkpoint
from use_st5.models.bert.checkpoint import ModelType
from use_st5.models.bert.family import BertFamily
from use_st5.models.mpnet.checkpoint import MPNET
from use_st5.models.mpnet.model import MPNET_PRESETS, SentenceMPNet
from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer


class MPNetFamily(BertFamily):
    """MPNet (`SentenceMPNet`)."""

    name = "mpnet"
    model_types = (SentenceMPNet,)
    presets = MPNET_PRESETS
    tokenizers: ClassVar = {WordPieceTokenizer.kind: WordPieceTokenizer}
    reads = (MPNET.label,)

    def can_read(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint contains an MPNet."""
        return checkpoint.settings.get("model_type") == "mpnet"

    def model_type(self, checkpoint: Checkpoint) -> ModelType:
        """Returns `MPNET`, the only type of this family."""
        return MPNET


FAMILY = MPNetFamily()
