"""The shape of a USE-DAN, and its sizes."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class USEDANConfig:
    """Shape of a Universal Sentence Encoder of the deep-averaging kind.

    Attributes:
        num_embeddings: Rows of the n-gram table: padding, the empty text, words, bi-grams and
            hash buckets.
        embedding_dim: Width of the n-gram table.
        hidden_dims: Widths of the bias-free dense layers, two to a residual block; the last one is
            the dimension of the sentence vector.
        activation: Keras name of the activation of the dense layers.
        term_dropout: Share of n-grams left out of the mean in training.
        dropout: Rate on each block's nonlinear branch in training.
    """

    num_embeddings: int
    embedding_dim: int = 320
    hidden_dims: tuple[int, ...] = (320, 320, 512, 512)
    activation: str = "tanh"
    term_dropout: float = 0.0
    dropout: float = 0.0

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vector."""
        return self.hidden_dims[-1]


USE_DAN_PRESETS: dict[str, USEDANConfig] = {
    # universal-sentence-encoder/4: 256,797,824 parameters. Table of 30 shards x 26,667 rows x 320
    # (tensorflow/hub#894), layers from the variable names and shapes in tensorflow/hub#446 and
    # #489. The activation is not visible in any dump; an older graph has tanh.
    "use_dan_v4": USEDANConfig(num_embeddings=30 * 26_667),
    # Ours, compact enough to ship: the published network behind a tenth of the rows.
    "use_dan_en": USEDANConfig(num_embeddings=80_000),
}
