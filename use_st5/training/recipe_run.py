"""Runs a recipe: prepares the data, trains, exports and scores, in parts or at once."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from use_st5._files import sole_writer
from use_st5._files import write_json as write_json
from use_st5._model_manifest import check_replaceable
from use_st5._progress import progress_lines, watched
from use_st5._records import read_record
from use_st5._remote_files import as_written, exists, remote_path
from use_st5.data.prepared import open_prepared, prepare
from use_st5.training.array_data import ArrayData, check_shared
from use_st5.training.backend_loop import backend_loop
from use_st5.training.device import Device, check_tensorflow
from use_st5.training.frozen_parts import frozen_parts
from use_st5.training.history import History
from use_st5.training.recipe import Part, RecipeTask, Run, Scores, Stage, StrategyName
from use_st5.training.run_checks import check_steps
from use_st5.training.task import Task
from use_st5.training.training_loop import STEPS_PER_CALL

PARTS: tuple[Part, ...] = ("prepare", "train", "export")
HISTORY = "history.json"
_TRAINING = "training.json"
# A run of fewer steps is a trial: it needs the rows of its own batches, and measures nothing.
TRIAL_STEPS = 100


def run_recipe(
    run: Run,
    *,
    steps: int | None = None,
    resume: bool = True,
    part: Part | None = None,
    strategy: StrategyName | None = None,
    batch_files: str | Path | None = None,
) -> Scores:
    """Runs a recipe; the arguments are those of `Recipe.run`.

    Written into the output folder are `prepared/`, `checkpoints/`, `encoder.keras` (or what the
    recipe keeps), `training.json` (how it was trained) and `history.json` (each stage's steps and
    measurements), `model/` (the SavedModel, unless it goes elsewhere) and `scores.json`.

    Raises:
        ValueError: The part or the strategy does not go with Keras's backend, a folder elsewhere
            (gs:// and the like) with the recipe, or a batch size with the number of replicas; or
            `steps` is below 1.
        FileExistsError: What `checkpoints_folder` raises.
        BlockingIOError: Another process is writing there.
    """
    wanted = parts_to_run(part, PARTS)
    check_steps(steps=steps)
    _check_places(run)
    device = Device(strategy, part, batch_files)
    _check_batches(run, device.replicas)
    alone = sole_writer(run.output, inside=True, remote=True)
    with alone if device.writes else contextlib.nullcontext():
        checkpoints = checkpoints_folder(run.output, resume=resume, exported=run.exported)
        if "train" in wanted:
            run.recipe.check(run)
        if "prepare" in wanted:
            _prepare(run, steps)
        if "train" in wanted:
            _train(run, checkpoints, steps, device)
        if "export" not in wanted:
            return {}
        with progress_lines(lambda: f"measuring and exporting {run.recipe.name}"):
            return _export(run)


def parts_to_run(part: Part | None, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The part that was asked for, or all.

    Texts become ids and models SavedModels under TensorFlow; training runs under JAX as well.

    Args:
        part: What was asked for; None: everything.
        parts: Those that the recipe has.

    Raises:
        ValueError: There is no such part, or the backend of Keras cannot run it.
    """
    if part is not None and part not in parts:
        raise ValueError(f"Unknown part: {part!r}. Expected one of {parts}.")
    backend = keras.config.backend()
    if backend not in ("tensorflow", "jax"):
        raise ValueError(
            "Expected Keras's backend to be tensorflow or jax, which alone have a training loop "
            f"here: set KERAS_BACKEND. Received: {backend}"
        )
    if part != "train":
        check_tensorflow("A recipe, but for its part 'train',")
    return parts if part is None else (part,)


def checkpoints_folder(output: Path, *, resume: bool, exported: Path | None = None) -> Path:
    """The folder of a run's checkpoints.

    Args:
        output: The run's folder.
        resume: Whether the run may continue from checkpoints.
        exported: Where it exports to; `model` in `output` by default.

    Raises:
        FileExistsError: It exists, and the run shall not continue from it; or what the run would
            export to is there and holds anything but a model.
    """
    check_replaceable(exported or output / "model")
    checkpoints = output / "checkpoints"
    if not resume and exists(checkpoints):
        raise FileExistsError(
            f"{as_written(checkpoints)} exists. Remove it, or let the run resume."
        )
    return checkpoints


def _check_places(run: Run) -> None:
    """Refuses folders elsewhere where a recipe writes piece by piece: text and a teacher's vectors.

    Raises:
        ValueError: One lies elsewhere.
    """
    if "teacher" not in run.recipe.folders:
        return
    for name, folder in (("prepared", run.prepared), ("teacher", run.teacher)):
        if remote := remote_path(folder):
            raise ValueError(
                f"{remote}: expected a local folder, since {run.recipe.name} writes its text and "
                f"its teacher's vectors piece by piece. Name one: --{name} FOLDER."
            )


def _check_batches(run: Run, replicas: int) -> None:
    """Refuses batch sizes that the replicas cannot share, before any work.

    Raises:
        ValueError: There is one.
    """
    for stage in run.recipe.stages:
        micro = [stage.options.get(name, 1) for name in ("accumulation", "gradient_cache")]
        parts = {"replicas": replicas, "micro_batches": math.prod(micro)}
        for task in stage.tasks:
            check_shared(task.batch_size, task.name, **parts)


def _prepare(run: Run, steps: int | None) -> None:
    """Writes every part of every task's data as arrays, unless they are there."""
    with progress_lines(lambda: f"preparing {run.recipe.name}"):
        run.measure  # noqa: B018  What is missing is better said now.
        run.recipe.prepare(run)
        for stage in run.recipe.stages:
            for task in stage.tasks:
                rows = _trial_rows(task, steps)
                for name, (examples, columns) in task.data.sources(task.name, run).items():
                    read = itertools.islice(examples(), rows)
                    shown = watched(read, f"Preparing {name}", rows, transient=True)
                    prepare(shown, columns, run.tokenizer, _place(run, name, rows), reuse=True)


def _trial_rows(task: RecipeTask, steps: int | None) -> int | None:
    """How many first rows of each part of its data a trial has; None: the run is no trial."""
    return None if steps is None or steps >= TRIAL_STEPS else steps * task.batch_size


def _place(run: Run, part: str, rows: int | None) -> Path:
    """The folder of a part's arrays: a trial's own, unless the whole part is there."""
    whole = run.prepared / part
    return whole if rows is None or exists(whole) else run.prepared / f"{part}.first_{rows}"


def _train(run: Run, checkpoints: Path, steps: int | None, device: Device) -> None:
    # All data is looked for before any of it is trained on.
    data = {
        task.name: _open(run, task, steps) for stage in run.recipe.stages for task in stage.tasks
    }
    keras.utils.set_random_seed(run.seed)
    with device.scope():
        model = run.recipe.model(run)
    histories = {
        stage.name: _train_stage(
            run, stage, model, data, checkpoints / stage.name, steps, device
        ).to_state()
        for stage in run.recipe.stages
        if stage.tasks
    }
    if device.writes:
        run.recipe.keep(run, model)
        stages = [stage.name for stage in run.recipe.stages if stage.tasks and stage.name]
        facts = {**run.recipe.metadata, "seed": run.seed, "tasks": run.recipe.tasks}
        write_json(run.output / HISTORY, histories)
        write_json(run.output / _TRAINING, facts | ({"stages": stages} if stages else {}))


def _open(run: Run, task: RecipeTask, steps: int | None) -> dict[str, ArrayData]:
    """The parts of a task's data, as prepared.

    Raises:
        FileNotFoundError: One was not prepared.
    """
    parts, rows = {}, _trial_rows(task, steps)
    for name, (_, columns) in task.data.sources(task.name, run).items():
        folder = _place(run, name, rows)
        if not exists(folder):
            raise FileNotFoundError(
                f"Expected prepared ids, {as_written(folder)}. Where TensorFlow is, run the same "
                "command with --part prepare, and bring the output folder here."
            )
        found = open_prepared(folder, columns=columns)
        arrays = {each: array[:rows] for each, array in found.items()}
        parts[name] = ArrayData(arrays, group_size=task.data.group_size, buckets=task.data.buckets)
    return parts


def _train_stage(
    run: Run,
    stage: Stage,
    model: keras.Model,
    data: Mapping[str, dict[str, ArrayData]],
    checkpoints: Path,
    steps: int | None,
    device: Device,
) -> History:
    with device.scope():
        tasks = [each for task in stage.tasks for each in built_tasks(task, data[task.name])]
        steps = steps or stage.steps or _steps_of_a_pass(tasks, stage)
        optimizer = stage.optimizer(steps)
    with frozen_parts(model, stage.freeze(run)):
        trainer = backend_loop(
            model,
            tasks,
            optimizer,
            folder=checkpoints,
            seed=run.seed,
            tensorboard=True,
            **_measuring(run, stage, model, steps),
            **{**stage.options, **device.options},
        )
        history = trainer.run(steps)
        if stage.best:
            trainer.restore_best()
    return history


def _steps_of_a_pass(tasks: list[Task], stage: Stage) -> int:
    """The steps of one pass over the examples, made up to whole calls from the host.

    In a cycle the pass ends with the cycle in which the first of the tasks has given them all, so
    that no example comes twice.
    """
    passes = [len(each.data) // each.batch_size for each in tasks]
    if stage.options.get("order") == "cycle":
        cycles = min(steps / each.mixing_weight for steps, each in zip(passes, tasks, strict=True))
        steps = max(1, math.ceil(cycles)) * round(sum(each.mixing_weight for each in tasks))
    else:
        steps = sum(passes)
    of_call = stage.options.get("steps_per_call", STEPS_PER_CALL)
    return math.ceil(max(1, steps) / of_call) * of_call


def built_tasks(task: RecipeTask, data: Mapping[str, ArrayData]) -> list[Task]:
    """The task, once for each part of its data; the parts share the loss and the rate.

    Args:
        task: What the recipe says.
        data: Its data by the names of the parts.
    """
    loss = task.loss()
    weights = {part: len(each) * task.part_weights.get(part, 1.0) for part, each in data.items()}
    total = sum(weights.values())
    rate = total if task.rate is None else task.rate
    return [
        Task(
            part,
            loss,
            each,
            mixing_weight=rate * weights[part] / total,
            batch_size=min(task.batch_size, len(each)),
        )
        for part, each in data.items()
    ]


def _measuring(run: Run, stage: Stage, model: keras.Model, steps: int) -> dict[str, Any]:
    """The trainer's options that measure the model as it is trained."""
    if stage.evaluate_every is None:
        return {}
    from use_st5.trainable_encoder import TrainableEncoder

    encode = TrainableEncoder(model, run.tokenizer, max_length=run.recipe.max_length).encode
    every = min(stage.evaluate_every, steps)
    return {
        "evaluate": lambda: run.measure(encode),
        "evaluate_every": every,
        "checkpoint_every": every,
        "monitor": stage.monitor,
    }


def _export(run: Run) -> Scores:
    # Imported here: TensorFlow's part, and a model trains without it.
    from use_st5.trainable_encoder import TrainableEncoder

    facts = _read_training(run)
    measure = run.recipe.final(run) if run.recipe.final else run.measure
    encoder = TrainableEncoder(
        run.recipe.finished(run),
        run.tokenizer,
        name=run.recipe.name,
        max_length=run.recipe.max_length,
        metadata=facts,
    )
    scores = measure(encoder.encode)
    encoder.card = run.recipe.card(run, scores)
    encoder.export(run.exported, precision=run.recipe.precision)
    write_json(run.output / "scores.json", scores)
    return scores


def _read_training(run: Run) -> dict[str, Any]:
    """How what lies beside it was trained."""
    path = run.output / _TRAINING
    if not exists(path):
        raise FileNotFoundError(
            f"Expected {as_written(path)}, which the training writes when it is done. Run the same "
            f"command with --part train --out {as_written(path.parent)}"
        )
    return read_record(path, dict[str, Any], remedy="Train the encoder again.")
