"""Families of encoders, one folder each, and the registry that knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.models.bert.model import BertConfig as BertConfig
    from use_st5.models.bert.model import SentenceBert as SentenceBert
    from use_st5.models.cross_encoder.model import CrossEncoderModel as CrossEncoderModel
    from use_st5.models.family import Family as Family
    from use_st5.models.family import families as families
    from use_st5.models.family import family_named as family_named
    from use_st5.models.family import family_of as family_of
    from use_st5.models.family import register as register
    from use_st5.models.lora import LoRAAdapters as LoRAAdapters
    from use_st5.models.lora import apply_lora as apply_lora
    from use_st5.models.lora import load_lora as load_lora
    from use_st5.models.modernbert.model import ModernBertConfig as ModernBertConfig
    from use_st5.models.modernbert.model import SentenceModernBert as SentenceModernBert
    from use_st5.models.mpnet.model import MPNetConfig as MPNetConfig
    from use_st5.models.mpnet.model import SentenceMPNet as SentenceMPNet
    from use_st5.models.static_embedding.model import StaticEmbedding as StaticEmbedding
    from use_st5.models.t5.model import T5 as T5
    from use_st5.models.t5.model import T5Config as T5Config
    from use_st5.models.t5.sentence_t5 import SentenceT5 as SentenceT5
    from use_st5.models.use_dan.model import USEDAN as USEDAN
    from use_st5.models.use_dan.model import USEDANConfig as USEDANConfig
    from use_st5.models.use_transformer.model import USETransformer as USETransformer
    from use_st5.models.use_transformer.model import USETransformerConfig as USETransformerConfig

__getattr__, __dir__, __all__ = public_names(__name__)
