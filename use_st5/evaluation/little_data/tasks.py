"""The tasks on learning from little data, and what reports show of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from use_st5._records import Count
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.classifiers import SentEvalClassifier
from use_st5.evaluation.little_data.protocol import learning_curve
from use_st5.evaluation.report import charts
from use_st5.evaluation.report.charts import Axis, Series
from use_st5.evaluation.report.evaluated import Evaluated, tasks_of
from use_st5.evaluation.report.score_table import cautions, model_rows, protocol_notes
from use_st5.evaluation.report.section import (
    Cell,
    Column,
    Plot,
    Row,
    Table,
    hundredfold,
    mark_best,
    score_cell,
)
from use_st5.evaluation.report.sections import GroupSection, Shown
from use_st5.evaluation.report.theme import Theme
from use_st5.evaluation.senteval.readers import SST2, TransferSet
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult


@dataclass(frozen=True)
class LittleDataTask(EvaluationTask):
    """Binary SST from 1,000 training phrases to all (USE paper, table 3).

    Attributes:
        sizes: Numbers of training phrases; all of them come last.
        draws: Random subsets of each size.
    """

    sizes: tuple[int, ...] = (1000, 2000, 4000, 8000, 16000, 32000)
    draws: int = 5
    name = "little_data_sst"
    group = "little_data"
    title = "SST from little data"
    sources = SST2.sources

    @property
    def protocol(self) -> str:
        """What is computed."""
        return (
            "accuracy on the test sentences of binary SST against the number of training phrases, "
            f"mean of {self.draws} random subsets; SentEval's logistic regression on frozen "
            "embeddings, the dev sentences choose the L2 factor and when to stop (the experiment "
            "of the USE paper's table 3, which trained a DNN tuned for each case)"
        )

    def options(self) -> dict[str, Any]:
        """The sizes, the draws, and the classifier's settings; the seed is that of the run."""
        settings = SentEvalClassifier().settings()
        return {"sizes": [*self.sizes], "draws": self.draws, **settings}

    def read(self, data: DataFolder) -> TransferSet:
        """Binary SST."""
        return SST2.read(data)

    def run(self, context: TaskContext) -> TaskResult:
        """Evaluates.

        Raises:
            MissingDataError: A file is not there.
            ValueError: A file is not in its layout or has too few phrases, or the encoder gives
                something unusable.
        """
        data = self.read(context.data)
        curve = learning_curve(
            context.embed,
            data,
            sizes=(*self.sizes, len(data.train)),
            draws=self.draws,
            classifier=SentEvalClassifier(seed=context.seed),
            progress=context.progress,
        )
        names = [f"accuracy_{name}" for name in (*self.sizes, "all")]
        return TaskResult(
            names[0],
            {name: point.mean for name, point in zip(names, curve, strict=True)},
            {part: len(samples) for part, samples in data.parts().items()},
            {
                "curve": [
                    {
                        "examples": point.examples,
                        "accuracy": point.mean,
                        "std": point.deviation,
                        "draws": len(point.accuracies),
                    }
                    for point in curve
                ]
            },
        )


TASKS = (LittleDataTask(),)


_TASK = "little_data_sst"


def _shown(models: Sequence[Evaluated], published: bool) -> Shown:
    """The curve and its table."""
    del published  # The paper's table is of another classifier.
    tasks = {name: task for name, task in tasks_of(models, "little_data").items() if name == _TASK}
    if not tasks:
        return (), ()
    curves = {
        model.position: {point["examples"]: point for point in task["details"]["curve"]}
        for model in models
        if (task := model.task(_TASK))
    }
    sizes = sorted({size for curve in curves.values() for size in curve})
    warnings = cautions(models, [_TASK])
    table = Table(
        caption="Accuracy × 100 by number of training examples; ± is the standard deviation over "
        "draws of the examples.",
        corner="Model",
        columns=tuple(Column(f"{size:,}") for size in sizes),
        rows=tuple(_rows(models, curves, sizes, bool(warnings))),
        notes=tuple(protocol_notes(tasks)),
        cautions=warnings,
    )
    return (table,), (_plot(models, curves),)


def _rows(
    models: Sequence[Evaluated], curves: dict[int, dict[int, dict]], sizes: list[int], apart: bool
) -> list[Row]:
    columns = []
    for size in sizes:
        cells = [_cell(curves.get(model.position, {}).get(size)) for model in models]
        columns.append(cells if apart else mark_best(cells))
    return model_rows(models, columns)


def _cell(point: dict | None) -> Cell:
    if point is None:
        return score_cell(None, "accuracy")
    accuracy, std = point["accuracy"], point.get("std")
    draws = point.get("draws") or 1
    value = math.nan if accuracy is None else accuracy
    small = f"± {std * 100:.2f}" if std is not None and draws > 1 else ""
    return score_cell(value, "accuracy", small=small, note=f"mean of {draws} draws")


def _plot(models: Sequence[Evaluated], curves: dict[int, dict[int, dict]]) -> Plot:
    series = [_series(model, curves[model.position]) for model in models if model.task(_TASK)]
    sizes = sorted({x for one in series for x in one.x})

    def draw(theme: Theme) -> charts.Figure:
        axis = Axis("training examples", "accuracy × 100", log=True)
        return charts.lines(theme, series, axis, _ticks(sizes))

    return Plot(
        "little_data",
        "Accuracy on SST by number of training examples; vertical lines are ± one standard "
        "deviation over draws.",
        f"Lines of accuracy over {len(sizes)} numbers of training examples for "
        f"{', '.join(one.label for one in series)}; the table has the numbers.",
        draw,
    )


def _series(model: Evaluated, curve: dict[int, dict]) -> Series:
    points = [curve[size] for size in sorted(curve)]
    y = [hundredfold(point["accuracy"]) for point in points]
    stds = [hundredfold(point.get("std") or 0.0) for point in points]
    return Series(
        model.name,
        tuple(point["examples"] for point in points),
        tuple(y),
        spread=tuple((mean - std, mean + std) for mean, std in zip(y, stds, strict=True)),
        model=model.position,
    )


def _ticks(sizes: list[float]) -> dict[float, str]:
    """Names for the sizes, without those too near to the one before to be read."""
    ticks: dict[float, str] = {}
    for size in sizes:
        if not ticks or size / [*ticks][-1] > 1.5:
            ticks[size] = f"{size / 1000:.3g}k" if size >= 1000 else f"{size:g}"
    return ticks


class _Point(msgspec.Struct):
    examples: Count
    accuracy: float | None
    std: float | None = None
    draws: Count | None = None


class _Curve(msgspec.Struct):
    curve: list[_Point]


SECTIONS = (
    GroupSection(
        "little_data",
        "Learning from little data",
        "What the embedding is worth where training examples are few: the accuracy of a classifier "
        "on the frozen embeddings against the number of examples that it learns from (the "
        "Universal Sentence Encoder paper's experiment).",
        more=_shown,
        details={_TASK: _Curve},
    ),
)
