"""SentEval's own classifier, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from use_st5.evaluation.classifiers._networks import OPTIMIZERS
from use_st5.evaluation.classifiers._side_by_side import SideBySide
from use_st5.evaluation.classifiers.classifier import (
    Classifier,
    Fold,
    LabelledFeatures,
    TrainedClassifier,
    one_blas_thread,
)
from use_st5.evaluation.task import Progress

_GRID = (1e-5, 1e-4, 1e-3, 1e-2)

# Groups of networks that are trained at once: their parameters should stay in the cache.
_GROUPS = 10


@dataclass(frozen=True)
class SentEvalClassifier(Classifier):
    """Logistic regression, or one hidden layer, by mini-batches (senteval/tools/classifier.py).

    It differs from the original in the masks of dropout alone: initial weights, held-out rows and
    the order of the batches are those that the original draws.

    Attributes:
        hidden_dim: Hidden units with sigmoid; 0 for logistic regression.
        dropout: Rate before the sigmoid.
        optimizer: "adam" or "rmsprop", with torch's default rates.
        batch_size: Rows of a step.
        tenacity: Evaluations without improvement that are let pass; their counter is never reset.
        epoch_size: Passes over the data between evaluations.
        max_epoch: No evaluation starts after more passes than this.
        folds: Of cross-validation.
        seed: Of initial weights, batches, held-out rows, and the folds of `kfold`.

    Raises:
        ValueError: A setting is out of its range.
    """

    hidden_dim: int = 0
    dropout: float = 0.0
    optimizer: str = "adam"
    batch_size: int = 64
    tenacity: int = 5
    epoch_size: int = 4
    max_epoch: int = 200
    folds: int = 10
    seed: int = 1111

    name: ClassVar[str] = "senteval"
    grids: ClassVar[dict[str, tuple[float, ...]]] = {
        "inner_kfold": _GRID,
        "kfold": _GRID,
        "split": _GRID,
    }

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(
                f"optimizer: expected one of {[*OPTIMIZERS]}, received {self.optimizer!r}."
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout: expected 0 ≤ rate < 1, received {self.dropout}.")
        least = {
            "hidden_dim": 0,
            "batch_size": 1,
            "tenacity": 0,
            "epoch_size": 1,
            "max_epoch": 0,
            "folds": 2,
        }
        for field, limit in least.items():
            if getattr(self, field) < limit:
                raise ValueError(
                    f"{field}: expected at least {limit}, received {getattr(self, field)}."
                )

    @property
    def title(self) -> str:
        """What it is, for people, with its source."""
        kind = f"one layer of {self.hidden_dim} units" if self.hidden_dim else "logistic regression"
        return (
            f"SentEval's own classifier (senteval: {kind}, {self.optimizer}, batches of "
            f"{self.batch_size}, tenacity {self.tenacity}, epoch size {self.epoch_size})"
        )

    def options(self) -> dict[str, Any]:
        """The name and all settings, as JSON takes them."""
        return {"classifier": self.name, **asdict(self)}

    def fit(
        self,
        data: LabelledFeatures,
        folds: Sequence[Fold],
        grid: Sequence[Sequence[float]],
        *,
        classes: int,
        dev: LabelledFeatures | None = None,
        progress: Progress | None = None,
    ) -> list[list[TrainedClassifier]]:
        """See `Classifier.fit`. Without dev rows, 5 % of a fold's training rows are held out.

        The regularisations of a fold share initial weights and batches, as all are seeded alike:
        they are trained together, and so are folds of equal size.
        """
        dev = data if dev is None else dev
        with one_blas_thread():
            return self._fit(data, folds, grid, classes, dev, progress or Progress())

    def _fit(
        self,
        data: LabelledFeatures,
        folds: Sequence[Fold],
        grid: Sequence[Sequence[float]],
        classes: int,
        dev: LabelledFeatures,
        progress: Progress,
    ) -> list[list[TrainedClassifier]]:
        alike: dict[tuple[int, bool], list[int]] = {}
        for place, fold in enumerate(folds):
            alike.setdefault((len(fold.train), fold.dev is None), []).append(place)
        trained: dict[int, list[TrainedClassifier]] = {}
        for places in alike.values():
            for start in range(0, len(places), _GROUPS):
                some = places[start : start + _GROUPS]
                chosen = [folds[place] for place in some], [grid[place] for place in some]
                training = SideBySide(self, data, dev, *chosen, classes)
                trained.update(zip(some, training.run(progress), strict=True))
        return [trained[place] for place in range(len(folds))]
