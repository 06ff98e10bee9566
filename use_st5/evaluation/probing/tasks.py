"""SentEval's ten probing tasks, in the order of the paper, with each of its two classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation.classifiers import SentEvalClassifier
from use_st5.evaluation.probing.protocol import mlp_grid, probe
from use_st5.evaluation.probing.readers import ProbingSet, read_probing
from use_st5.evaluation.report.score_table import ScoreGroup
from use_st5.evaluation.report.sections import GroupSection
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

_LINEAR_ONLY = "word_content.txt"


@dataclass(frozen=True)
class ProbingTask(EvaluationTask):
    """A probing task of SentEval.

    Attributes:
        name: "probing_…".
        group: "probing", or "probing_mlp" with the grid.
        title: The paper's name of it.
        file: The file in `data/probing/`.
        mlp: The paper's grid of classifiers with a hidden layer in place of logistic regression;
            not for word content, whose thousand classes SentEval always leaves to the latter.
    """

    name: str
    group: str
    title: str
    file: str
    mlp: bool = False

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """The one file."""
        places = (f"probing/{self.file}", self.file)
        origin = f"https://github.com/facebookresearch/SentEval, data/probing/{self.file}"
        return (DataSource(f"SentEval probing {self.file}", places, origin),)

    @property
    def protocol(self) -> str:
        """What is computed."""
        kind = (
            "a hidden layer (50, 100 or 200 units, dropout 0, 0.1 or 0.2, chosen on the dev part)"
            if self._grid
            else "logistic regression"
        )
        return (
            f"test accuracy of SentEval's classifier, {kind}, on frozen embeddings; the dev part "
            "chooses the L2 factor and when to stop (senteval/probing.py; Conneau et al. 2018)"
        )

    @property
    def _grid(self) -> bool:
        return self.mlp and self.file != _LINEAR_ONLY

    def options(self) -> dict[str, Any]:
        """Whether it is the paper's grid, and the classifier's settings; the seed is the run's."""
        return {"mlp_grid": self._grid, **SentEvalClassifier().settings()}

    def read(self, data: DataFolder) -> ProbingSet:
        """The one file."""
        return read_probing(data.find(self.sources[0]))

    def run(self, context: TaskContext) -> TaskResult:
        """Evaluates.

        Raises:
            MissingDataError: The file is not there.
            ValueError: It is not in its format, or the encoder gives something unusable.
        """
        data = self.read(context.data)
        plain = SentEvalClassifier(seed=context.seed)
        chosen, found = probe(
            context.embed,
            data,
            classifiers=mlp_grid(plain) if self._grid else [plain],
            progress=context.progress,
        )
        return TaskResult(
            "accuracy",
            {"accuracy": found.test_accuracy, "dev_accuracy": found.dev_accuracy},
            {"classes": len(data.classes)}
            | {part: len(sentences) for part, sentences in data.sentences.items()},
            {"l2": found.regularization[0], "classifier": chosen.options()},
        )


_FILES = {
    "length": ("SentLen", "sentence_length.txt"),
    "word_content": ("WC", "word_content.txt"),
    "depth": ("TreeDepth", "tree_depth.txt"),
    "top_constituents": ("TopConst", "top_constituents.txt"),
    "bigram_shift": ("BShift", "bigram_shift.txt"),
    "tense": ("Tense", "past_present.txt"),
    "subject_number": ("SubjNum", "subj_number.txt"),
    "object_number": ("ObjNum", "obj_number.txt"),
    "odd_man_out": ("SOMO", "odd_man_out.txt"),
    "coordination_inversion": ("CoordInv", "coordination_inversion.txt"),
}

_LINEAR = tuple(
    ProbingTask(f"probing_{name}", "probing", title, file) for name, (title, file) in _FILES.items()
)
_MLP = tuple(
    ProbingTask(f"{task.name}_mlp", "probing_mlp", task.title, task.file, mlp=True)
    for task in _LINEAR
)

TASKS = _LINEAR + _MLP


def _scores(tasks: tuple[ProbingTask, ...], title: str, overview: str) -> ScoreGroup:
    names = tuple(task.name for task in tasks)
    return ScoreGroup(tasks[0].group, order=names, average=names, title=title, overview=overview)


SECTIONS = (
    GroupSection(
        "probing",
        "Probing (SentEval)",
        "Which properties of a sentence can be read off its embedding.",
        scores=(
            _scores(_LINEAR, "Logistic regression", "Probing"),
            _scores(_MLP, "One hidden layer", "Probing (hidden layer)"),
        ),
        groups={
            "probing": "Probing (SentEval)",
            "probing_mlp": "Probing (SentEval, one hidden layer)",
        },
    ),
)
