"""Reads T5 and Sentence-T5 from checkpoints of other libraries."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import field

from use_st5.convert.checkpoint import Checkpoint, shape_from
from use_st5.convert.sentence_transformers import LayerModule, SentenceModules
from use_st5.convert.weights import (
    RenamedSource,
    Target,
    WeightSource,
    assign_weights,
    check_shapes,
    listed,
)
from use_st5.io.records import Positive
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.t5.model import Activation, T5Config
from use_st5.models.t5.names import HUGGING_FACE, MESH_TENSORFLOW, MODEL_GARDEN, T5X, T5Names
from use_st5.models.t5.sentence_t5 import Pooling, SentenceT5

# Tensors of Hugging Face that are not read: copies of the table, and a bias that the original model
# never used. Some folders contain the table only as `_COPY`.
_COPY = "encoder.embed_tokens.weight"
_DUPLICATES = {
    _COPY,
    "decoder.embed_tokens.weight",
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
}

# Model Garden: prefixes of the model's tensors, and names of the table if both stacks share it.
_PARTS = ("encoder/", "decoder/", "shared_embedding/")
_SHARED = ("shared_embedding/embeddings", "decoder/target_embed/embeddings")


def table_of(checkpoint: Checkpoint) -> T5Names | None:
    """The mapping table for reading a T5; None: the tensors are not those of a T5."""
    if checkpoint.folder is not None:
        return HUGGING_FACE
    if checkpoint.format == "T5X":
        return T5X
    if MESH_TENSORFLOW.table in checkpoint.source.shapes():
        return MESH_TENSORFLOW
    return MODEL_GARDEN if _gardens(checkpoint.source) else None


def t5_tensors(checkpoint: Checkpoint) -> tuple[WeightSource, T5Names]:
    """The tensors of a T5 in a checkpoint, and the mapping table of their names."""
    source, names = checkpoint.source, table_of(checkpoint)
    if names is None:
        raise ValueError(f"{source.where}: expected a T5 of Mesh TensorFlow or the Model Garden.")
    if names is HUGGING_FACE:
        # The table gets its usual name; its copies and the unused bias are hidden.
        kept = {name: name for name in source.shapes() if name not in _DUPLICATES}
        if HUGGING_FACE.table not in kept and _COPY in source.shapes():
            kept[HUGGING_FACE.table] = _COPY
        source = RenamedSource(source, kept)
    elif names is MESH_TENSORFLOW:
        source = RenamedSource(source, {_as_in_1_0(name): name for name in source.shapes()})
    elif names is MODEL_GARDEN:
        # Only the tensors of the model; the token table gets its usual name.
        roots = sorted(_gardens(source))
        if len(roots) > 1:
            raise ValueError(f"{source.where}: expected one T5, found those of {listed(roots)}.")
        inside = [name for name in source.shapes() if name.startswith(roots[0])]
        below = {name.removeprefix(roots[0]): name for name in inside}
        kept = {name: stored for name, stored in below.items() if name.startswith(_PARTS)}
        for shared in _SHARED:
            if MODEL_GARDEN.table not in kept and shared in kept:
                kept[MODEL_GARDEN.table] = kept.pop(shared)
        source = RenamedSource(source, kept)
    return source, names


def _as_in_1_0(name: str) -> str:
    """The name in T5 1.0: since T5 1.1, Mesh TensorFlow gives norms other names."""
    if name.count("/") == 2:
        return name.replace("/rms_norm/", "/final_layer_norm/")
    return name.replace("/rms_norm/", "/layer_norm/")


def _gardens(source: WeightSource) -> list[str]:
    """The prefix of the tensors' names of each Model Garden model in a checkpoint."""
    norm = MODEL_GARDEN.encoder["norm"]
    return [name.removesuffix(norm) for name in source.shapes() if name.endswith(norm)]


# In Hugging Face's `config.json`.
_MODEL_TYPES = ["t5", "mt5"]
_ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gated-gelu": "gated_gelu"}


def can_read(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint holds a T5, T5 1.1, mT5 or Sentence-T5."""
    if checkpoint.folder is not None:
        return checkpoint.settings.get("model_type") in _MODEL_TYPES
    return table_of(checkpoint) is not None


def read_sentence_t5(checkpoint: Checkpoint, *, dtype: Any = None) -> SentenceT5:
    """A Sentence-T5 with the weights of a checkpoint (`Family.read`); projections stay float32."""
    (names, config, source), modules = open_t5(checkpoint), checkpoint.modules
    pooling_name = cast("Pooling", checkpoint.pooling or "mean")
    dense = _dense(modules, config.hidden_dim) if modules else None
    # Width of a dual encoder's projection; `check_shapes` refuses a tensor that is not a matrix.
    projection_width = (*source.shapes().get(names.projection, ()), 0, 0)[1] or None
    decoder = pooling_name == "decoder"
    expected_shapes = names.shapes(config, source, decoder=decoder)
    if projection_width:
        expected_shapes[names.projection] = (config.hidden_dim, projection_width)

    def left_out(name: str) -> bool:
        # A Sentence-T5 never uses the decoder's output layer.
        return name == names.logits or (not decoder and name.startswith(("decoder.", "decoder/")))

    check_shapes(expected_shapes, source, left_out=left_out)
    model = SentenceT5(
        config,
        pooling=pooling_name,
        projection_dim=dense.width if dense else projection_width,
        normalize=modules.normalize if modules else projection_width is not None,
        dtype=dtype,
    )
    with without_initial_values():
        model.build()
    mapping = names.targets(model)
    if projection_width:
        mapping[names.projection] = Target(model.projection.kernel)
    assign_weights(mapping, source)
    if dense is not None:
        dense.assign(model.projection)
    return model


def open_t5(checkpoint: Checkpoint) -> tuple[T5Names, T5Config, WeightSource]:
    """The names, shape and tensors of a T5; without settings, the tensors determine the shape."""
    config = None if checkpoint.folder is None else _config(checkpoint)
    source, names = t5_tensors(checkpoint)
    return names, config or names.config(source.shapes(), where=source.where), source


class _Settings(msgspec.Struct):
    """Settings of a T5 in `config.json` as fields of `T5Config`; defaults of transformers."""

    model_type: Literal["t5", "mt5"]
    num_layers: Positive
    num_heads: Positive
    vocabulary_size: Positive = field(name="vocab_size")
    hidden_dim: Positive = field(name="d_model")
    intermediate_dim: Positive = field(name="d_ff")
    key_value_dim: Positive = field(name="d_kv")
    activation: Literal["relu", "gated-gelu"] = field(name="feed_forward_proj", default="relu")
    layer_norm_epsilon: Annotated[float, msgspec.Meta(ge=1e-6, le=1e-6)] = 1e-6
    tied_softmax: bool = field(name="tie_word_embeddings", default=True)
    scaled_softmax: bool | None = field(name="scale_decoder_outputs", default=None)
    num_decoder_layers: Positive | None = None
    num_buckets: Positive = field(name="relative_attention_num_buckets", default=32)
    max_distance: Positive = field(name="relative_attention_max_distance", default=128)


def _config(checkpoint: Checkpoint) -> T5Config:
    """The shape of a T5 from its `config.json`."""
    path = checkpoint.settings_file
    remedy = "Give the folder of a T5 or mT5 as transformers saves it."
    settings = checkpoint.settings_as(_Settings, remedy=remedy)
    buckets, distance = settings.num_buckets, settings.max_distance
    if not 4 <= buckets < 2 * distance:
        expected = f"4 or more, and less than twice max_distance ({distance:,})"
        raise ValueError(f"{path}: num_buckets: expected {expected}, received {buckets:,}.")
    # transformers 5 ties all that it saves; a separate setting says that 1.1 does not scale.
    scaled = settings.tied_softmax if settings.scaled_softmax is None else settings.scaled_softmax
    activation = _ACTIVATIONS[settings.activation]
    return shape_from(settings, T5Config, activation=activation, scaled_softmax=scaled)


def _dense(modules: SentenceModules, hidden_dim: int) -> LayerModule | None:
    """The projection of a folder of sentence-transformers; None if it has none."""
    if not modules.behind_pooling:
        return None
    dense, *others = modules.behind_pooling
    if others or dense.bias or dense.activation != "Identity":
        raise ValueError(f"{dense.where}: expected one Dense, without bias and activation.")
    dense.check(hidden_dim)
    return dense
