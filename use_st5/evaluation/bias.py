"""WEAT and SEAT as evaluation tasks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from use_st5.bias.weat import WEATTest, read_weat, run_weat, weat_tests
from use_st5.data.data_folder import DataSource
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult, all_tasks

_STATISTICS = (
    "Effect size d (standard deviation of all targets), one-sided permutation p with ties counted, "
    "95 % percentile bootstrap over the targets"
)
_SETTINGS = {"ddof": 1, "samples": 100_000, "resamples": 10_000}

# Name of the task without "seat" → name of the file, in the order of the paper's tables. The
# double bind tests are those with one word in each sentence, and those with "unbleached" sentences.
_SEAT_FILES = {name.removeprefix("weat"): f"sent-{name}" for name in weat_tests()} | {
    "_angry_black_woman": "sent-angry_black_woman_stereotype",
    "_angry_black_woman_b": "sent-angry_black_woman_stereotype_b",
    "_double_bind_competent": "sent-heilman_double_bind_competent_one_word",
    "_double_bind_competent_unbleached": "heilman_double_bind_competent_one_sentence",
    "_double_bind_likable": "sent-heilman_double_bind_likable_one_word",
    "_double_bind_likable_unbleached": "heilman_double_bind_likable_one_sentence",
}


def _score(context: TaskContext, test: WEATTest) -> TaskResult:
    result = run_weat(context.embed, test, **_SETTINGS, seed=context.seed)
    scores = ("effect_size", "effect_size_low", "effect_size_high", "p_value")
    counts = {"targets": len(test.x), "attributes_a": len(test.a), "attributes_b": len(test.b)}
    details = {"categories": [*test.categories], "exact": result.exact, "ddof": _SETTINGS["ddof"]}
    return TaskResult(
        "effect_size",
        {name: getattr(result, name) for name in scores},
        counts | {"partitions": result.partitions},
        details | {"interval": "percentile bootstrap over targets, 95 %"},
    )


def word_task(test: WEATTest, origin: str, *, own: bool = False) -> EvaluationTask:
    """An association test of words; if they are the user's `own`, the record holds them."""
    options: dict[str, Any] = {**_SETTINGS}
    if own:
        options["texts"] = {letter: [*getattr(test, letter)] for letter in "xyab"}
        options["categories"] = [*test.categories]
    name = re.sub(r"\W+", "_", test.name)
    return EvaluationTask(
        name,
        "weat",
        test.name if own else name.replace("weat", "WEAT"),
        f"{_STATISTICS}; word lists of {origin}.",
        score=lambda context, _: _score(context, test),
        options=options,
    )


def sentence_task(name: str, file: str) -> EvaluationTask:
    """An association test of a file of the sent-bias toolkit."""
    title = f"SEAT{name.replace('_', ' ')}"
    source = DataSource(
        title,
        (f"{file}.jsonl",),
        "the folder tests of https://github.com/W4ngatang/sent-bias",
        "CC BY-NC 4.0",
    )
    return EvaluationTask(
        f"seat{name}",
        "seat",
        title,
        f"{_STATISTICS}, each sentence taken as independent; May et al. 2019.",
        score=_score,
        reader=lambda data: read_weat(data.find(source)),
        sources=(source,),
        options=_SETTINGS,
    )


def own_test(path: Path) -> EvaluationTask:
    """A test of the user's own words, named after their file (see `use_st5.bias.read_weat`)."""
    task = word_task(read_weat(path), "one's own", own=True)
    if task.name in all_tasks():
        expected = f"expected a new name, received {task.name}, the name of another task"
        raise ValueError(f"{path}: {expected}. Rename the file.")
    return task


TASKS = (
    *(
        word_task(test, "May et al. 2019" if name.endswith("b") else "Caliskan et al. 2017")
        for name, test in weat_tests().items()
    ),
    *(sentence_task(name, file) for name, file in _SEAT_FILES.items()),
)
