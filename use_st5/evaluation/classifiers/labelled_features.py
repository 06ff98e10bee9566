"""Features with the classes they belong to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from use_st5.evaluation.classifiers.features import Features


@dataclass(frozen=True, eq=False)
class LabelledFeatures:
    """What a classifier is trained and tested on.

    Attributes:
        features: `[rows, dim]`: an array, or anything that has its `shape` and gives the rows it
            is indexed with; it is never read as a whole by SentEval's classifier.
        labels: The class of each row, `[rows]`: integers from 0.

    Raises:
        ValueError: The shapes do not fit, there are no rows, labels are no such integers, or an
            array has NaN or infinities.
    """

    features: Features
    labels: np.ndarray

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels)
        shape = tuple(self.features.shape)
        if len(shape) != 2 or labels.shape != shape[:1] or not len(labels):
            raise ValueError(
                "expected features [rows, dim] and a label for each row, received the shapes "
                f"{shape} and {labels.shape}."
            )
        if labels.dtype.kind not in "iub" or labels.min() < 0:
            raise ValueError(f"labels: expected integers from 0, received {np.unique(labels)[:5]}.")
        features = self.features
        if isinstance(features, np.ndarray):
            if not np.isfinite(features).all():
                raise ValueError("features: expected finite numbers, received NaN or infinity.")
            features = np.ascontiguousarray(features, np.float32)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "labels", labels.astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, rows: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        """The features `[len(rows), dim]` of some rows, as float32; in `out` where it is given."""
        if out is None:
            out = np.empty((len(rows), self.features.shape[1]), np.float32)
        if isinstance(self.features, np.ndarray):
            # Any other mode copies through a buffer; the rows exist.
            np.take(self.features, rows, axis=0, out=out, mode="clip")
        else:
            out[...] = self.features[rows]
        return out
