"""Unlabelled texts: reconstruct a text from the vector of a part of its tokens."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from use_st5.losses.skip_thought_loss import SentenceDecoder, token_loss
from use_st5.losses.task_loss import Feature, Gather, TaskLoss, encode_together


@keras.saving.register_keras_serializable(package="use_st5")
class TSDAELoss(TaskLoss):
    """`−(1/|x|) Σ_t log p(x_t | x_{<t}, f(x̃))`, mean over texts x; x̃ has a part of x's tokens.

    TSDAE (Wang et al. 2021, arXiv 2104.06979, section 3). A decoder sees nothing of the text but
    the vector of the damaged text, and the tokens before. All texts have the same weight, whatever
    their length; sentence-transformers weighs all tokens of a batch alike. Its decoder has the
    layers of the encoder; this one is that of `SkipThoughtLoss`, and shares only the encoder's
    token table (`tied`).

    Inputs:
        | feature | kind |
        |---|---|
        | sentence | ids `[batch, length]` |

    Relations:
        `SimCSELoss` reads the same texts, is faster, and needs dropout. This loss needs memory for
        `batch · length · vocabulary_size` numbers; use `gradient_accumulation_steps` if that is too
        much (it needs more than vectors, so `micro_batch_size` does not fit).

    Examples:
        >>> data = ArrayData({"sentence": ids})
        >>> task = Task("corpus", TSDAELoss(vocabulary_size=41), data)
        >>> task.check_features()

    Args:
        vocabulary_size: The decoder predicts ids below this number; the others are left out.
        deletion: The share of tokens that is deleted; the first and the last token stay.
        tied: Whether the decoder has the encoder's token table, scaled to the size of its own.
        hidden_dim: Width of the decoder; with `tied`, that of the table.
        num_layers: Number of decoder blocks.
        num_heads: Number of attention heads.
        intermediate_dim: Width of the feed-forward networks.
        seed: Seed of the deletions.
    """

    features = (Feature("sentence", "ids"),)
    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        vocabulary_size: int,
        deletion: float = 0.6,
        tied: bool = False,
        hidden_dim: int = 256,
        num_layers: int = 1,
        num_heads: int = 4,
        intermediate_dim: int = 1024,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not 0 <= deletion < 1:
            raise ValueError(f"deletion: expected a share below 1, received {deletion}.")
        self.vocabulary_size = vocabulary_size
        self.deletion = deletion
        self.draws = keras.random.SeedGenerator(seed)
        self.decoder = SentenceDecoder(
            vocabulary_size=vocabulary_size,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            tied=tied,
            dtype="float32",
        )

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        self.decoder.build(embedding_shape)

    def check_encoder(self, encoder: keras.Model) -> None:
        """Checks that a tied table is there, and has the decoder's width."""
        table, width = token_table(encoder), self.decoder.hidden_dim
        if self.decoder.tied and (table is None or table.shape[1] != width):
            received = "none" if table is None else f"one of width {table.shape[1]}"
            raise ValueError(f"tied: expected a token table of width {width}, received {received}.")

    def call(
        self, encoder: keras.Model, batch: dict[str, Any], training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        ids = batch["sentence"]
        (vectors,) = encode_together(encoder, [self._damaged(ids)], training)
        targets = _moved_together(ids, ids < self.vocabulary_size)
        table = None
        if self.decoder.tied:
            table = ops.cast(token_table(encoder), "float32")[: self.vocabulary_size]
            table *= ops.rsqrt(ops.mean(ops.square(table)) * self.decoder.hidden_dim)
        directions = ops.zeros_like(targets[:, 0])
        logits = self.decoder(targets, vectors=vectors, directions=directions, table=table)
        return token_loss(targets, logits)

    def _damaged(self, ids: Any) -> Any:
        """Deletes tokens at random; the ends, where special tokens are, stay."""
        lengths = ops.sum(ops.cast(ids != 0, "int32"), axis=1, keepdims=True)
        positions = ops.arange(ops.shape(ids)[1], dtype="int32")[None, :]
        draws = keras.random.uniform(ops.shape(ids), dtype="float32", seed=self.draws)
        ends = (positions == 0) | (positions == lengths - 1)
        return _moved_together(ids, ends | (draws >= self.deletion))


def token_table(encoder: keras.Model) -> Any:
    """The table of token embeddings of an encoder, `[ids, width]`; None if it has none."""
    return getattr(getattr(encoder, "embedding", None), "embeddings", None)


def _moved_together(ids: Any, mask: Any) -> Any:
    """The ids of the mask, in order, then padding: `[rows, length]`."""
    mask &= ids != 0
    # No sorting: under XLA, TensorFlow's has a size that a TPU does not know beforehand.
    places = ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1
    moves = places[:, :, None] == ops.arange(ops.shape(ids)[1], dtype="int32")
    return ops.sum(ops.where(moves & mask[:, :, None], ids[:, :, None], 0), axis=1)
