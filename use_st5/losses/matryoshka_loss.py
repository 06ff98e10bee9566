"""Matryoshka loss: vectors that stay useful when they are shortened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras import ops, saving

from use_st5.layers.pooling import l2_normalize
from use_st5.losses.task_loss import Feature, Gather, VectorLoss


@saving.register_keras_serializable(package="use_st5")
class MatryoshkaLoss(VectorLoss):
    """The mean of a loss over the first `d` entries of the vectors, for several `d`.

    Kusupati et al. 2022, equation 1 with equal weights. The first `d` entries are scaled to length
    1, as they will be when they are used alone. Each `d` has its own copy of the loss's layers.
    After training, `l2_normalize(vectors[:, :d])` is a vector of `d` numbers.

    Inputs:
        Those of the wrapped loss.

    Relations:
        It wraps any `VectorLoss`, usually `ContrastiveLoss`.

    Examples:
        >>> loss = MatryoshkaLoss(ContrastiveLoss(), dimensions=(64, 256, 768))
        >>> task = Task("pairs", loss, ArrayData({"anchor": ids, "positive": others}))
        >>> task.check_features()

    Args:
        loss: The loss that is computed for each dimension.
        dimensions: The dimensions, without repetition. Include the full dimension to train the
            whole vector too.
    """

    def __init__(self, loss: VectorLoss, *, dimensions: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dimensions = tuple(dimensions)
        if not dimensions or min(dimensions) < 1 or len(set(dimensions)) != len(dimensions):
            raise ValueError(f"Expected dimensions of 1 or more, each once, not {self.dimensions}.")
        self.loss = loss
        config = loss.get_config()
        config.pop("name", None)  # Keras's own configurations have none.
        self.losses_of_heads = [type(loss).from_config(config) for _ in self.dimensions]

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features of the wrapped loss."""
        return self.loss.features

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The metrics of the wrapped loss for each dimension, for example `accuracy_64`."""
        names = self.loss.metric_names
        return tuple(f"{name}_{dimension}" for dimension in self.dimensions for name in names)

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        dimensions = self.dimensions
        if max(dimensions) > embedding_shape[-1]:
            most = embedding_shape[-1]
            raise ValueError(f"Expected dimensions up to the encoder's {most}, not {dimensions}.")
        for dimension, loss in zip(self.dimensions, self.losses_of_heads, strict=True):
            loss.build((None, dimension))

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        return self.loss.texts(batch)

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        values = []
        metrics: dict[str, Any] = {}
        for dimension, loss in zip(self.dimensions, self.losses_of_heads, strict=True):
            heads = [l2_normalize(each[:, :dimension]) for each in vectors]
            value, loss_metrics = loss.from_vectors(heads, batch, training=training, gather=gather)
            values.append(value)
            metrics |= {f"{name}_{dimension}": loss_metrics[name] for name in loss_metrics}
        return ops.mean(ops.stack(values)), metrics

    def get_config(self) -> dict[str, Any]:
        loss = saving.serialize_keras_object(self.loss)
        loss["config"].pop("name", None)  # has a counter: each run would look different
        return {**super().get_config(), "loss": loss, "dimensions": self.dimensions}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> MatryoshkaLoss:
        return cls(**{**config, "loss": saving.deserialize_keras_object(config["loss"])})
