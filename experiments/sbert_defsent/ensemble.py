"""Average and Concat: two fine-tuned encoders as one encoder.

Importing this module registers the family `ensemble`: an exported ensemble then loads as a
`TrainableEncoder`. `use_st5.load` and `hub.load` read it without this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

import keras
import tensorflow as tf
from keras import ops

from use_st5.export import EncoderGraph
from use_st5.models import Family, family_named, family_of, register
from use_st5.tokenizers import Tokenizer

Mode = Literal["average", "concat"]


@keras.saving.register_keras_serializable(package="use_st5")
class Ensemble(keras.Model):
    """The average or the concatenation of several encoders' vectors.

    "Average" and "Concat" of Tsukagoshi et al. 2022 (arXiv 2202.02990), section 4. As there, the
    members' vectors are not changed, and the result is not scaled to length 1.

    Args:
        members: Two or more built encoders with the same tokenizer, of any families.
        mode: "average" or "concat".

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`.
    """

    def __init__(
        self, members: Sequence[keras.Model], *, mode: Mode = "average", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if mode not in get_args(Mode):
            raise ValueError(f"Unknown mode: {mode!r}. Expected one of {get_args(Mode)}.")
        differing = len({id(member) for member in members})
        if differing < max(2, len(members)):
            raise ValueError(
                f"Expected two or more members, each another model, received {len(members)}, of "
                f"which {differing} differ."
            )
        dimensions = [member.dimension for member in members]
        if mode == "average" and len(set(dimensions)) > 1:
            raise ValueError(
                f"Expected members of one dimension to average, received {dimensions}. Use "
                'mode="concat".'
            )
        self.members = list(members)
        self.mode = mode
        self.dimension = dimensions[0] if mode == "average" else sum(dimensions)

    def build(self, _input_shape: Any = None) -> None:
        """Builds the members that are not built."""
        for member in self.members:
            if not member.built:
                member.build()
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        """See the class."""
        return self.combined([member(ids, training=training) for member in self.members])

    def combined(self, vectors: Sequence[Any]) -> Any:
        """Combines the members' vectors `[batch, member's dimension]` to `[batch, dimension]`."""
        if self.mode == "average":
            return sum(vectors[1:], start=vectors[0]) / len(vectors)
        return ops.concatenate(vectors, axis=-1)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, int]:
        """The shape of a batch of vectors."""
        return (input_shape[0], self.dimension)


class EnsembleFamily(Family):
    """Several encoders with the same tokenizer, each of any family."""

    name = "ensemble"
    model_types: ClassVar[tuple[type[Ensemble], ...]] = (Ensemble,)
    presets: ClassVar = {}
    tokenizers: ClassVar = {}
    precisions = ("float32", "int8")

    def max_tokens(self, model: Ensemble) -> int | None:
        """The lowest of the members' limits; None if no member has one."""
        limits = [family_of(each).max_tokens(each) for each in model.members]
        return min((limit for limit in limits if limit is not None), default=None)

    def graph(
        self, model: Ensemble, tokenizer: Tokenizer, *, precision: str, max_length: int | None
    ) -> EncoderGraph:
        """A graph that combines the vectors of the members' graphs."""
        graphs = [
            family_of(each).graph(each, tokenizer, precision=precision, max_length=max_length)
            for each in model.members
        ]
        first = graphs[0]
        if differing := {graph.max_length for graph in graphs} - {first.max_length}:
            raise ValueError(
                f"Expected members with the same max_length, received {first.max_length} and "
                f"{differing}."
            )

        def combining(name: str) -> Callable[..., tf.Tensor]:
            functions = [getattr(graph, name) for graph in graphs]
            return lambda given, training: model.combined([f(given, training) for f in functions])

        return EncoderGraph(
            embed_text=combining("embed_text"),
            embed_ids=combining("embed_ids"),
            embed_tokens=combining("embed_tokens"),
            preprocess=first.preprocess,
            token_counts=first.token_counts,
            dimension=model.dimension,
            max_length=first.max_length,
            precision=precision,
            variables=[each for graph in graphs for each in graph.variables],
            trainable_variables=[each for graph in graphs for each in graph.trainable_variables],
            regularization_losses=[
                each for graph in graphs for each in graph.regularization_losses
            ],
            tracked={**first.tracked, "members": [graph.tracked for graph in graphs]},
        )

    def config(self, model: Ensemble) -> dict[str, Any]:
        """The mode, and each member's family and configuration."""
        families = [family_of(each) for each in model.members]
        return {
            "mode": model.mode,
            "members": [
                {"family": family.name, "config": family.config(each)}
                for family, each in zip(families, model.members, strict=True)
            ],
        }

    def restore(self, config: Mapping[str, Any], *, dtype: Any = None) -> Ensemble:
        """Restores the members by their families, and makes the ensemble of them."""
        members = [
            family_named(each["family"]).restore(each["config"], dtype=dtype)
            for each in config["members"]
        ]
        model = Ensemble(members, mode=config["mode"])
        model.build()
        return model


register(EnsembleFamily())
