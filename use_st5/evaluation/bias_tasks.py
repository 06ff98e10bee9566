"""WEAT and SEAT as evaluation tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from use_st5.bias.weat import WEATTest, read_weat, run_weat, weat_tests
from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.data_source import DataSource
from use_st5.evaluation.task import EvaluationTask, TaskContext
from use_st5.evaluation.task_result import TaskResult

_STATISTICS = (
    "Effect size d (standard deviation of all targets), one-sided permutation p with ties counted, "
    "95 % percentile bootstrap over the targets"
)
# Name of the task without "seat" → name of the file, in the order of the paper's tables. Of the
# double bind test the sentences of which each holds one word, and the "unbleached" ones.
_SEAT_FILES = {name.removeprefix("weat"): f"sent-{name}" for name in weat_tests()} | {
    "_angry_black_woman": "sent-angry_black_woman_stereotype",
    "_angry_black_woman_b": "sent-angry_black_woman_stereotype_b",
    "_double_bind_competent": "sent-heilman_double_bind_competent_one_word",
    "_double_bind_competent_unbleached": "heilman_double_bind_competent_one_sentence",
    "_double_bind_likable": "sent-heilman_double_bind_likable_one_word",
    "_double_bind_likable_unbleached": "heilman_double_bind_likable_one_sentence",
}


@dataclass(frozen=True)
class BiasTask(EvaluationTask):
    """An association test: of the package's word lists, or of a file of the sent-bias toolkit.

    Attributes:
        ddof: See `use_st5.bias.weat.run_weat`.
        samples: See there.
        resamples: See there.
    """

    name: str
    group: str
    title: str
    protocol: str
    sources: tuple[DataSource, ...] = ()
    ddof: int = 1
    samples: int = 100_000
    resamples: int = 10_000

    def options(self) -> dict[str, Any]:
        """The settings that change the outcome, as JSON takes them."""
        return {"ddof": self.ddof, "samples": self.samples, "resamples": self.resamples}

    def read(self, data: DataFolder) -> WEATTest | None:
        """The test of the file; None where the package brings the word lists."""
        return read_weat(data.find(self.sources[0])) if self.sources else None

    def run(self, context: TaskContext) -> TaskResult:
        """Tests the encoder.

        Raises:
            MissingDataError: The file of the test is not in the data folder.
            ValueError: It is not in its format, or the encoder gives something unusable.
        """
        test = self.read(context.data) if self.sources else weat_tests()[self.name]
        result = run_weat(context.embed, test, **self.options(), seed=context.seed)
        scores = ("effect_size", "effect_size_low", "effect_size_high", "p_value")
        return TaskResult(
            main="effect_size",
            scores={name: getattr(result, name) for name in scores},
            counts={
                "targets": len(test.x),
                "attributes_a": len(test.a),
                "attributes_b": len(test.b),
                "partitions": result.partitions,
            },
            details={
                "categories": [*test.categories],
                "exact": result.exact,
                "ddof": self.ddof,
                "interval": "percentile bootstrap over targets, 95 %",
            },
        )


def _weat(name: str) -> BiasTask:
    origin = "May et al. 2019" if name.endswith("b") else "Caliskan et al. 2017"
    return BiasTask(
        name=name,
        group="weat",
        title=name.replace("weat", "WEAT"),
        protocol=f"{_STATISTICS}; word lists of {origin}.",
    )


def _seat(name: str, file: str) -> BiasTask:
    title = f"SEAT{name.replace('_', ' ')}"
    return BiasTask(
        name=f"seat{name}",
        group="seat",
        title=title,
        protocol=f"{_STATISTICS}, each sentence taken as independent; May et al. 2019.",
        sources=(
            DataSource(
                name=title,
                places=(f"{file}.jsonl",),
                origin="the folder tests of https://github.com/W4ngatang/sent-bias",
                licence="CC BY-NC 4.0",
            ),
        ),
    )


TASKS = (
    *(_weat(name) for name in weat_tests()),
    *(_seat(name, file) for name, file in _SEAT_FILES.items()),
)
