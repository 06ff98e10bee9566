"""MPNet as a sentence encoder: BERT with one bias for relative positions in all blocks."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import keras
from keras import ops

from use_st5.layers.positions import RelativePositionBias
from use_st5.models.bert.model import STDDEV, BertConfig, SentenceBert

RELATIVE_BIAS = "relative_bias"


@dataclasses.dataclass(frozen=True)
class MPNetConfig(BertConfig):
    """Shape of an MPNet (Song et al. 2020, arXiv 2004.09297).

    The default sizes are those of microsoft/mpnet-base (`config.json`), whose 514
    positions begin at padding_idx + 1 = 2.

    Attributes:
        relative_buckets: Number of buckets of distances, for both directions together.
    """

    vocabulary_size: int = 30_527
    num_layers: int = 12
    hidden_dim: int = 768
    intermediate_dim: int = 3072
    num_heads: int = 12
    num_token_types: int = 0
    layer_norm_epsilon: float = 1e-5
    relative_buckets: int = 32

    @property
    def own_tables(self) -> dict[str, tuple[int, int]]:
        """Path → shape of the table of distances."""
        return {RELATIVE_BIAS: (self.relative_buckets, self.num_heads)}


MPNET_PRESETS = {"mpnet_base": MPNetConfig()}


@keras.saving.register_keras_serializable(package="use_st5")
class SentenceMPNet(SentenceBert):
    """An MPNet whose outputs are pooled to one vector, such as all-mpnet-base-v2.

    It has the blocks of BERT. Like T5, it adds a number to every attention score, which depends on
    the distance between the two positions. All blocks share the table of these numbers.

    Args:
        config: The shape of the MPNet.
        **kwargs: Arguments of `SentenceBert`.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, with `<s>` and `</s>`. Rows longer than the
            position table are cut.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`.
    """

    config_type = MPNetConfig
    presets = MPNET_PRESETS
    own_layers: ClassVar = (RELATIVE_BIAS,)
    config: MPNetConfig

    def __init__(self, config: MPNetConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.relative_bias = RelativePositionBias(
            config.num_heads,
            bidirectional=True,
            num_buckets=config.relative_buckets,
            stddev=STDDEV,
            dtype=self.dtype_policy,
            name=RELATIVE_BIAS,
        )

    @property
    def own_tables(self) -> dict[str, Any]:
        """Path → variable of the table of distances."""
        return {RELATIVE_BIAS: self.relative_bias.table}

    def build(self, _input_shape: Any = None) -> None:
        self.relative_bias.build()
        super().build()

    def _score_bias(self, tokens: Any) -> Any:
        length = ops.shape(tokens)[1]
        return super()._score_bias(tokens) + self.relative_bias(
            query_length=length, key_length=length
        )
