"""The Tatoeba test set as an evaluation task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np

from use_st5.evaluation.data_folder import DataFolder, DataSource
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult
from use_st5.evaluation.tatoeba.protocol import evaluate_tatoeba
from use_st5.evaluation.tatoeba.readers import GROUPS, LANGUAGES, ParallelSentences, read_tatoeba

TATOEBA = DataSource(
    "Tatoeba",
    ("data/tatoeba/v1", "tatoeba/v1"),
    "the folder data/tatoeba/v1 of https://github.com/facebookresearch/LASER",
    "CC BY 2.0 FR",
)


@dataclass(frozen=True)
class TatoebaTask(EvaluationTask):
    """Accuracies of each language and their means over 14, 36 and 112 languages."""

    name = "tatoeba"
    group = "tatoeba"
    title = "Tatoeba"
    protocol = (
        "Accuracy of the nearest sentence by cosine among at most 1,000 of its language (LASER's "
        "test set), unweighted mean over languages: 36 are XTREME's, 14 those of them in XNLI, "
        "112 LASER's; from_english: the queries are English (XTREME), to_english: they are "
        "foreign, neither: the mean of both (m-ST5)"
    )
    sources = (TATOEBA,)

    def read(self, data: DataFolder) -> list[ParallelSentences]:
        """The pairs of each language."""
        folder = data.find(TATOEBA)
        return [read_tatoeba(folder, code) for code in LANGUAGES]

    def run(self, context: TaskContext) -> TaskResult:
        """Scores the encoder in all 112 languages."""
        data = context.progress.track(self.read(context.data), self.title)
        languages = evaluate_tatoeba(context.embed, data)
        scores = {}
        for size, group in GROUPS.items():
            members = [languages[code] for code in group]
            scores[f"accuracy_{size}"] = _mean(member.mean for member in members)
            scores[f"accuracy_{size}_to_english"] = _mean(member.to_english for member in members)
            scores[f"accuracy_{size}_from_english"] = _mean(
                member.from_english for member in members
            )
        details = {code: {"name": LANGUAGES[code], **asdict(languages[code])} for code in LANGUAGES}
        pairs = sum(score.pairs for score in languages.values())
        return TaskResult("accuracy_36", scores, {"pairs": pairs}, {"languages": details})


def _mean(values: Iterable[float]) -> float:
    return float(np.mean([*values]))


TASKS = (TatoebaTask(),)
