"""The Universal Sentence Encoder, deep averaging variant (USE-DAN)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from use_st5.layers.l2_normalize import L2Normalize
from use_st5.layers.ngram_embedding import NGramEmbedding
from use_st5.layers.residual_feed_forward import ResidualFeedForward
from use_st5.tokenizers.ngram_vocabulary import FIRST_TERM_ID, NGramVocabulary


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
    # Ours, compact enough to ship: the published network behind a tenth of the rows, wider ones.
    "use_dan_en": USEDANConfig(
        num_embeddings=86_002, embedding_dim=384, hidden_dims=(384, 384, 512, 512)
    ),
}


@keras.saving.register_keras_serializable(package="use_st5")
class USEDAN(keras.Model):
    """Averaged word and bi-gram embeddings through a feed-forward network to a unit vector.

    USE paper (arXiv 1803.11175), section "Deep Averaging Network"; the layout of the layers is that
    of the published graph (see `use_st5.models.use_dan.model`). Compute time is linear in the
    text's length.

    Args:
        config: The model's shape; `USEDAN.from_preset` knows the named ones.

    Call arguments:
        ids: int32 `[batch, length]` of n-gram ids, 0 = padding, as `NGramTokenizer.padded` makes
            them.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`, rows of length 1.

    Examples:
        >>> model = USEDAN.from_preset("use_dan_en", num_embeddings=1000)
        >>> model(keras.ops.array([[5, 17, 230, 0]])).shape
        TensorShape([1, 512])
    """

    def __init__(self, config: USEDANConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.embedding = NGramEmbedding(
            config.num_embeddings,
            config.embedding_dim,
            term_dropout=config.term_dropout,
            name="embedding",
        )
        self.network = keras.Sequential(
            [
                ResidualFeedForward(
                    config.hidden_dims,
                    activation=config.activation,
                    dropout=config.dropout,
                    name="feed_forward",
                ),
                L2Normalize(name="l2_normalize"),
            ],
            name="network",
        )

    @classmethod
    def from_preset(cls, name: str, *, dtype: Any = None, **changes: Any) -> USEDAN:
        """A freshly initialised model of a named shape.

        Args:
            name: A key of `USE_DAN_PRESETS`.
            dtype: Keras dtype policy, such as "mixed_bfloat16".
            **changes: Fields of `USEDANConfig` that differ from the preset's, such as
                `num_embeddings` for a vocabulary of another size.

        Raises:
            ValueError: The preset is unknown.
        """
        if name not in USE_DAN_PRESETS:
            raise ValueError(
                f"Unknown preset: {name!r}. Expected one of {sorted(USE_DAN_PRESETS)}."
            )
        return cls(dataclasses.replace(USE_DAN_PRESETS[name], **changes), dtype=dtype)

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vector."""
        return self.config.dimension

    def build(self, _input_shape: Any = None) -> None:
        self.embedding.build((None, None))
        self.network.build((None, self.config.embedding_dim))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.network(self.embedding(ids, training=training), training=training)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, int]:
        return (input_shape[0], self.dimension)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "config": dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> USEDAN:
        fields = dict(config.pop("config"))
        fields["hidden_dims"] = tuple(fields["hidden_dims"])
        return cls(USEDANConfig(**fields), **config)


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Factors on groups of weights; 1 changes nothing.

    Attributes:
        frequent: On the rows of the `frequent_count` most frequent words.
        frequent_count: How many those are.
        numbers: On the rows of words with a digit.
        bigrams: On the rows of bi-grams.
        unknown: On the rows of hash buckets.
        skip: On the projection around the last block, against the block's own output.
    """

    frequent: float = 1.0
    frequent_count: int = 30
    numbers: float = 1.0
    bigrams: float = 1.0
    unknown: float = 1.0
    skip: float = 1.0


def calibrate(model: USEDAN, vocabulary: NGramVocabulary, calibration: Calibration) -> None:
    """Multiplies the model's weights by the factors, in place.

    Args:
        model: Trained; its last block must change the width, so that there is a projection.
        vocabulary: The vocabulary it was trained with.
        calibration: The factors.

    Raises:
        ValueError: The table and the vocabulary have different sizes, or there is no projection.
    """
    projections = list(model.network.get_layer("feed_forward").projections.values())
    if not projections or model.config.num_embeddings != vocabulary.size:
        raise ValueError(
            "Expected a model with a projection and a row for each of the vocabulary's "
            f"{vocabulary.size} ids. Received: {model.config}"
        )
    factors = row_factors(vocabulary, calibration)
    embeddings = model.embedding.embeddings
    embeddings.assign(embeddings.numpy() * factors[:, None])
    kernel = projections[-1].kernel
    kernel.assign(kernel.numpy() * np.float32(calibration.skip))


def row_factors(vocabulary: NGramVocabulary, calibration: Calibration) -> np.ndarray:
    """The factor of each row of the table, float32 `[rows]`."""
    factors = np.ones(vocabulary.size, np.float32)
    first_bigram = FIRST_TERM_ID + len(vocabulary.unigrams)
    for row, word in enumerate(vocabulary.unigrams, FIRST_TERM_ID):
        if any(character.isdigit() for character in word):
            factors[row] = calibration.numbers
    factors[FIRST_TERM_ID : FIRST_TERM_ID + calibration.frequent_count] *= calibration.frequent
    factors[first_bigram : vocabulary.unigram_bucket_id] = calibration.bigrams
    factors[vocabulary.unigram_bucket_id :] = calibration.unknown
    return factors


# Arora et al. 2017, section 3, have 1e-4 … 1e-3 for their `a`.
_USUAL = 1e-3


def weigh_words(model: USEDAN, vocabulary: NGramVocabulary, *, a: float = _USUAL) -> None:
    """Scales the rows of a drawn table by `word_weights`, in place.

    Args:
        model: As it was drawn.
        vocabulary: Its tokenizer's.
        a: As in `word_weights`.

    Raises:
        ValueError: The table and the vocabulary have different sizes, or `a` is not above 0.
    """
    if model.config.num_embeddings != vocabulary.size:
        raise ValueError(
            f"Expected a row for each of the vocabulary's {vocabulary.size} ids. Received: "
            f"{model.config.num_embeddings} rows"
        )
    table = model.embedding.embeddings
    table.assign(keras.ops.convert_to_numpy(table) * word_weights(vocabulary, a=a)[:, None])


def word_weights(vocabulary: NGramVocabulary, *, a: float = _USUAL) -> np.ndarray:
    """`a / (a + p)` of each row, float32 `[rows]`, `p` the share of a term among the text's terms.

    The smooth inverse frequency of Arora et al. 2017 ("A simple but tough-to-beat baseline for
    sentence embeddings", section 3). A vocabulary has no counts but is in their order, so `p` is by
    Zipf's law: of n terms the r-th has `1 / (r · ln n)`, words and bi-grams each by themselves.
    Rows of hash buckets, which rare terms share, weigh 1.

    Raises:
        ValueError: `a` is not above 0.
    """
    if not a > 0:
        raise ValueError(f"a: expected a number above 0, received {a}.")
    weights = np.ones(vocabulary.size, np.float32)
    begin = FIRST_TERM_ID
    for terms in (vocabulary.unigrams, vocabulary.bigrams):
        weights[begin : begin + len(terms)] = _by_rank(terms, a)
        begin += len(terms)
    return weights


def _by_rank(terms: Sequence[str], a: float) -> np.ndarray:
    if len(terms) < 2:  # A single one has no rank.
        return np.ones(len(terms))
    ranks = np.arange(1, len(terms) + 1)
    return a / (a + 1 / (ranks * math.log(len(terms))))
