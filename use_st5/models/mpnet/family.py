"""The family of MPNet: that of BERT, with its own model and checkpoints."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from use_st5.convert.checkpoint import Checkpoint
from use_st5.models.bert.checkpoint import ModelType
from use_st5.models.bert.family import BertFamily
from use_st5.models.bert.names import HUGGING_FACE_ROBERTA
from use_st5.models.mpnet.model import MPNET_PRESETS, RELATIVE_BIAS, SentenceMPNet
from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

HUGGING_FACE_MPNET = dataclasses.replace(
    HUGGING_FACE_ROBERTA,
    tables={
        **HUGGING_FACE_ROBERTA.tables,
        RELATIVE_BIAS: "encoder.relative_attention_bias.weight",
    },
    layers={
        **HUGGING_FACE_ROBERTA.layers,
        "query": "attention.attn.q",
        "key": "attention.attn.k",
        "value": "attention.attn.v",
        "output": "attention.attn.o",
        "attention_norm": "attention.LayerNorm",
    },
)
MPNET = ModelType(
    label="MPNet",
    names=HUGGING_FACE_MPNET,
    padding_id=1,
    tokenizers=(WordPieceTokenizer,),
    model=SentenceMPNet,
)


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
