"""A training on one's own data, from the files to the exported encoder."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from use_st5._files import sole_writer
from use_st5._model_manifest import check_replaceable
from use_st5._records import read_record
from use_st5.own_data.classifier import write_classifiers
from use_st5.own_data.columns import UNSCORED_PAIRS
from use_st5.own_data.course import Course, plan
from use_st5.own_data.learner import copied, open_learner
from use_st5.own_data.report import card, draw_run
from use_st5.own_data.settings import Settings, make_settings
from use_st5.own_data.sources import Source, open_source
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.history import History
from use_st5.training.recipe import Recipe, StrategyName
from use_st5.training.recipe_run import HISTORY, Device, write_json

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_REQUEST = "request.json"


@dataclasses.dataclass(frozen=True)
class Trained:
    """What came of a training.

    Attributes:
        folder: The exported encoder, a SavedModel of strings.
        run: The folder with checkpoints, TensorBoard's files and the plot.
        before: The scores of the start, by name.
        after: Those of what was exported.
        monitor: The score that the best step was chosen by.
        best_step: The step that was exported; 0: the start, which nothing was better than.
        steps: Steps that were made.
    """

    folder: Path
    run: Path
    before: Mapping[str, float]
    after: Mapping[str, float]
    monitor: str
    best_step: int
    steps: int

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
    task: str | None = None,
    columns: Mapping[str, str] | None = None,
    settings: str | None = None,
    overwrite: bool = False,
    strategy: StrategyName | None = None,
    on_news: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> Trained:
    """Trains an encoder on files whose columns say what they teach, and exports the best step.

    The encoder is measured before the first step, and exported as it was where no step was better.
    A run that was interrupted goes on when it is called again with the same arguments, from the
    last checkpoint in the folder `TO.run`.

    Args:
        model: The name of a bundled model, a folder that use_st5 exported, a checkpoint of another
            library, `fresh:PRESET` (a named shape whose vocabulary is that of the files), or an
            encoder, which is trained itself.
        files: One or several: tables with named columns (.tsv, .csv, .jsonl, .parquet), text
            (.txt), or TensorFlow data sets, `NAME[SPLIT]`. Several are a mixture, by their sizes
            or, with `=RATE` behind a name, by rates.
        to: The folder to write, a SavedModel that takes strings.
        dev: Files that measure, by their own columns; none: rows of `files` are held out.
        task: What all files teach, instead of what their columns say: a name in `TASK_KINDS`.
        columns: The files' own names for columns, such as `{"anchor": "title"}`.
        settings: The settings of a paper by name, such as "sentence_t5".
        overwrite: Whether what is in `to`, and a run that was begun with other arguments, goes.
        strategy: Where to train, as in `Recipe.run`, on one machine; a copy of the model learns.
        on_news: Called with each line about the files, the settings and the result.
        **options: What differs from the settings: attributes of `Settings`, such as `epochs=1`.

    Returns:
        Folder, scores before and after, and the step that was exported.

    Raises:
        FileNotFoundError: There is no such model or file.
        FileExistsError: `to` holds something, or another run was begun there.
        ValueError: A file teaches nothing that is known, or an option is out of its range.
        BlockingIOError: Another process is writing there.
    """
    chosen = make_settings(settings, **options)
    device = _device(strategy, chosen)
    target = Path(to)
    sources = _sources(files, task, columns)
    measured = [_development_source(each, task, columns) for each in _listed(dev)]
    request = _request(model, sources, measured, chosen)
    with _writing(target, request, overwrite=overwrite) as work:
        encoder = _on_devices(open_learner(model, sources, chosen), device)
        course = plan(model, encoder, sources, measured, chosen)
        for line in course.lines():
            on_news(line)
        recipe = _recipe(course, work, target, device.replicas)
        after = recipe.run(Path(), work, seed=chosen.seed, exported=target, strategy=strategy)
        return _finish(course, work, target, after, on_news)


def _device(strategy: StrategyName | None, settings: Settings) -> Device:
    """Where the training runs.

    Raises:
        ValueError: It is no strategy of one machine, or its replicas cannot share a batch.
    """
    if strategy == "multi_worker":
        raise ValueError("strategy: expected one of one machine, received multi_worker.")
    device = Device(strategy, None)
    if settings.batch_size % device.replicas:
        raise ValueError(
            f"batch_size: expected a number that {device.replicas} replicas can share, received "
            f"{settings.batch_size}."
        )
    return device


def _on_devices(encoder: TrainableEncoder, device: Device) -> TrainableEncoder:
    """The encoder, or its copy in the scope of a strategy."""
    if not device.options:
        return encoder
    with device.scope():
        return copied(encoder)


def _recipe(course: Course, work: Path, target: Path, replicas: int) -> Recipe:
    """The course's, with its card, and with batches that replicas share, of few rows, too."""
    recipe = course.recipe
    stages = [
        dataclasses.replace(
            stage,
            tasks=tuple(
                dataclasses.replace(task, batch_size=task.batch_size // replicas * replicas)
                for task in stage.tasks
            ),
        )
        for stage in recipe.stages
    ]
    return dataclasses.replace(
        recipe,
        stages=tuple(stages),
        card=lambda run, scores: card(course, _history(work), scores, target),
    )


def _finish(
    course: Course,
    work: Path,
    target: Path,
    after: Mapping[str, float],
    on_news: Callable[[str], None],
) -> Trained:
    history = _history(work)
    before = {name: value for name, value in history.evaluations[0].items() if name != "step"}
    trained = Trained(
        target, work, before, after, course.monitor, history.best_step or 0, history.step
    )
    picture = draw_run(history, work, course.monitor)
    if picture is not None:
        on_news(f"plot of the run: {picture}; TensorBoard: {work / 'checkpoints' / 'logs'}")
    seed = course.settings.seed
    for each in write_classifiers(course.surveys, course.sets, target.absolute(), work, seed=seed):
        on_news(f"classifier, for keras.models.load_model(…, safe_mode=False): {each}")
    start, end = before[course.monitor], after[course.monitor]
    if trained.best_step == 0:
        on_news(
            f"no step was better than the start by {course.monitor}: the start itself is exported"
        )
    else:
        on_news(
            f"the best step was {trained.best_step} of {history.step}: {course.monitor} "
            f"{100 * start:.2f} before, {100 * end:.2f} after"
        )
    return trained


def _history(work: Path) -> History:
    record = read_record(work / HISTORY, dict[str, Any], remedy="Train again with --overwrite.")
    return History(**record[""])


def _listed(files: Files) -> list[str | os.PathLike[str]]:
    return [files] if isinstance(files, str | os.PathLike) else [*files]


def _sources(files: Files, task: str | None, columns: Mapping[str, str] | None) -> list[Source]:
    """What is learnt from."""
    sources = [open_source(each, task=task, columns=columns) for each in _listed(files)]
    if not sources:
        raise ValueError("Expected at least one file to learn from, received none.")
    for source in sources:
        if source.kind is UNSCORED_PAIRS:
            first, second = (source.columns[key] for key in UNSCORED_PAIRS.needed)
            raise ValueError(
                f"{source.name}: pairs without a score are what Trans-Encoder learns from, with a "
                "cross-encoder beside the encoder: use_st5.training.teach. Where the two texts "
                f"belong together: --column anchor={first} --column positive={second}."
            )
    return sources


def _development_source(
    given: str | os.PathLike[str], task: str | None, columns: Mapping[str, str] | None
) -> Source:
    """A file that measures: by the task that is asked for where it has its columns, or its own."""
    with contextlib.suppress(ValueError):
        return open_source(given, task=task, columns=columns)
    return open_source(given, columns=columns)


def _request(
    model: str | os.PathLike[str] | TrainableEncoder,
    sources: Sequence[Source],
    measured: Sequence[Source],
    settings: Settings,
) -> dict[str, Any]:
    """What a run can only be continued with."""
    named = model.name or "" if isinstance(model, TrainableEncoder) else os.fspath(model)
    request = {
        "model": named,
        "train": [_described(source) for source in sources],
        "dev": [_described(source) for source in measured],
        "settings": dataclasses.asdict(settings),
    }
    return json.loads(json.dumps(request, default=list))


def _described(source: Source) -> dict[str, Any]:
    return {
        "name": source.name,
        "content": source.identity(),
        "task": source.kind.name,
        "columns": dict(source.columns),
        "rate": source.rate,
    }


@contextlib.contextmanager
def _writing(target: Path, request: Mapping[str, Any], *, overwrite: bool) -> Iterator[Path]:
    """The block alone writes the model and its run, which is new or was begun in the same way."""
    target = target.absolute()
    work = target.with_name(target.name + ".run")
    with sole_writer(target), sole_writer(work, inside=True):
        check_replaceable(target)
        path = work / _REQUEST
        if overwrite and path.exists():
            for each in work.iterdir():
                if each.name != ".lock":
                    shutil.rmtree(each) if each.is_dir() else each.unlink()
        begun = path.exists()
        if begun:
            found = read_record(path, dict[str, Any], remedy="Give --overwrite to begin anew.")
            _check_same(work, found, request)
        elif any(each.name != ".lock" for each in work.iterdir()):
            raise FileExistsError(f"{work}: expected an empty folder or a run begun before.")
        if target.exists() and any(target.iterdir()) and not (begun or overwrite):
            raise FileExistsError(f"{target} exists; give --overwrite or choose another folder")
        write_json(path, request)
        yield work


def _check_same(work: Path, found: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    if found == request:
        return
    differ = [name for name in request if found.get(name) != request[name]]
    if differ == ["settings"]:
        theirs, mine = found["settings"], request["settings"]
        differ = [name for name in mine if theirs.get(name) != mine[name]]
    raise FileExistsError(
        f"{work} holds a run that was begun with other arguments ({', '.join(differ)}): it goes on "
        "with the same ones. Give --overwrite to begin anew, or choose another folder."
    )
