"""The shape of a Universal Sentence Encoder of the Transformer kind, and its sizes."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class USETransformerConfig:
    """Shape of a Universal Sentence Encoder of the Transformer kind.

    Attributes:
        num_embeddings: Rows of the table: padding, the empty text, words and hash buckets.
        embedding_dim: Width of the table.
        num_layers: Transformer blocks.
        hidden_dim: Width of the Transformer.
        intermediate_dim: Width of its feed-forward layers.
        num_heads: Attention heads.
        dimension: Dimension of the sentence vector. Where it is not the sum's, `hidden_dim` or
            twice that with `early_output`, a linear layer without bias follows.
        max_length: Tokens of a text beyond this number are not read.
        dropout: Rate in training.
        early_output: A block, from 1, whose outputs are summed beside the last one's: they hold
            what the last lets go, and the vectors then fill more than `hidden_dim` dimensions.

    Raises:
        ValueError: `early_output` is no block below the last.
    """

    num_embeddings: int
    embedding_dim: int = 320
    num_layers: int = 6
    hidden_dim: int = 512
    intermediate_dim: int = 2048
    num_heads: int = 8
    dimension: int = 512
    max_length: int = 128
    dropout: float = 0.0
    early_output: int | None = None

    def __post_init__(self) -> None:
        if self.early_output is not None and not 0 < self.early_output < self.num_layers:
            raise ValueError(
                "early_output: expected the number of a block, from 1, below the last, "
                f"{self.num_layers}. Received: {self.early_output}"
            )


USE_TRANSFORMER_PRESETS: dict[str, USETransformerConfig] = {
    # universal-sentence-encoder-large/5: 147,354,880 parameters (tensorflow/hub#417), an input
    # layer 320 → 512 (#485), tensor2tensor's scopes, 128 tokens (#244). Six layers of 512 and 2,048
    # leave exactly 400,900 rows of 320, which no dump confirms.
    "use_transformer_large": USETransformerConfig(num_embeddings=400_900),
    # The shape that ships. The table has as many rows as the vocabulary: callers set
    # `num_embeddings=vocabulary.size`.
    "use_transformer_en": USETransformerConfig(
        num_embeddings=53_002,
        embedding_dim=320,
        num_layers=4,
        hidden_dim=320,
        intermediate_dim=1_216,
        num_heads=5,
        dimension=512,
        max_length=128,
        early_output=2,
    ),
}
