"""SentEval's nine transfer tasks, with its own classifier and with scikit-learn's."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation.classifiers.classifier import Classifier
from use_st5.evaluation.classifiers.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.classifiers.sklearn_classifier import SklearnClassifier
from use_st5.evaluation.report.published_rows import ENGLISH
from use_st5.evaluation.report.score_table import ScoreGroup
from use_st5.evaluation.report.sections import GroupSection
from use_st5.evaluation.senteval.protocol import evaluate_transfer
from use_st5.evaluation.senteval.readers import DATASETS, TransferDataset, TransferSet
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult


@dataclass(frozen=True)
class TransferTask(EvaluationTask):
    """Accuracy of a classifier on frozen embeddings.

    Attributes:
        name: What `--tasks` takes.
        group: "senteval" with the original classifier.
        dataset: The files.
        classifier: What is trained.
    """

    name: str
    group: str
    dataset: TransferDataset
    classifier: Classifier

    @property
    def title(self) -> str:
        """The set's name, with the classifier's where it is not SentEval's own."""
        kind = self.classifier.name
        return self.dataset.name if kind == "senteval" else f"{self.dataset.name} ({kind})"

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """The set's files."""
        return self.dataset.sources

    @property
    def protocol(self) -> str:
        """What is computed."""
        return f"Accuracy of {self.classifier.title} on frozen embeddings; {self._validation()}"

    def options(self) -> dict[str, Any]:
        """The classifier's settings; its seed is that of the run."""
        return self.classifier.settings()

    def read(self, data: DataFolder) -> TransferSet:
        """All files of the set."""
        return self.dataset.read(data)

    def run(self, context: TaskContext) -> TaskResult:
        """Trains and tests; F1 is reported for MRPC, as SentEval does."""
        score = evaluate_transfer(
            context.embed,
            self.read(context.data),
            classifier=dataclasses.replace(self.classifier, seed=context.seed),
            progress=context.progress,
        )
        scores = {"accuracy": score.accuracy}
        if self.dataset.name == "MRPC" and score.f1 is not None:
            scores["f1"] = score.f1
        return TaskResult(
            main="accuracy",
            scores=scores,
            counts=score.counts,
            details={
                "classifier": score.protocol,
                "dev_accuracy": score.dev_accuracy,
                "regularization": [*score.regularization],
            },
        )

    def _validation(self) -> str:
        folds = self.classifier.folds
        if self.dataset.dev:
            return "the dev set chooses the regularisation"
        if self.dataset.test:
            return f"{folds} folds of the training set choose the regularisation"
        return (
            f"mean of {folds} folds, and {folds} folds inside each training part choose the "
            "regularisation"
        )


# What the toolkit's README names as comparable with the literature; these are the defaults.
_ORIGINAL = tuple(
    TransferTask(data.name.lower().replace("-", ""), "senteval", data, SentEvalClassifier())
    for data in DATASETS
)

# Not what papers report: converged, without mini-batches, early stopping or held-out rows; two to
# three times as quick where a task is two classes in two loops of folds.
_SKLEARN = tuple(
    TransferTask(f"{task.name}_sklearn", "senteval_sklearn", task.dataset, SklearnClassifier())
    for task in _ORIGINAL
)

TASKS = _ORIGINAL + _SKLEARN


# Those of the papers' tables, and in their order.
_PAPERS = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")


def _scores(group: str, suffix: str, title: str, overview: str) -> ScoreGroup:
    return ScoreGroup(
        group,
        order=tuple(name + suffix for name in (*_PAPERS, "sst5", "sicke")),
        average=tuple(name + suffix for name in _PAPERS),
        title=title,
        suffix=suffix,
        benchmarks=("senteval",),
        featured=ENGLISH,
        overview=overview,
    )


SECTIONS = (
    GroupSection(
        "senteval",
        "Transfer (SentEval)",
        "How well a small classifier on the frozen embeddings does a task that the encoder was not "
        "trained for.",
        scores=(
            _scores("senteval", "", "The original classifier", "Transfer"),
            _scores(
                "senteval_sklearn",
                "_sklearn",
                "scikit-learn's classifier",
                "Transfer (scikit-learn)",
            ),
        ),
        groups={
            "senteval": "Transfer (SentEval)",
            "senteval_sklearn": "Transfer (SentEval, scikit-learn)",
        },
    ),
)
