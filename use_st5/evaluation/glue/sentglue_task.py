"""One task of SentGLUE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from use_st5.evaluation.classifiers import SentEvalClassifier
from use_st5.evaluation.data_folder import DataFolder, DataSource
from use_st5.evaluation.glue.glue_dataset import GlueDataset
from use_st5.evaluation.glue.labelled_texts import LabelledTexts
from use_st5.evaluation.glue.sentglue import glue_scores, predict_classes, predict_scores
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult


@dataclass(frozen=True)
class SentGlueTask(EvaluationTask):
    """A GLUE task on frozen embeddings.

    Attributes:
        name: "sentglue_…".
        dataset: What is read.
        metrics: The scores; the first one is the main one. With "pearson" labels are scores, else
            classes.
        features: "u", or "u, v, |u − v|, u·v" for pairs.
    """

    name: str
    dataset: GlueDataset
    metrics: tuple[str, ...]
    features: str
    group = "sentglue"

    @property
    def title(self) -> str:
        """GLUE's name of the data set."""
        return self.dataset.name

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """The train and the dev split."""
        return (self.dataset.train_source, self.dataset.dev_source)

    @property
    def protocol(self) -> str:
        """What is computed."""
        learner = (
            "softmax regression on soft labels 0 … 5 (Tai et al. 2015, as SentEval's STS Benchmark "
            "but with a class for 0)"
            if self._graded
            else "SentEval's logistic regression"
        )
        return (
            f"{self.metrics[0]} on GLUE's dev split; {learner} on ({self.features}) of frozen "
            "embeddings, trained on a random 95 % of the train split, the other 5 % "
            f"{'decide' if self._graded else 'choose the L2 factor and decide'} when to stop "
            "(Sentence-T5, section 8; its classifier is not described there)"
        )

    @property
    def _graded(self) -> bool:
        return "pearson" in self.metrics

    def options(self) -> dict[str, Any]:
        """The features and the classifier's settings; the seed is that of the run."""
        if self._graded:
            return {"features": self.features, "classifier": "soft labels 0 … 5"}
        classifier = SentEvalClassifier().options()
        del classifier["seed"]
        return {"features": self.features, **classifier}

    def read(self, data: DataFolder) -> tuple[LabelledTexts, LabelledTexts]:
        """The train and the dev split."""
        return self.dataset.read_train(data), self.dataset.read_dev(data)

    def run(self, context: TaskContext) -> TaskResult:
        """Evaluates.

        Raises:
            MissingDataError: A split is not there.
            ValueError: A file is not in its layout, or the encoder gives something unusable.
        """
        train, dev = self.read(context.data)
        if self._graded:
            found = predict_scores(context.embed, train=train, dev=dev, seed=context.seed)
        else:
            found = predict_classes(
                context.embed,
                train=train,
                dev=dev,
                classifier=SentEvalClassifier(seed=context.seed),
                seed=context.seed,
                progress=context.progress,
            )
        return TaskResult(
            self.metrics[0],
            glue_scores(dev.labels, found, self.metrics),
            {"train": len(train), "dev": len(dev), "broken_lines": train.broken_lines},
        )
