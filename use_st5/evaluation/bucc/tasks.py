"""BUCC 2018 as an evaluation task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation.bucc.protocol import evaluate_bucc
from use_st5.evaluation.bucc.readers import BUCCSet, read_bucc
from use_st5.evaluation.report.published_rows import MULTILINGUAL
from use_st5.evaluation.report.score_table import ScoreGroup
from use_st5.evaluation.report.sections import GroupSection
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

# Where the threshold is chosen, and where it is then used; names of the organisers and of XTREME.
_DEVELOPMENT = ("dev", "sample", "training")
_TEST = ("test", "training")


@dataclass(frozen=True)
class BUCCTask(EvaluationTask):
    """Mining translations between English and one language.

    Attributes:
        language: "de", "fr", "ru" or "zh".
        k: How many neighbours the margin takes.
    """

    language: str
    k: int = 4

    group = "bucc"
    protocol = (
        "F1 of pairs mined by the ratio margin of cosines, one to one (LASER); the least margin is "
        "the best on the development gold; f1: on test gold (the organisers' training part, as in "
        "XTREME), f1_dev: on the development gold itself, which is optimistic (mSimCSE)"
    )

    @property
    def name(self) -> str:
        """For example "bucc_de-en"."""
        return f"bucc_{self.language}-en"

    @property
    def title(self) -> str:
        """For example "BUCC de-en"."""
        return f"BUCC {self.language}-en"

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """The texts of both languages and the gold pairs, of all parts that are there."""
        return tuple(self._source(side) for side in self._sides)

    def options(self) -> dict[str, Any]:
        """How many neighbours the margin takes."""
        return {"k": self.k}

    def read(self, data: DataFolder) -> dict[str, BUCCSet]:
        """The part for development, and another one with gold pairs if there is one."""
        folder = data.find(self._source("gold"))
        parts = filter(None, self._parts(folder))
        return {part: read_bucc(folder, self.language, part) for part in parts}

    def run(self, context: TaskContext) -> TaskResult:
        """Chooses the threshold on one part; uses it on another where there is one with gold.

        Raises:
            FileNotFoundError: No part has gold pairs and both texts.
        """
        parts = self.read(context.data)
        development, test = [*parts, None][:2]
        scores, counts, threshold = {}, {}, None
        for data, suffix in zip(parts.values(), ("_dev", ""), strict=False):
            score = evaluate_bucc(context.embed, data, threshold=threshold, k=self.k)
            threshold = score.threshold
            for name in ("f1", "precision", "recall"):
                scores[name + suffix] = getattr(score, name)
            for name in ("foreign", "english", "gold"):
                counts[name + suffix] = len(getattr(data, name))
        scores["threshold"] = threshold
        details = {"development": development, "test": test}
        return TaskResult("f1" if test else "f1_dev", scores, counts, details)

    @property
    def _sides(self) -> tuple[str, ...]:
        """How the names of the files of a part end."""
        return (self.language, "en", "gold")

    def _source(self, side: str) -> DataSource:
        return DataSource(
            f"{self.title} {side}",
            (f"{self.language}-en.*.{side}",),
            "the BUCC 2018 shared task, https://comparable.limsi.fr/bucc2018/bucc2018-task.html "
            "(the sample and the training data have gold pairs)",
        )

    def _parts(self, folder: Path) -> tuple[str, str | None]:
        """The development and the test part; None where no other part has gold pairs."""

        def complete(part: str) -> bool:
            paths = (folder / f"{self.language}-en.{part}.{side}" for side in self._sides)
            return all(path.is_file() for path in paths)

        development = next(filter(complete, _DEVELOPMENT), None)
        if development is None:
            raise FileNotFoundError(
                f"{folder}: expected the texts of a part with gold pairs, {self.language}-en.X."
                f"{self.language}, .en and .gold with X one of {', '.join(_DEVELOPMENT)}; found "
                "none that is complete."
            )
        others = (part for part in _TEST if part != development and complete(part))
        return development, next(others, None)


TASKS = tuple(BUCCTask(language) for language in ("de", "fr", "ru", "zh"))


_NAMES = tuple(task.name for task in TASKS)

SECTIONS = (
    GroupSection(
        "bucc",
        "Mining translations (BUCC)",
        "How many of the translations in two texts are found, and how many of the found are "
        "translations.",
        scores=(
            ScoreGroup(
                "bucc",
                order=_NAMES,
                average=_NAMES,
                benchmarks=("bucc",),
                featured=MULTILINGUAL,
                overview="BUCC",
            ),
        ),
    ),
)
