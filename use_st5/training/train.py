"""A training on one's own data, from the files to the exported encoder."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from use_st5._records import read_record
from use_st5._remote_files import as_written, remote_path
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.argument_checks import check_arguments
from use_st5.training.classifier import Classifier, write_classifiers
from use_st5.training.course import Course, shown_time
from use_st5.training.device import Device, check_tensorflow
from use_st5.training.finished_run import (
    Result,
    forget_result,
    model_hash,
    result_of,
    write_result,
)
from use_st5.training.history import History
from use_st5.training.model_card import card, plot_line
from use_st5.training.model_loading import copied, open_learner
from use_st5.training.pair_cycles import PairCycles
from use_st5.training.plan import plan
from use_st5.training.recipe import StrategyName
from use_st5.training.recipe_run import HISTORY
from use_st5.training.run_folder import absolute, begin, request_of, run_folder
from use_st5.training.settings import Settings, make_settings
from use_st5.training.sources import Source, open_source, split_rate
from use_st5.training.tasks import SCORED_PAIRS, UNSCORED_PAIRS
from use_st5.training.validation import apart, test_scores

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclasses.dataclass(frozen=True)
class Trained:
    """What came of a training.

    Attributes:
        folder: The exported encoder, a SavedModel of strings.
        run: The folder with checkpoints, TensorBoard's files and the plot.
        before: The scores of the start on the rows that validate, by name.
        after: Those of what was exported. The best step was chosen by these rows, so that they
            flatter it a little.
        monitor: The score that the best step was chosen by.
        best_step: The step that was exported; 0: the start, which nothing was better than.
        steps: Steps that were made.
        classifiers: One for each file of texts and labels.
        test_before: The scores of the start on the rows that test, which choose nothing and are
            read once; empty where there are none.
        test_after: Those of what was exported.
    """

    folder: Path
    run: Path
    before: Mapping[str, float]
    after: Mapping[str, float]
    monitor: str
    best_step: int
    steps: int
    classifiers: Sequence[Classifier] = ()
    test_before: Mapping[str, float] = dataclasses.field(default_factory=dict)
    test_after: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @cached_property
    def encoder(self) -> TrainableEncoder:
        """The exported encoder, loaded."""
        return TrainableEncoder.load(self.folder)


def train(
    model: str | os.PathLike[str] | TrainableEncoder,
    files: Files,
    to: str | os.PathLike[str],
    *,
    dev: Files = (),
    test: Files = (),
    task: str | Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    settings: str | None = None,
    overwrite: bool = False,
    strategy: StrategyName | None = None,
    batch_files: str | os.PathLike[str] | None = None,
    on_news: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> Trained:
    """Trains an encoder on files whose columns say what they teach, and exports the best step.

    The encoder is measured before the first step, and exported as it was where no step was better.
    A run that was interrupted goes on when it is called again with the same arguments, from the
    last checkpoint in `TO.run`; on any machine, where model, files and `to` lie on gs:// or alike.

    Args:
        model: A bundled name, a folder, a checkpoint of another library, `fresh:PRESET` (a named
            shape with the vocabulary of the files), or an encoder, which is trained itself.
        files: Tables with named columns (.tsv, .csv, .jsonl, .parquet), text (.txt), or TensorFlow
            data sets, `NAME[SPLIT]`. Several are mixed by their sizes or, with `=RATE`, by rates.
        to: The folder to write, a SavedModel that takes strings.
        dev: Files that validate: they choose the step; none: rows of `files` are set aside.
        test: Files that test the result, once; none, and no `dev`: half of the rows set aside.
        task: A name in `TASKS` for all files, or such names by file; None: as columns say.
        columns: The files' own names for columns, such as `{"anchor": "title"}`.
        settings: The settings of a paper by name, such as "sentence_t5".
        overwrite: Whether the model in `to`, and what another run wrote into `TO.run`, goes.
        strategy: Where a copy learns, as in `Recipe.run`, on one machine; a run may change it.
        batch_files: Where workers in other processes find the batches, as in `Trainer`.
        on_news: Called with each line about the files, the settings and the result.
        **options: What differs from the settings: attributes of `Settings`, such as `epochs=1`.

    Returns:
        Folder, scores before and after, and the step that was exported.

    Raises:
        FileNotFoundError: There is no such model or file.
        FileExistsError: `to` holds something, or another run was begun there.
        TypeError, ValueError: An argument does not fit, or a file teaches nothing that is known.
        BlockingIOError: Another process is writing there.
    """
    chosen = _chosen(locals())
    target, device = Path(to), _device(strategy, batch_files, chosen)
    sources = _sources(files, task, columns)
    measured, tested = (_development_sources(each, task, columns) for each in (dev, test))
    request = request_of(model, sources, measured, tested, chosen)
    with run_folder(target, request, overwrite=overwrite) as work:
        if not overwrite and (done := result_of(work, target)) is not None:
            return _trained(done, work, target, on_news)
        course = _course(model, sources, measured, tested, chosen, device)
        where = _places(course, target, strategy, batch_files)
        begin(work, request, overwrite=overwrite)
        return _carried_out(course, work, target, on_news, where)


def _chosen(given: Mapping[str, Any]) -> Settings:
    """The settings of a call of `train`, whose arguments are checked.

    Raises:
        TypeError: An argument is of another type than it can be.
        ValueError: There is no such setting, or a value is out of its range.
    """
    check_arguments(given)
    return make_settings(given["settings"], **given["options"])


def _device(
    strategy: StrategyName | None,
    batch_files: str | os.PathLike[str] | None,
    settings: Settings,
) -> Device:
    """Where the training runs.

    Raises:
        ValueError: Keras does not run on TensorFlow, it is no strategy of one machine, or its
            replicas cannot share a batch.
    """
    check_tensorflow("use_st5.train")
    if strategy == "multi_worker":
        raise ValueError(
            "strategy: `train` uses one machine: one, mirrored or tpu. Received: multi_worker."
        )
    device = Device(strategy, None, batch_files)
    if settings.batch_size % device.replicas:
        raise ValueError(
            f"batch_size: expected a number that {device.replicas} replicas can share, received "
            f"{settings.batch_size}."
        )
    return device


def _course(
    model: str | os.PathLike[str] | TrainableEncoder,
    sources: Sequence[Source],
    dev: Sequence[Source],
    test: Sequence[Source],
    settings: Settings,
    device: Device,
) -> Course:
    encoder = _learner(model, sources, settings, device)
    return plan(model, encoder, sources, dev, test, settings, replicas=device.replicas)


def _learner(
    model: str | os.PathLike[str] | TrainableEncoder,
    sources: Sequence[Source],
    settings: Settings,
    device: Device,
) -> TrainableEncoder:
    encoder = open_learner(model, sources, settings)
    if "strategy" not in device.options:
        return encoder
    with device.scope():
        return copied(encoder)


def _carried_out(
    course: Course,
    work: Path,
    target: Path,
    on_news: Callable[[str], None],
    options: Mapping[str, Any],
) -> Trained:
    forget_result(work)
    for line in course.lines():
        on_news(line)
    start = test_scores(course.tests, course.encoder.encode)
    scores = _run(course, work, target, start, on_news, options)
    return _finish(course, work, target, start, scores, on_news)


def _run(
    course: Course,
    work: Path,
    target: Path,
    start: Mapping[str, float],
    on_news: Callable[[str], None],
    options: Mapping[str, Any],
) -> Mapping[str, float]:
    """Trains and exports, says how long that took, and gives the scores of what was exported."""
    recipe = dataclasses.replace(
        course.recipe, card=lambda run, scores: card(course, _history(work), start, scores, target)
    )
    began = time.monotonic()
    scores = recipe.run(Path(), work, exported=target, **options)
    on_news(f"took {shown_time(time.monotonic() - began)}")
    return scores


def _finish(
    course: Course,
    work: Path,
    target: Path,
    start: Mapping[str, float],
    scores: Mapping[str, float],
    on_news: Callable[[str], None],
) -> Trained:
    history = _history(work)
    before = {name: value for name, value in history.evaluations[0].items() if name != "step"}
    after, test_after = apart(scores)
    on_news(plot_line(history, work, course.monitor, course.unit))
    classifiers = write_classifiers(
        course.surveys, course.sets, course.tests, absolute(target), work, seed=course.settings.seed
    )
    for each in classifiers:
        on_news(each.line())
    result = Result(
        model_hash=model_hash(target),
        monitor=course.monitor,
        best_step=history.best_step or 0,
        steps=history.step,
        validation={"before": before, "after": after},
        test={"before": apart(start)[1], "after": test_after},
        classifiers=[each.path.name for each in classifiers],
    )
    for line in course.results(result):
        on_news(line)
    write_result(work, result)
    return _as_trained(result, work, target, classifiers)


def _trained(result: Result, work: Path, target: Path, on_news: Callable[[str], None]) -> Trained:
    """What an earlier call with the same arguments made."""
    on_news(
        f"{as_written(target)} was trained by the same call before: there is nothing to do. Give "
        "--overwrite to train anew."
    )
    classifiers = [Classifier.load(work / name, encoder=target) for name in result.classifiers]
    return _as_trained(result, work, target, classifiers)


def _as_trained(
    result: Result, work: Path, target: Path, classifiers: Sequence[Classifier]
) -> Trained:
    return Trained(
        folder=target,
        run=work,
        before=result.validation["before"],
        after=result.validation["after"],
        monitor=result.monitor,
        best_step=result.best_step,
        steps=result.steps,
        classifiers=classifiers,
        test_before=result.test["before"],
        test_after=result.test["after"],
    )


def _history(work: Path) -> History:
    record = read_record(work / HISTORY, dict[str, Any], remedy="Train again with --overwrite.")
    history = History(**record[""])
    # Version 0.2 called accuracy@k "recall_at_k".
    history.evaluations = [
        {name.replace("recall_at_", "accuracy@"): value for name, value in each.items()}
        for each in history.evaluations
    ]
    return history


def _listed(files: Files) -> list[str | os.PathLike[str]]:
    return [files] if isinstance(files, str | os.PathLike) else [*files]


def _sources(
    files: Files, task: str | Mapping[str, str] | None, columns: Mapping[str, str] | None
) -> list[Source]:
    """What is learnt from."""
    given = _listed(files)
    names = [split_rate(each)[0] for each in given]
    if isinstance(task, Mapping) and (unknown := set(task) - set(names)):
        raise ValueError(
            f"task: expected names among the training files, {', '.join(names)}; received "
            f"{', '.join(sorted(unknown))}."
        )
    sources = [open_source(each, task=task, columns=columns) for each in given]
    if not sources:
        raise ValueError("Expected at least one file to learn from, received none.")
    return sources


def _development_sources(
    files: Files, task: str | Mapping[str, str] | None, columns: Mapping[str, str] | None
) -> list[Source]:
    return [_development_source(each, task, columns) for each in _listed(files)]


def _development_source(
    given: str | os.PathLike[str],
    task: str | Mapping[str, str] | None,
    columns: Mapping[str, str] | None,
) -> Source:
    """A file that measures: by the task that is asked for where it has its columns, or its own."""
    source = None
    with contextlib.suppress(ValueError):
        source = open_source(given, task=task, columns=columns)
    source = source or open_source(given, columns=columns)
    if source.kind is UNSCORED_PAIRS:
        raise ValueError(
            f"{source.name}: pairs without a score measure nothing; expected a further column, "
            f"{' or '.join(SCORED_PAIRS.columns['score'])}."
        )
    return source


def _places(
    course: Course,
    target: Path,
    strategy: StrategyName | None,
    batch_files: str | os.PathLike[str] | None,
) -> dict[str, Any]:
    """The options of the run; refused are places that a training in cycles has not."""
    common: dict[str, Any] = {"seed": course.settings.seed, "strategy": strategy}
    if not isinstance(course.recipe, PairCycles):
        files = None if batch_files is None else as_written(batch_files)
        return common | {"batch_files": files}
    if batch_files is not None:
        raise ValueError(
            "batch_files: expected none, since pairs without a score are learnt in cycles, "
            f"in which each training begins with what the one before gave. Received: {batch_files}"
        )
    if remote := remote_path(target):
        raise ValueError(
            f"{remote}: expected a local folder, since pairs without a score are learnt in cycles, "
            "which write it piece by piece. Copy the folder when it is done."
        )
    return common
