"""Alignment and uniformity as an evaluation task."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.geometry.protocol import evaluate_geometry
from use_st5.evaluation.sts.readers import STSB_TEST, STSSet, read_sts
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

_COUNTS = ("pairs", "positives_above_4", "positives_from_4", "sentences")


@dataclass(frozen=True)
class GeometryTask(EvaluationTask):
    """The test split of the STS Benchmark, as in Figure 4 of the Sentence-T5 paper."""

    name = "geometry"
    group = "geometry"
    title = "Alignment and uniformity"
    protocol = (
        "Wang and Isola (ICML 2020) with alpha = 2, t = 2 on unit vectors of the STS-B test split; "
        "alignment: of the pairs with gold score above 4 (Figure 4 of Sentence-T5) and from 4 "
        "(SimCSE, whose authors took all of STS-B); uniformity: over all pairs of distinct "
        "sentences, and with self-pairs as in t5x_retrieval; lower is better"
    )
    sources = (STSB_TEST,)

    def read(self, data: DataFolder) -> STSSet:
        """The test split."""
        return read_sts(data, STSB_TEST)

    def run(self, context: TaskContext) -> TaskResult:
        """Measures the encoder."""
        values = dataclasses.asdict(evaluate_geometry(context.embed, self.read(context.data).pairs))
        counts = {name: values.pop(name) for name in _COUNTS}
        return TaskResult(main="uniformity", scores=values, counts=counts)
