"""The tasks of SentGLUE, in the order of the Sentence-T5 paper's table 6, and of pairs by AUC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation.classifiers import SentEvalClassifier
from use_st5.evaluation.glue.protocol import (
    glue_scores,
    pair_auc,
    predict_classes,
    predict_scores,
    without_first,
)
from use_st5.evaluation.glue.readers import (
    COLA,
    MNLI_MATCHED,
    MNLI_MISMATCHED,
    MRPC,
    QNLI,
    QQP,
    RTE,
    SST2,
    STSB,
    GlueDataset,
    LabelledTexts,
    TableLayout,
)
from use_st5.evaluation.report.published_rows import NLI, SBERT, TWO_STAGES
from use_st5.evaluation.report.score_table import ScoreGroup
from use_st5.evaluation.report.sections import GroupSection
from use_st5.evaluation.senteval import readers as senteval
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
        return {"features": self.features, **SentEvalClassifier().settings()}

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


@dataclass(frozen=True)
class PairTask(EvaluationTask):
    """Cosine of a pair against its binary label (Trans-Encoder, section 3 and table 15).

    Attributes:
        name: "pairs_…".
        title: For people.
        source: The file.
        layout: Its columns.
        positive: The class whose pairs should be the most similar ones.
        split: Which pairs they are, for people.
        skipped: So many pairs at the beginning of the file are left out.
    """

    name: str
    title: str
    source: DataSource
    layout: TableLayout
    positive: str
    split: str
    skipped: int = 0
    group = "pairs"

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """The one file."""
        return (self.source,)

    @property
    def protocol(self) -> str:
        """What is computed."""
        return (
            "area under the ROC curve of the cosine of the two embeddings, positive class "
            f"“{self.positive}”, {self.split} (Trans-Encoder, section 3)"
        )

    def options(self) -> dict[str, Any]:
        """The positive class and the split."""
        return {"positive": self.positive, "split": self.split, "skipped": self.skipped}

    def read(self, data: DataFolder) -> LabelledTexts:
        """The pairs that count."""
        pairs = self.layout.read(data.find(self.source))
        return without_first(pairs, self.skipped) if self.skipped else pairs

    def run(self, context: TaskContext) -> TaskResult:
        """Evaluates.

        Raises:
            MissingDataError: The file is not there.
            ValueError: It is not in its layout, or the encoder gives something unusable.
        """
        pairs = self.read(context.data)
        positive = self.layout.classes.index(self.positive)
        return TaskResult(
            "auc",
            {"auc": pair_auc(context.embed, pairs, positive=positive)},
            {
                "pairs": len(pairs),
                "positive": int((pairs.labels == positive).sum()),
                "broken_lines": pairs.broken_lines,
            },
        )


((_MRPC_TEST, _),) = senteval.MRPC.test
_ONE = "u"
_TWO = "u, v, |u − v|, u·v"
_ACCURACY = ("accuracy",)
_ACCURACY_F1 = ("accuracy", "f1")

TASKS = (
    SentGlueTask("sentglue_cola", COLA, ("matthews", "accuracy"), _ONE),
    SentGlueTask("sentglue_sst2", SST2, _ACCURACY, _ONE),
    SentGlueTask("sentglue_mrpc", MRPC, _ACCURACY_F1, _TWO),
    SentGlueTask("sentglue_stsb", STSB, ("pearson", "spearman"), _TWO),
    SentGlueTask("sentglue_qqp", QQP, _ACCURACY_F1, _TWO),
    SentGlueTask("sentglue_mnli_m", MNLI_MATCHED, _ACCURACY, _TWO),
    SentGlueTask("sentglue_mnli_mm", MNLI_MISMATCHED, _ACCURACY, _TWO),
    SentGlueTask("sentglue_qnli", QNLI, _ACCURACY, _TWO),
    SentGlueTask("sentglue_rte", RTE, _ACCURACY, _TWO),
    PairTask(
        "pairs_qqp",
        "QQP",
        QQP.dev_source,
        QQP.layouts[0],
        positive="duplicate",
        split="GLUE's whole dev split (the paper's 10,000 test pairs are not listed)",
    ),
    PairTask(
        "pairs_qnli",
        "QNLI",
        QNLI.dev_source,
        QNLI.layouts[0],
        positive="entailment",
        split="GLUE's dev split without its first 1,000 pairs, which are the paper's dev set",
        skipped=1000,
    ),
    PairTask(
        "pairs_mrpc",
        "MRPC",
        _MRPC_TEST,
        MRPC.layouts[0],
        positive="equivalent",
        split="the corpus's own test split",
    ),
)


SECTIONS = (
    GroupSection(
        "sentglue",
        "SentGLUE",
        "GLUE’s tasks with a classifier on the frozen embeddings.",
        # No mean: the paper's own is of no choice of its printed cells that is known.
        scores=(
            ScoreGroup(
                "sentglue",
                benchmarks=("sentglue",),
                featured=(
                    ("InferSent", NLI),
                    ("SBERT (RoBERTa Base)", SBERT),
                    ("SimCSE (RoBERTa Base)", NLI),
                    ("ST5 Enc (Base)", TWO_STAGES),
                    ("ST5 Enc (11B)", TWO_STAGES),
                ),
            ),
        ),
    ),
    GroupSection(
        "pairs",
        "Pair classification",
        "How well the similarity of two embeddings tells related pairs from others.",
        scores=(
            ScoreGroup(
                "pairs",
                benchmarks=("pairs",),
                featured=(
                    ("SimCSE-BERT-base", "bi-encoder"),
                    ("SimCSE-BERT-base + TENC (bi)", "bi-encoder"),
                    ("SimCSE-RoBERTa-base + TENC-mutual (bi)", "bi-encoder"),
                ),
            ),
        ),
    ),
)
