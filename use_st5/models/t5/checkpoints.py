"""Sentence-T5, and T5 itself, out of the checkpoints of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from use_st5._records import Positive
from use_st5.convert.assignment import Target, assign_weights, check_shapes
from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.sentence_transformers import DenseModule, SentenceModules
from use_st5.convert.sentencepiece_model import read_sentencepiece_model
from use_st5.convert.weight_source import WeightSource
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.t5.checkpoint_formats import t5_tensors, table_of
from use_st5.models.t5.checkpoint_names import T5Names
from use_st5.models.t5.config import T5_ROWS, Activation, T5Config
from use_st5.models.t5.sentence_t5 import Pooling, SentenceT5
from use_st5.models.t5.t5 import T5
from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

# In Hugging Face's `config.json`.
_MODEL_TYPES = ["t5", "mt5"]
_ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gated-gelu": "gated_gelu"}


def knows(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint holds a T5, T5 1.1, mT5 or Sentence-T5."""
    if checkpoint.folder is not None:
        return checkpoint.settings.get("model_type") in _MODEL_TYPES
    return table_of(checkpoint) is not None


def read(
    checkpoint: Checkpoint,
    *,
    pooling: str | None = None,
    vocabulary: Path | None = None,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> tuple[SentenceT5, SentencePieceVectorizer]:
    """A Sentence-T5 with the weights of a checkpoint, and its text stage.

    Args:
        checkpoint: As for `read_sentence_t5`.
        pooling: As for `read_sentence_t5`.
        vocabulary: A SentencePiece model; None: the folder's, or T5's own where the format has
            none and the table has T5's number of rows.
        dtype: As for `read_sentence_t5`.
        on_tensor: As for `read_sentence_t5`.

    Raises:
        FileNotFoundError: The folder has no vocabulary.
        ValueError: Tensors, settings or vocabulary do not fit.
    """
    rows = _t5(checkpoint).config.vocabulary_size
    vectorizer = _vectorizer(checkpoint, vocabulary, rows)
    model = read_sentence_t5(checkpoint, pooling=pooling, dtype=dtype, on_tensor=on_tensor)
    return model, vectorizer


def read_sentence_t5(
    checkpoint: Checkpoint,
    *,
    pooling: str | None = None,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> SentenceT5:
    """A Sentence-T5 with the weights of a checkpoint, read tensor by tensor.

    Of sentence-transformers it has the modules. Of a dual encoder of T5X it has the projection, and
    normalises. Of a T5 it is the raw encoder of the paper's section 6.1, which does neither.

    Args:
        checkpoint: Of a T5; stored in float32, bfloat16 or float16.
        pooling: As for `SentenceT5`; None: what a folder of sentence-transformers says, "mean"
            elsewhere.
        dtype: Keras dtype policy of the model, such as "bfloat16"; a projection stays float32.
        on_tensor: Called with the name of each tensor that is in place.

    Raises:
        ValueError: The weights do not fit the configuration, the modules are not those of a
            Sentence-T5, or `pooling` is given where the checkpoint says it.
    """
    t5, modules = _t5(checkpoint), checkpoint.modules
    pooled = _pooling(checkpoint, pooling)
    dense = _dense(modules, t5.config.hidden_dim) if modules else None
    own = t5.projection_dim
    further = {t5.names.projection: (t5.config.hidden_dim, own)} if own else {}
    t5.check(further, decoder=pooled == "decoder", logits=False)
    model = SentenceT5(
        t5.config,
        pooling=pooled,
        projection_dim=dense.width if dense else own,
        normalize=modules.normalize if modules else own is not None,
        dtype=dtype,
    )
    with without_initial_values():
        model.build()
    t5.assign(model, {name: Target(model.projection.kernel) for name in further}, on_tensor)
    if dense is not None:
        dense.assign(model.projection, on_tensor=on_tensor)
    return model


def read_t5(
    checkpoint: Checkpoint,
    *,
    with_decoder: bool = True,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> T5:
    """A T5 with the weights of a checkpoint, read tensor by tensor.

    Args:
        checkpoint: Of a T5; stored in float32, bfloat16 or float16.
        with_decoder: False reads the encoder alone (a folder of `T5EncoderModel` has no more).
        dtype: Keras dtype policy of the model, such as "bfloat16".
        on_tensor: Called with the name of each tensor that is in place.

    Raises:
        ValueError: The weights do not fit the configuration.
    """
    t5 = _t5(checkpoint)
    t5.check({}, decoder=with_decoder, logits=with_decoder and not t5.config.tied_softmax)
    model = T5(t5.config, with_decoder=with_decoder, dtype=dtype)
    with without_initial_values():
        model.build()
    t5.assign(model, {}, on_tensor)
    return model


@dataclass(frozen=True)
class _T5:
    """A T5 in a checkpoint, with nothing read of it but names, shapes and settings.

    Attributes:
        source: Its tensors, by the names of the table.
        names: The table.
        config: Its shape.
    """

    source: WeightSource
    names: T5Names
    config: T5Config

    @property
    def projection_dim(self) -> int | None:
        """Width of the projection of a dual encoder; None where there is none."""
        shape = self.source.shapes().get(self.names.projection, ())
        return shape[1] if len(shape) == 2 and 0 not in shape else None

    def check(self, further: Mapping[str, tuple[int, ...]], *, decoder: bool, logits: bool) -> None:
        """Holds the tensors against the configuration, before a model is built of its size."""
        shapes = self.names.shapes(self.config, self.source, decoder=decoder, logits=logits)
        check_shapes({**shapes, **further}, self.source, left_out=self._left_out(decoder))

    def assign(
        self,
        model: T5 | SentenceT5,
        further: Mapping[str, Target],
        on_tensor: Callable[[str], None],
    ) -> None:
        """Reads the tensors into a model, and more of them elsewhere."""
        mapping = {**self.names.targets(model), **further}
        left_out = self._left_out(model.decoder is not None)
        assign_weights(mapping, self.source, left_out=left_out, on_tensor=on_tensor)

    def _left_out(self, decoder: bool) -> Callable[[str], bool]:
        """Tells the tensors that a model with or without a decoder has no use for."""

        def left_out(name: str) -> bool:
            # The output layer is asked for only where the model has one beside the table.
            unused = not decoder and name.startswith(("decoder.", "decoder/"))
            return unused or name == self.names.logits

        return left_out


def _t5(checkpoint: Checkpoint) -> _T5:
    """Finds the T5; where the format has no settings, the tensors' shapes say what it is like."""
    config = None if checkpoint.folder is None else _config(checkpoint)
    source, names = t5_tensors(checkpoint)
    return _T5(source, names, config or names.config(source.shapes(), where=source.where))


class _Settings(msgspec.Struct):
    """What a T5 says of itself in `config.json`, with the defaults of transformers."""

    model_type: str
    vocab_size: Positive
    num_layers: Positive
    d_model: Positive
    d_ff: Positive
    num_heads: Positive
    d_kv: Positive
    feed_forward_proj: str = "relu"
    layer_norm_epsilon: float = 1e-6
    tie_word_embeddings: bool = True
    scale_decoder_outputs: bool | None = None
    num_decoder_layers: Positive | None = None
    relative_attention_num_buckets: Positive = 32
    relative_attention_max_distance: Positive = 128


def _config(checkpoint: Checkpoint) -> T5Config:
    """The shape of a T5 from its `config.json`."""
    path = checkpoint.settings_file
    remedy = "Give the folder of a T5 or mT5 as transformers saves it."
    settings = checkpoint.settings_as(_Settings, remedy=remedy)
    expected: dict[str, list[Any]] = {
        "model_type": _MODEL_TYPES,
        "feed_forward_proj": [*_ACTIVATIONS],
        "layer_norm_epsilon": [1e-6],
    }
    for name, values in expected.items():
        if (found := getattr(settings, name)) not in values:
            raise ValueError(
                f"{path}: $.{name}: expected one of {values}, received {found!r}. {remedy}"
            )
    buckets = settings.relative_attention_num_buckets
    if not 4 <= buckets < 2 * settings.relative_attention_max_distance:
        raise ValueError(
            f"{path}: $.relative_attention_num_buckets: expected 4 or more, and less than twice "
            f"relative_attention_max_distance ({settings.relative_attention_max_distance:,}), "
            f"received {buckets:,}. {remedy}"
        )
    tied, scaled = settings.tie_word_embeddings, settings.scale_decoder_outputs
    return T5Config(
        vocabulary_size=settings.vocab_size,
        num_layers=settings.num_layers,
        hidden_dim=settings.d_model,
        intermediate_dim=settings.d_ff,
        num_heads=settings.num_heads,
        key_value_dim=settings.d_kv,
        activation=_ACTIVATIONS[settings.feed_forward_proj],
        tied_softmax=tied,
        # transformers 5 ties what it saves, and says separately that 1.1 does not scale.
        scaled_softmax=tied if scaled is None else scaled,
        num_decoder_layers=settings.num_decoder_layers,
        num_buckets=buckets,
        max_distance=settings.relative_attention_max_distance,
    )


def _pooling(checkpoint: Checkpoint, asked: str | None) -> Pooling:
    pooling = checkpoint.pooling(asked) or "mean"
    modules = checkpoint.modules
    if modules is not None and pooling != "mean":
        raise ValueError(
            f"{modules.pooling_file}: expected the pooling to be the mean, found {pooling!r}."
        )
    return cast("Pooling", pooling)  # `SentenceT5` refuses others


def _dense(modules: SentenceModules, hidden_dim: int) -> DenseModule | None:
    """The projection of a folder of sentence-transformers, where it has one."""
    dense = modules.dense
    if dense is None:
        return None
    if dense.bias or dense.activation != "Identity":
        raise ValueError(
            f"{dense.where}: expected a dense layer without bias and activation, found bias "
            f"{dense.bias} and {dense.activation}."
        )
    dense.check(hidden_dim)
    return dense


def _vectorizer(
    checkpoint: Checkpoint, vocabulary: Path | None, rows: int
) -> SentencePieceVectorizer:
    """The vocabulary that is named, else the folder's, else T5's where its size fits."""
    if vocabulary is not None:
        vectorizer = SentencePieceVectorizer(vocabulary)
    elif checkpoint.folder is not None:
        vectorizer = SentencePieceVectorizer(read_sentencepiece_model(checkpoint.folder))
    elif rows == T5_ROWS:
        vectorizer = SentencePieceVectorizer()
    else:
        raise ValueError(
            f"{checkpoint.where}: the table has {rows:,} rows, T5's has {T5_ROWS:,}: its "
            "vocabulary is another one. Give the file of its SentencePiece model (`vocabulary`, on "
            "the command line --vocabulary FILE)."
        )
    if vectorizer.vocabulary_size > rows:
        raise ValueError(
            f"{vocabulary or checkpoint.folder}: expected a vocabulary of at most {rows:,} pieces, "
            f"the rows of the table; it has {vectorizer.vocabulary_size:,}."
        )
    return vectorizer
