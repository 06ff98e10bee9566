"""The table of a checkpoint format: what it calls the tensors of a T5, what their shapes say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from use_st5.convert.assignment import Target, listed
from use_st5.convert.weight_source import WeightSource
from use_st5.layers.attention import MultiHeadAttention
from use_st5.models.t5.block import T5Block
from use_st5.models.t5.config import T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.models.t5.stack import T5Stack
from use_st5.models.t5.t5 import T5

Shapes = Mapping[str, tuple[int, ...]]

# The roles of a block.
_ENCODER_ROLES = (
    *("attention_norm", "query", "key", "value", "output"),
    *("feed_forward_norm", "inner", "gate", "linear", "outer"),
)
_CROSS_ROLES = ("cross_norm", "cross_query", "cross_key", "cross_value", "cross_output")


@dataclass(frozen=True, kw_only=True)
class T5Names:
    """The mapping table of a checkpoint format.

    A stack's names are by role; `{n}` stands for the number of the block. The roles:
    "position_bias" and "norm" of the stack; of each block "attention_norm", "query", "key",
    "value", "output", "feed_forward_norm", "inner" (or "gate" and "linear" where the feed-forward
    layer is gated) and "outer"; of a decoder's also "cross_norm", "cross_query", "cross_key",
    "cross_value" and "cross_output".

    Attributes:
        table: The table of tokens.
        encoder: Role → name.
        decoder: Role → name.
        logits: The decoder's output layer, where it is not the table.
        projection: A dual encoder's projection; "": the format has none.
        transposed: The roles whose tensors are stored as their transposes, "logits" among them.
    """

    table: str
    encoder: Mapping[str, str]
    decoder: Mapping[str, str]
    logits: str
    projection: str = ""
    transposed: frozenset[str] = frozenset()

    def targets(self, model: T5 | SentenceT5) -> dict[str, Target]:
        """Name in the checkpoint → variable, for everything but a projection."""
        mapping = {self.table: Target(model.embedding.embeddings)}
        mapping |= self._of_stack(model.encoder, self.encoder)
        if model.decoder is not None:
            mapping |= self._of_stack(model.decoder, self.decoder)
        if (layer := getattr(model, "logits", None)) is not None:
            mapping[self.logits] = Target(layer.kernel, transposed="logits" in self.transposed)
        return mapping

    def shapes(
        self, config: T5Config, source: WeightSource, *, decoder: bool, logits: bool
    ) -> dict[str, tuple[int, ...]]:
        """Name → shape in the checkpoint for all that `targets` gives, without a model.

        So a configuration is held against a checkpoint before memory is taken for it.

        Args:
            config: The shape of the T5.
            source: The checkpoint, which bounds the number of layers.
            decoder: Whether the model has a decoder.
            logits: Whether it has an output layer beside the table.

        Raises:
            ValueError: There are more layers than the checkpoint has tensors.
        """
        tensors = len(source.shapes())
        if (layers := max(config.num_layers, config.decoder_layers * decoder)) > tensors:
            raise ValueError(
                f"{source.where} does not fit the model: expected tensors of {layers:,} layers, "
                f"found {tensors:,} tensors in all."
            )
        shapes: dict[str, tuple[int, ...]] = {
            self.table: (config.vocabulary_size, config.hidden_dim)
        }
        shapes |= self._shapes_of_stack(config, self.encoder, config.num_layers, _ENCODER_ROLES)
        if decoder:
            roles = (*_ENCODER_ROLES, *_CROSS_ROLES)
            shapes |= self._shapes_of_stack(config, self.decoder, config.decoder_layers, roles)
        if logits:
            shape = (config.hidden_dim, config.vocabulary_size)
            shapes[self.logits] = shape[::-1] if "logits" in self.transposed else shape
        return shapes

    def config(self, shapes: Shapes, *, where: str) -> T5Config:
        """The shape of the T5 with these tensors.

        What shapes cannot tell is that of the published models: a gated feed-forward layer is T5
        1.1's (tanh-gelu), another T5 1.0's (relu); distances from 128 on share a bucket.

        Args:
            shapes: Name → shape of every tensor.
            where: The checkpoint, for messages.

        Raises:
            ValueError: They are not those of a T5.
        """
        gated = self.encoder["linear"].format(n=0) in shapes
        roles = ("position_bias", "query", "gate" if gated else "inner")
        names = [self.table, *(self.encoder[role].format(n=0) for role in roles)]
        absent = [name for name in names if not _is_matrix(shapes.get(name, ()))]
        if absent:
            raise ValueError(
                f"{where}: expected the matrices of a T5, among them {listed(absent)}; found "
                f"{listed(sorted(shapes))}."
            )
        table, bias, query, inner = (
            shapes[name][::-1] if role in self.transposed else shapes[name]
            for role, name in zip(("table", *roles), names, strict=True)
        )
        if query[1] % bias[1]:
            raise ValueError(
                f"{where}: expected {names[2]} to be as wide as a multiple of the "
                f"{bias[1]} heads that {names[1]} has, found {query[1]}."
            )
        layers = _count(self.encoder["query"], shapes)
        decoder_layers = _count(self.decoder["query"], shapes)
        tied = self.logits not in shapes
        return T5Config(
            vocabulary_size=table[0],
            num_layers=layers,
            hidden_dim=table[1],
            intermediate_dim=inner[1],
            num_heads=bias[1],
            key_value_dim=query[1] // bias[1],
            activation="gated_gelu" if gated else "relu",
            tied_softmax=tied,
            scaled_softmax=tied,
            num_decoder_layers=decoder_layers or None,
            num_buckets=bias[0],
        )

    def _shapes_of_stack(
        self, config: T5Config, names: Mapping[str, str], layers: int, roles: Iterable[str]
    ) -> dict[str, tuple[int, ...]]:
        of_role = _shapes_by_role(config)
        places = [("position_bias", 0), ("norm", 0)]
        places += [(role, number) for number in range(layers) for role in roles if role in of_role]
        return {
            names[role].format(n=number): of_role[role][::-1]
            if role in self.transposed
            else of_role[role]
            for role, number in places
        }

    def _of_stack(self, stack: T5Stack, names: Mapping[str, str]) -> dict[str, Target]:
        variables = [
            ("position_bias", 0, stack.position_bias.table),
            ("norm", 0, stack.norm.scale),
        ]
        for number, block in enumerate(stack.blocks):
            variables += [(role, number, variable) for role, variable in _block_variables(block)]
        return {
            names[role].format(n=number): Target(variable, transposed=role in self.transposed)
            for role, number, variable in variables
        }


def _is_matrix(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and 0 not in shape


def _shapes_by_role(config: T5Config) -> dict[str, tuple[int, ...]]:
    """The shape of each role's variable; "inner", or "gate" and "linear", where there are any."""
    dim, heads = config.hidden_dim, config.num_heads * config.key_value_dim
    inner = ("inner",) if config.activation == "relu" else ("gate", "linear")
    shapes: dict[str, tuple[int, ...]] = {"position_bias": (config.num_buckets, config.num_heads)}
    shapes |= dict.fromkeys(("norm", "attention_norm", "cross_norm", "feed_forward_norm"), (dim,))
    for prefix in ("", "cross_"):
        shapes |= {f"{prefix}{role}": (dim, heads) for role in ("query", "key", "value")}
        shapes[f"{prefix}output"] = (heads, dim)
    shapes |= dict.fromkeys(inner, (dim, config.intermediate_dim))
    return {**shapes, "outer": (config.intermediate_dim, dim)}


def _count(template: str, shapes: Shapes) -> int:
    """How many blocks there are."""
    number = 0
    while template.format(n=number) in shapes:
        number += 1
    return number


def _block_variables(block: T5Block) -> Iterator[tuple[str, Any]]:
    """Role and variable of each weight of a block."""
    yield "attention_norm", block.attention_norm.scale
    yield from _attention_variables(block.attention, "")
    if block.cross_attention:
        yield "cross_norm", block.cross_norm.scale
        yield from _attention_variables(block.cross, "cross_")
    yield "feed_forward_norm", block.feed_forward_norm.scale
    feed_forward = block.feed_forward
    if feed_forward.linear is not None:
        yield "gate", feed_forward.inner.kernel
        yield "linear", feed_forward.linear.kernel
    else:
        yield "inner", feed_forward.inner.kernel
    yield "outer", feed_forward.outer.kernel


def _attention_variables(attention: MultiHeadAttention, prefix: str) -> Iterator[tuple[str, Any]]:
    yield f"{prefix}query", attention.query.kernel
    yield f"{prefix}key", attention.key.kernel
    yield f"{prefix}value", attention.value.kernel
    yield f"{prefix}output", attention.output_dense.kernel
