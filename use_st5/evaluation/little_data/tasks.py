"""The tasks on learning from little data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from use_st5.evaluation.classifiers import SentEvalClassifier
from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.little_data.protocol import learning_curve
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
        classifier = SentEvalClassifier().options()
        del classifier["seed"]
        return {"sizes": [*self.sizes], "draws": self.draws, **classifier}

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
