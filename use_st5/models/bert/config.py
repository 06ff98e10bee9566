"""The shape of a BERT or RoBERTa, and the published sizes."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

Activation = Literal["gelu", "gelu_tanh"]
Pooling = Literal["mean", "cls", "max"]
DenseActivation = Literal["linear", "tanh", "relu", "gelu", "sigmoid"]

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Shape of a BERT (Devlin et al. 2019, arXiv 1810.04805) or a RoBERTa (arXiv 1907.11692).

    Attributes:
        vocabulary_size: Rows of the token table.
        num_layers: Blocks.
        hidden_dim: Width of the model.
        intermediate_dim: Width of the feed-forward layers.
        num_heads: Attention heads, which divide `hidden_dim`.
        max_positions: Rows of the position table: what stands behind is not read.
        num_token_types: Rows of the table of token types: 2 where the model tells the second text
            of a pair from the first, 1 for RoBERTa.
        separator_id: Id of the token that ends a text. Tokens behind the first one are of type 1;
            None: all are of type 0.
        activation: Of the feed-forward layers: "gelu", or "gelu_tanh", its approximation.
        layer_norm_epsilon: Added to the variance in each layer norm.
        dropout: Rate on embeddings and on what the blocks add, in training.
        attention_dropout: Rate on the attention weights, in training.

    Raises:
        ValueError: The heads do not divide the width, the activation is unknown, or two types of
            tokens have no separator.
    """

    vocabulary_size: int
    num_layers: int
    hidden_dim: int
    intermediate_dim: int
    num_heads: int
    max_positions: int = 512
    num_token_types: int = 2
    separator_id: int | None = None
    activation: Activation = "gelu"
    layer_norm_epsilon: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.hidden_dim % self.num_heads:
            raise ValueError(
                f"num_heads: expected a divisor of hidden_dim, {self.hidden_dim}, received "
                f"{self.num_heads}."
            )
        if self.activation not in get_args(Activation):
            raise ValueError(
                f"Unknown activation: {self.activation!r}. Expected one of {get_args(Activation)}."
            )

    @property
    def parameters(self) -> int:
        """Numbers in the tables and the blocks, without a pooler, a projection and a head."""
        dim, inner = self.hidden_dim, self.intermediate_dim
        norm = 2 * dim
        attention = 4 * (dim * dim + dim)
        feed_forward = 2 * dim * inner + inner + dim
        rows = self.vocabulary_size + self.max_positions + self.num_token_types
        return rows * dim + norm + self.num_layers * (attention + feed_forward + 2 * norm)


@dataclasses.dataclass(frozen=True)
class ProjectionConfig:
    """A dense layer behind the pooling, as sentence-transformers' `Dense`.

    Attributes:
        units: Width of what it gives.
        use_bias: Whether it adds one.
        activation: Keras name.

    Raises:
        ValueError: The activation is unknown.
    """

    units: int
    use_bias: bool = True
    activation: DenseActivation = "tanh"

    def __post_init__(self) -> None:
        if self.activation not in get_args(DenseActivation):
            raise ValueError(
                f"Unknown activation: {self.activation!r}. Expected one of "
                f"{get_args(DenseActivation)}."
            )


def _roberta(layers: int, dim: int, intermediate_dim: int, heads: int) -> BertConfig:
    return BertConfig(
        50_265,
        layers,
        dim,
        intermediate_dim,
        heads,
        num_token_types=1,
        separator_id=2,
        layer_norm_epsilon=1e-5,
    )


# bert_config.json of google-research/bert's archives, whose vocab.txt has [SEP] at 102; config.json
# of FacebookAI/roberta-{base,large}, whose 514 positions begin at padding_idx + 1 = 2; config.json
# of sentence-transformers/all-MiniLM-L6-v2.
BERT_PRESETS: dict[str, BertConfig] = {
    "bert_base_uncased": BertConfig(30_522, 12, 768, 3072, 12, separator_id=102),
    "bert_base_cased": BertConfig(28_996, 12, 768, 3072, 12, separator_id=102),
    "bert_large_uncased": BertConfig(30_522, 24, 1024, 4096, 16, separator_id=102),
    "bert_large_cased": BertConfig(28_996, 24, 1024, 4096, 16, separator_id=102),
    "roberta_base": _roberta(12, 768, 3072, 12),
    "roberta_large": _roberta(24, 1024, 4096, 16),
    "minilm_l6": BertConfig(30_522, 6, 384, 1536, 12, separator_id=102),
}
