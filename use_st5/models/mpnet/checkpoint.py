"""The names of weights and settings of an MPNet in transformers."""

from __future__ import annotations

import dataclasses

from use_st5.models.bert.checkpoint import ModelType
from use_st5.models.bert.names import HUGGING_FACE_ROBERTA
from use_st5.models.mpnet.model import RELATIVE_BIAS, SentenceMPNet
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
    skips_positions=True,
    tokenizers=(WordPieceTokenizer,),
    model=SentenceMPNet,
)
