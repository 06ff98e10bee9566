"""Several encoders of one text stage that answer as one: the average of their vectors, or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self, get_args

import keras
from keras import ops

from use_st5.layers.l2_normalize import l2_normalize
from use_st5.text.vectorizer import Vectorizer

Mode = Literal["average", "concat"]


class Encoder(Protocol):
    """What `Ensemble.of_encoders` takes: `TrainableEncoder`, for one."""

    model: keras.Model
    vectorizer: Vectorizer


@keras.saving.register_keras_serializable(package="use_st5")
class Ensemble(keras.Model):
    """The average or the concatenation of several encoders' vectors.

    "Average" and "Concat" of Tsukagoshi et al. 2022 (arXiv 2202.02990), section 4, who combine an
    SBERT and a DefSent that were fine-tuned apart. As there, the members' vectors are taken as they
    are: of members that scale them to length 1 each counts the same; of raw ones a longer vector
    counts more, in an average and in the cosine of a concatenation. The result is not scaled either
    unless `normalize` says so, for searches by dot product.

    Args:
        members: Two or more encoders of any families, built, which read the same ids.
        mode: "average" or "concat".
        normalize: Whether the vectors are scaled to length 1 at the end.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`.

    Raises:
        ValueError: There are fewer than two members, one is there twice, the mode is unknown, or
            their dimensions differ and are to be averaged.

    Example:
        >>> sbert, defsent = (TrainableEncoder.load(folder) for folder in ("sbert", "defsent"))
        >>> model = Ensemble.of_encoders([sbert, defsent], mode="average")
        >>> TrainableEncoder(model, sbert.vectorizer).export("average")
    """

    def __init__(
        self,
        members: Sequence[keras.Model],
        *,
        mode: Mode = "average",
        normalize: bool = False,
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
        self.members = list(members)
        self.mode = mode
        self.normalize = normalize
        self.dimension = dimensions[0] if mode == "average" else sum(dimensions)

    @classmethod
    def of_encoders(
        cls, encoders: Sequence[Encoder], *, mode: Mode = "average", normalize: bool = False
    ) -> Self:
        """The ensemble of encoders whose text stages are held against each other.

        Args:
            encoders: Two or more with the same text stage.
            mode: As in the constructor.
            normalize: As in the constructor.

        Raises:
            ValueError: Text stages or vocabularies differ, or as in the constructor.
        """
        stages = [encoder.vectorizer for encoder in encoders]
        for number, stage in enumerate(stages[1:], start=1):
            if (stage.kind, stage.vocabulary) != (stages[0].kind, stages[0].vocabulary):
                raise ValueError(
                    "Expected members that read the same ids, but the text stage of member "
                    f"{number} ({stage.kind}, {stage.vocabulary.size:,} ids) is another than that "
                    f"of member 0 ({stages[0].kind}, {stages[0].vocabulary.size:,} ids)."
                )
        models = [encoder.model for encoder in encoders]
        return cls(models, mode=mode, normalize=normalize)

    def build(self, _input_shape: Any = None) -> None:
        for member in self.members:
            if not member.built:
                member.build()
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.combined([member(ids, training=training) for member in self.members])

    def combined(self, vectors: Sequence[Any]) -> Any:
        """What the members' vectors become.

        Args:
            vectors: float32 `[batch, the member's dimension]` each.

        Returns:
            float32 `[batch, dimension]`.
        """
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
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Ensemble:
        serialized = config.pop("members")
        members = [keras.saving.deserialize_keras_object(each) for each in serialized]
        return cls(members, **config)
