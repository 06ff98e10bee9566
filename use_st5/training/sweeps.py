"""`sweep`: trainings with arguments that Optuna draws, and the export of the best."""

from __future__ import annotations

import csv
import dataclasses
import gc
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from use_st5 import plots
from use_st5._imports import require
from use_st5.io.files import as_written, atomic_path, remote_path
from use_st5.losses.task_loss import TaskLoss
from use_st5.training.arguments import make_arguments
from use_st5.training.rows import given_files, read_files
from use_st5.training.run_folder import begin, model_hash, request_of, run_folder
from use_st5.training.train import Files, Trained, train

# Arguments of `train` that are not attributes of `FileArguments`.
_OF_FILES = ("validation", "test", "task", "columns", "strategy", "batch_files")
_STUDY, _RESULT = "sweep", "result"


@dataclasses.dataclass(frozen=True)
class Trial:
    """One training of a sweep.

    Attributes:
        number: Its number, from 0.
        arguments: The arguments that were drawn, by name.
        score: The validation score of its best step; None: it failed.
        monitor: The name of the score.
        best_step: That step.
        error: Why it failed.
    """

    number: int
    arguments: Mapping[str, Any]
    score: float | None = None
    monitor: str = ""
    best_step: int | None = None
    error: str = ""

    def line(self) -> str:
        """The arguments and the result in words."""
        words = ", ".join(f"{name} {shown(value)}" for name, value in self.arguments.items())
        if self.score is None:
            return f"{words}: failed: {self.error}"
        return f"{words}: {self.monitor} {self.score:.4f} at step {self.best_step}"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """The result of a sweep.

    Attributes:
        folder: The exported encoder of the best trial.
        run: The folder with `sweep.csv`, `sweep.svg`, Optuna's `study.sqlite` and the run of
            each trial, whose `run.toml` repeats it.
        best: The best trial.
        trials: All trials.
    """

    folder: Path
    run: Path
    best: Trial
    trials: Sequence[Trial]


def sweep(
    model: str | os.PathLike[str],
    files: Files,
    to: str | os.PathLike[str],
    *,
    search: Mapping[str, Any],
    trials: int = 20,
    settings: str | None = None,
    overwrite: bool = False,
    log: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> Sweep:
    """Trains with arguments that Optuna draws, and exports the encoder of the best training.

    Each trial is a call of `train` with the same files and seed. The validation score of its best
    step is compared; test rows choose nothing. The next arguments depend on the seed and on the
    trials before. The same call continues an interrupted sweep, from the last checkpoint of its
    trial, to the result of a sweep that was never interrupted; more `trials` extend it. A trial
    whose loss is not finite, or that needs too much memory, fails, and the sweep goes on.

    Args:
        model: A bundled name, a folder, a checkpoint, or `fresh:PRESET`, as for `train`.
        files: The training files.
        to: The local folder to write, a SavedModel that takes strings.
        search: Name of an attribute of `FileArguments`, or `loss.NAME` for an argument of the loss
            → its values: a list, or the tuple `(lowest, highest)`. Whole numbers stay whole; the
            scale is logarithmic if the ends differ by a factor of ten or more.
        trials: Number of trials, with those of earlier calls.
        settings: The settings of a paper by name.
        overwrite: Whether to replace the model in `to`, and what another run wrote into `TO.run`.
        log: Called with the lines of the trainings, and one for each trial.
        **options: The other arguments of `train`, but no callbacks, tasks or objects with weights.

    Returns:
        The best trial and all others.

    Raises:
        ValueError: An argument does not fit, there are no validation rows, or all trials failed.
        FileExistsError: `to` is not empty, or another run was begun there.
    """
    require("optuna", "sweep")
    if isinstance(options.get("loss"), TaskLoss) or remote_path(to):
        raise ValueError("sweep: expected a local folder, and a loss by name and arguments.")
    given = {name: options.pop(name) for name in _OF_FILES if name in options}
    make = partial(make_arguments, settings)
    for name, values in search.items():
        for value in values:
            make(**_with_values(options, {name: value}))
    space = {name: _distribution(search[name]) for name in sorted(search)}
    if not space or trials < 1:
        raise ValueError("sweep: expected trials, and ranges such as learning_rate=1e-5:1e-3.")
    arguments, target = make(**options), Path(to).absolute()
    sources = {"files": files, "validation": (), "test": (), **given}
    parts = read_files(
        *(given_files(name, sources[name]) for name in ("files", "validation", "test")),
        task=given.get("task"),
        columns=given.get("columns"),
        tasks=(),
        prompts=arguments.prompts,
    )
    request = {**request_of(model, *parts, arguments), "search": {n: str(space[n]) for n in space}}
    with run_folder(target, request, overwrite=overwrite) as work:
        begin(work, request, overwrite=overwrite)
        study = _Study(work / "study.sqlite")
        while len(done := study.trials()) < trials:
            trial = study.next_trial(space, arguments.seed)
            result = next((t for t in done if t.arguments == trial.arguments), None)
            if result is None:
                folder = _model_folder(work, trial, target)
                drawn = _with_values(options, trial.arguments)
                training = partial(
                    train, model, files, folder, settings=settings, log=log, **given, **drawn
                )
                result = _result(trial, training)
            result = dataclasses.replace(result, number=trial.number)
            study.end(result)
            _remove_others(work, study.trials(), target)
            log(f"trial {trial.number + 1} of {trials}: {result.line()}")
        if (best := _best(done)) is None:
            raise ValueError(f"{as_written(to)}: all trials failed; the last: {done[-1].error}")
        if model_hash(target) != model_hash(_model_folder(work, best, target)):
            with atomic_path(target) as temporary:
                shutil.copytree(_model_folder(work, best, target), temporary)
        _write_table(done, work)
        try:
            points = [(t.arguments, 100 * t.score) for t in done if t.score is not None]
            figure = plots.sweep_scores(points, score=f"{best.monitor} × 100")
            plots.save(figure, work / "sweep.svg")
        except ImportError as error:
            log(f"sweep.svg was not drawn: {error}")
        return Sweep(Path(to), work, best, done)


def shown(value: Any) -> str:
    """A value of an argument in a few characters."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class _Study:
    """Optuna's study in a file of SQLite."""

    def __init__(self, path: Path) -> None:
        import optuna

        self._states, self._optuna = optuna.trial.TrialState, optuna
        # Not a URL of the file: its path may have any character.
        connect = {"creator": partial(sqlite3.connect, path)}
        self._storage = optuna.storages.RDBStorage("sqlite://", engine_kwargs=connect)
        self._study = optuna.create_study(
            storage=self._storage, study_name=_STUDY, direction="maximize", load_if_exists=True
        )

    def trials(self) -> list[Trial]:
        """The trials that ended, in their order."""
        ended = self._study.get_trials(states=(self._states.COMPLETE, self._states.FAIL))
        return [Trial(**trial.user_attrs[_RESULT]) for trial in ended if trial.user_attrs]

    def next_trial(self, space: dict[str, Any], seed: int) -> Trial:
        """The trial that was interrupted, or a new one."""
        for begun in self._study.get_trials(states=(self._states.RUNNING,)):
            if set(begun.params) == set(space):
                return Trial(begun.number, begun.params)
            self._study.tell(begun.number, state=self._states.FAIL)  # Killed while it was drawn.
        # The seed depends on the trials before: a sampler that begins anew would repeat its draws.
        seed += len(self._study.get_trials(deepcopy=False))
        self._study.sampler = self._optuna.samplers.TPESampler(seed=seed)
        trial = self._study.ask(space)
        return Trial(trial.number, trial.params)

    def end(self, trial: Trial) -> None:
        """Notes the result of a trial."""
        study_id = self._storage.get_study_id_from_name(_STUDY)
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study_id, trial.number)
        self._storage.set_trial_user_attr(trial_id, _RESULT, dataclasses.asdict(trial))
        failed = self._states.FAIL if trial.score is None else None
        self._study.tell(trial.number, trial.score, state=failed)


def _result(trial: Trial, training: Callable[[], Trained]) -> Trial:
    """The trial with the result of its training, whose memory is free afterwards."""
    policy = keras.config.dtype_policy()
    try:
        trained = training()
    except (FloatingPointError, MemoryError, tf.errors.ResourceExhaustedError) as error:
        return dataclasses.replace(trial, error=f"{error!s:.300}")
    finally:
        keras.backend.clear_session()  # Otherwise each training leaves its graphs.
        keras.config.set_dtype_policy(policy)
        gc.collect()
    if not trained.monitor:
        raise ValueError("sweep: expected validation rows. Give --validation.")
    score, step = trained.after[trained.monitor], trained.best_step
    return dataclasses.replace(trial, score=score, monitor=trained.monitor, best_step=step)


def _distribution(values: Any) -> Any:
    """Optuna's form of a range or of a list."""
    from optuna import distributions

    if not isinstance(values, tuple):
        return distributions.CategoricalDistribution([*values])
    low, high = values
    is_int = isinstance(low, int) and isinstance(high, int)
    chosen = distributions.IntDistribution if is_int else distributions.FloatDistribution
    return chosen(low, high, log=low > 0 and high >= 10 * low)


def _with_values(options: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a training with the values that were drawn; `loss.NAME` is in `loss`."""
    loss = options.get("loss") or {}
    loss = {"name": loss} if isinstance(loss, str) else {**loss}
    loss |= {name[5:]: value for name, value in values.items() if name.startswith("loss.")}
    others = {name: value for name, value in values.items() if not name.startswith("loss.")}
    return {**options, **others, "loss": loss}


def _best(trials: Sequence[Trial]) -> Trial | None:
    """The first of the trials with the highest score; None if all failed."""
    return max((t for t in trials if t.score is not None), key=lambda t: t.score or 0, default=None)


def _model_folder(work: Path, trial: Trial, target: Path) -> Path:
    """The folder of a trial's encoder, which has the name of the target, as its card says."""
    return work / f"trial_{trial.number:03d}" / target.name


def _remove_others(work: Path, trials: Sequence[Trial], target: Path) -> None:
    """Removes the encoders that are not best, and the runs that failed."""
    best = _best(trials)
    for trial in trials:
        folder = _model_folder(work, trial, target)
        if trial is not best:
            shutil.rmtree(folder if trial.score is not None else folder.parent, ignore_errors=True)


def _write_table(trials: Sequence[Trial], work: Path) -> None:
    """Writes a row for each trial into `sweep.csv`."""
    facts = [{**vars(trial), **trial.arguments} for trial in trials]
    names = ["number", *trials[0].arguments, "monitor", "score", "best_step", "error"]
    with atomic_path(work / "sweep.csv") as temporary, temporary.open("w", newline="") as file:
        table = csv.DictWriter(file, names, extrasaction="ignore")
        table.writeheader()
        table.writerows(facts)
