"""Several encoders that answer as one: the average of their vectors, or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self, get_args

import keras
from keras import ops

from use_st5.layers.l2_normalize import l2_normalize
from use_st5.models.ensemble.joined_tokenizer import distinct_stages, same_ids
from use_st5.tokenizers.tokenizer import Tokenizer

Mode = Literal["average", "concat"]


class Encoder(Protocol):
    """What `Ensemble.of_encoders` takes: `TrainableEncoder`, for one."""

    model: keras.Model
    tokenizer: Tokenizer


@keras.saving.register_keras_serializable(package="use_st5")
class Ensemble(keras.Model):
    """The average or the concatenation of several encoders' vectors.

    "Average" and "Concat" of Tsukagoshi et al. 2022 (arXiv 2202.02990), section 4, who combine an
    SBERT and a DefSent that were fine-tuned apart. As there, the members' vectors are taken as they
    are: of members that scale them to length 1 each counts the same; of raw ones a longer vector
    counts more, in an average and in the cosine of a concatenation. The result is not scaled either
    unless `normalize` says so, for searches by dot product. With `unit_members` the cosine of two
    concatenations is the mean of the members' cosines, the ensemble of Trans-Encoder (Liu et al.
    2022, arXiv 2109.13059, section 2.4).

    Args:
        members: Two or more encoders of any families, built.
        mode: "average" or "concat".
        normalize: Whether the vectors are scaled to length 1 at the end.
        unit_members: Whether each member's vectors are scaled to length 1 first.
        stages: The part of a row of ids that each member reads, by number, where these come from
            several tokenizers (`JoinedTokenizer`); None: all members read the whole row.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`.

    Raises:
        ValueError: There are fewer than two members, one is there twice, the mode is unknown,
            their dimensions differ and are to be averaged, or the stages are not one for each.

    Examples:
        >>> sbert, defsent = (TrainableEncoder.load(folder) for folder in ("sbert", "defsent"))
        >>> model = Ensemble.of_encoders([sbert, defsent], mode="average")
        >>> TrainableEncoder(model, sbert.tokenizer).export("average")
    """

    def __init__(
        self,
        members: Sequence[keras.Model],
        *,
        mode: Mode = "average",
        normalize: bool = False,
        unit_members: bool = False,
        stages: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if mode not in get_args(Mode):
            raise ValueError(f"Unknown mode: {mode!r}. Expected one of {get_args(Mode)}.")
        if len({id(member) for member in members}) < max(2, len(members)):
            raise ValueError(
                f"Expected two or more members, each another model, received {len(members)}, of "
                f"which {len({id(member) for member in members})} differ."
            )
        dimensions = [member.dimension for member in members]
        if mode == "average" and len(set(dimensions)) > 1:
            raise ValueError(
                f"Expected members of one dimension to average, received {dimensions}. Use "
                'mode="concat".'
            )
        if stages is not None and len(stages) != len(members):
            raise ValueError(
                f"stages: expected one for each of {len(members)} members, received {stages}."
            )
        self.members = list(members)
        self.unit_members = unit_members
        self.stages = None if stages is None else [*stages]
        self.mode = mode
        self.normalize = normalize
        self.dimension = dimensions[0] if mode == "average" else sum(dimensions)

    @classmethod
    def of_encoders(
        cls, encoders: Sequence[Encoder], *, mode: Mode = "average", **settings: bool
    ) -> Self:
        """The ensemble of encoders; its tokenizer is `joined_stage(encoders)`.

        Args:
            encoders: Two or more; tokenizers that give the same ids are one.
            mode: As in the constructor.
            **settings: As in the constructor: `normalize`, `unit_members`.

        Raises:
            ValueError: As in the constructor.
        """
        there = distinct_stages(encoders)
        stages = [
            next(i for i, stage in enumerate(there) if same_ids(stage, encoder.tokenizer))
            for encoder in encoders
        ]
        models = [encoder.model for encoder in encoders]
        return cls(models, mode=mode, stages=stages if len(there) > 1 else None, **settings)

    def build(self, _input_shape: Any = None) -> None:
        for member in self.members:
            if not member.built:
                member.build()
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.combined(
            [
                member(part, training=training)
                for member, part in zip(self.members, self.parts(ids), strict=True)
            ]
        )

    def parts(self, ids: Any) -> list[Any]:
        """What each member reads of rows of ids.

        Args:
            ids: int32 `[batch, length]`, those of the stages by turns.
        """
        if self.stages is None:
            return [ids] * len(self.members)
        return [ids[:, stage :: max(self.stages) + 1] for stage in self.stages]

    def combined(self, vectors: Sequence[Any]) -> Any:
        """What the members' vectors become.

        Args:
            vectors: float32 `[batch, the member's dimension]` each.

        Returns:
            float32 `[batch, dimension]`.
        """
        if self.unit_members:
            vectors = [l2_normalize(each) for each in vectors]
        if self.mode == "average":
            vector = sum(vectors[1:], start=vectors[0]) / len(vectors)
        else:
            vector = ops.concatenate(vectors, axis=-1)
        return l2_normalize(vector) if self.normalize else vector

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, int]:
        return (input_shape[0], self.dimension)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "members": [keras.saving.serialize_keras_object(each) for each in self.members],
            "mode": self.mode,
            "normalize": self.normalize,
            "unit_members": self.unit_members,
            "stages": self.stages,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Ensemble:
        serialized = config.pop("members")
        members = [keras.saving.deserialize_keras_object(each) for each in serialized]
        return cls(members, **config)
