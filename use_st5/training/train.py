"""`use_st5.train`: from files to an exported encoder."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import keras
import numpy as np

from use_st5.io.files import write_json
from use_st5.io.progress import progress_lines
from use_st5.io.remote_files import as_written, remote_path
from use_st5.models.encoder_model import in_float32
from use_st5.models.lora import apply_lora
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import FileArguments, make_arguments
from use_st5.training.array_data import check_shared
from use_st5.training.classifier import Classifier, write_classifiers
from use_st5.training.history import History
from use_st5.training.linear_probe import has_heads, probe_weights
from use_st5.training.model_card import card
from use_st5.training.model_loading import FRESH, copied, open_model
from use_st5.training.pair_cycles import train_in_cycles
from use_st5.training.plan import TrainingPlan, check_loss_arguments, make_plan
from use_st5.training.reporter import write_plot
from use_st5.training.run_folder import (
    Result,
    absolute,
    begin,
    forget_result,
    model_hash,
    request_of,
    result_of,
    run_folder,
    write_result,
)
from use_st5.training.sources import (
    exported_prompts,
    open_sources,
    rows_as_files,
)
from use_st5.training.tasks import TaskSpec
from use_st5.training.trainer import Trainer, strategy_scope
from use_st5.training.validation import scores_of

# A file, rows in memory (a DataFrame, an Arrow table, dicts, a `tf.data.Dataset`), or a list of
# these.
Files = Any


@dataclasses.dataclass(frozen=True)
class Trained:
    """The result of a training.

    Attributes:
        folder: The exported encoder, a SavedModel of strings.
        run: The folder with the curves of the run, TensorBoard's files and the classifiers.
        before: The scores of the start on the validation rows, by name.
        after: The scores of the exported encoder on these rows. The best step was chosen by them,
            so these scores are a little too high.
        monitor: The score that the best step was chosen by.
        best_step: The step that was exported; 0: the start, since no step was better.
        steps: Number of steps that were made.
        classifiers: The classifiers, one for each file of texts and labels.
        test_before: The scores of the start on the test rows, which choose nothing and are
            evaluated once; empty if there are no test rows.
        test_after: The scores of the exported encoder on the test rows.
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
    validation: Files = (),
    test: Files = (),
    task: str | Mapping[str, str] | None = None,
    tasks: Sequence[TaskSpec] = (),
    columns: Mapping[str, str] | None = None,
    settings: str | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    overwrite: bool = False,
    strategy: str | None = None,
    batch_files: str | os.PathLike[str] | None = None,
    log: Callable[[str], None] = lambda line: None,
    **args: Any,
) -> Trained:
    """Trains an encoder on files whose columns state the task, and exports the best step.

    The encoder is evaluated before the first step, and exported as it was if no step was better.
    The same call continues an interrupted run from the last checkpoint in `TO.run`.

    Args:
        model: A bundled name, a folder, a checkpoint, `fresh:PRESET` (a named shape with the
            vocabulary of the files), or an encoder. It is trained itself, or a copy of it with
            `dropout`, a `strategy` or single texts. After a failure it has its weights of before.
        files: Tables with named columns (.tsv, .csv, .jsonl, .parquet), text (.txt), or TensorFlow
            data sets, `NAME[SPLIT]`; mixed by their sizes or, with `=WEIGHT`, by weights. Or rows
            in memory: a DataFrame, an Arrow table, a list of dicts, a data set of Hugging Face or
            `tf.data`.
        to: The folder to write, a SavedModel that takes strings.
        validation: Files whose rows choose the best step; none: rows of `files` are held out.
        test: Files that test the result, once. Without validation and test files, half of the
            held-out rows.
        task: The name of the task of all files, or names by file; None: their columns decide.
        tasks: Tasks of your own; one replaces that of `TASKS` with the same name.
        columns: The files' own names for columns, such as `{"anchor": "title"}`.
        settings: The settings of a paper by name, such as "sentence_t5".
        callbacks: Keras callbacks, as in `Trainer`.
        overwrite: Whether to replace the model in `to`, and what another run wrote into `TO.run`.
        strategy: "one", "mirrored" or "tpu"; a continued run may use another one.
        batch_files: Folder of the batches for workers in other processes (`TensorFlowLoop`).
        log: Called with each line about the files, the arguments and the result.
        **args: Attributes of `FileArguments`: `epochs=1`, a `loss` of your own, and so on.

    Returns:
        The folder, the scores before and after, and the step that was exported.

    Raises:
        FileNotFoundError: There is no such model or file.
        FileExistsError: `to` is not empty, or another run was begun there.
        TypeError, ValueError: An argument does not fit, or no task fits a file.
        BlockingIOError: Another process is writing there.
    """
    arguments = make_arguments(settings, **args)
    runtime_options = _runtime_options(strategy, batch_files, callbacks, arguments)
    target = Path(to)
    with contextlib.ExitStack() as stack:
        given = {"files": files, "validation": validation, "test": test}
        lists = stack.enter_context(rows_as_files(**given))
        sources = open_sources(
            *lists, task=task, columns=columns, tasks=tasks, prompts=arguments.prompts
        )
        check_loss_arguments([source.kind for source in sources[0]], arguments)
        request = request_of(model, *sources, arguments)
        work = stack.enter_context(run_folder(target, request, overwrite=overwrite))
        if not overwrite and (done := result_of(work, target)) is not None:
            log(
                f"{as_written(target)}: the same training is already complete. Give --overwrite to "
                "train again."
            )
            heads = [Classifier.load(work / name, encoder=target) for name in done.classifiers]
            return _as_trained(done, work, target, heads)
        encoder = open_model(model, sources[0], arguments)
        if runtime_options["strategy"] is not None:
            with strategy_scope(runtime_options["strategy"]):
                encoder = copied(encoder)
        plan = make_plan(model, encoder, *sources, arguments)
        if plan.in_cycles:
            _check_cycles(target, runtime_options)
        begin(work, request, overwrite=overwrite)
        # An encoder that we loaded is discarded on failure, so its weights need no backup.
        if isinstance(model, TrainableEncoder):
            stack.enter_context(_weights_kept_on_error(encoder.model))
        return _run(plan, work, target, runtime_options, log)


def _run(
    plan: TrainingPlan,
    work: Path,
    target: Path,
    runtime_options: Mapping[str, Any],
    log: Callable[[str], None],
) -> Trained:
    """Trains, exports, and writes card, classifiers, curves and result."""
    forget_result(work)
    for line in plan.lines():
        log(line)
    began = time.monotonic()
    test_before = scores_of(plan.tests, plan.encoder.encode)
    if plan.in_cycles:
        history = train_in_cycles(plan, work, runtime_options["strategy"])
    else:
        history = _train_in_steps(plan, work, runtime_options)
    write_json(work / "history.json", {"": history.to_state()})
    with progress_lines(lambda: f"evaluating and exporting {as_written(target)}"):
        prompts, default_prompt = exported_prompts([found.source for found in plan.stats])
        encoder = TrainableEncoder(
            in_float32(plan.encoder.model),
            plan.encoder.tokenizer,
            name=Path(plan.start.removeprefix(FRESH)).name + "_tuned",
            max_length=plan.encoder.max_length,
            metadata=plan.metadata,
            prompts={**plan.encoder.prompts, **prompts},
            default_prompt_name=default_prompt or plan.encoder.default_prompt_name,
            similarity_fn_name=plan.encoder.similarity_fn_name,
        )
        baseline = {name: value for name, value in history.evaluations[0].items() if name != "step"}
        validation = {"before": baseline, "after": scores_of(plan.sets, encoder.encode)}
        test = {"before": test_before, "after": scores_of(plan.tests, encoder.encode)}
        encoder.card = card(plan, history, validation, test, target)
        encoder.export(target, precision=plan.arguments.precision or encoder.stored)
    seconds = time.monotonic() - began
    log(f"took {datetime.timedelta(seconds=round(seconds))}")
    seed = plan.arguments.seed
    classifiers = write_classifiers(
        plan.stats, plan.sets, plan.tests, absolute(target), work, seed=seed
    )
    result = Result(
        model_hash=model_hash(target) or "",
        monitor=plan.monitor,
        best_step=history.best_step or 0,
        steps=history.step,
        validation=validation,
        test=test,
        classifiers=[each.path.name for each in classifiers],
    )
    for line in (*(each.line() for each in classifiers), *plan.result_lines(result)):
        log(line)
    log(write_plot(history, work, plan.monitor, plan.unit))
    write_result(work, result)
    return _as_trained(result, work, target, classifiers)


def _train_in_steps(plan: TrainingPlan, work: Path, runtime_options: Mapping[str, Any]) -> History:
    """Trains the encoder of a plan on its tasks, and gives it the weights of the best step."""
    arguments, encoder = plan.arguments, plan.encoder
    heads = {}
    for name, (_, make_loss) in plan.tasks.items():
        file_stats = plan.files.get(name) if arguments.head_init == "linear-probe" else None
        if file_stats and file_stats.source.kind.label and has_heads(make_loss()):
            held_sets, seed = plan.held, arguments.seed
            heads[name] = probe_weights(make_loss, file_stats, held_sets, encoder, seed)
    keras.utils.set_random_seed(arguments.seed)
    with contextlib.ExitStack() as at_end:
        with strategy_scope(runtime_options["strategy"]):
            if arguments.lora_rank is not None:
                adapters = apply_lora(encoder.model, rank=arguments.lora_rank, seed=arguments.seed)
                at_end.callback(adapters.merge)
            losses = {name: make_loss() for name, (_, make_loss) in plan.tasks.items()}
            for name, head_weights in heads.items():
                if not losses[name].built:  # A loss that the user made may serve several files.
                    losses[name].build((None, encoder.dimension))
                losses[name].set_weights(head_weights)
        trainer = Trainer(
            encoder,
            {name: (rows(losses[name]), losses[name]) for name, (rows, _) in plan.tasks.items()},
            dataclasses.replace(arguments, steps=plan.steps, max_length=plan.width),
            evaluate=functools.partial(scores_of, plan.sets),
            monitor=plan.monitor,
            mixing_weights=plan.weights,
            folder=work / "checkpoints",
            arrays=work / "prepared",
            **runtime_options,
        )
        return trainer.train()


@contextlib.contextmanager
def _weights_kept_on_error(model: keras.Model) -> Iterator[None]:
    """If the block fails or is interrupted, the model gets back the weights that it had before."""
    variables = [*model.variables]
    values = [np.array(variable.numpy()) for variable in variables]
    try:
        yield
    except BaseException:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        raise


def _runtime_options(
    strategy: str | None,
    batch_files: str | os.PathLike[str] | None,
    callbacks: Sequence[keras.callbacks.Callback],
    arguments: FileArguments,
) -> dict[str, Any]:
    """The arguments of `Trainer` that a run may change: strategy, batch_files and callbacks."""
    if (backend := keras.config.backend()) != "tensorflow":
        raise ValueError(
            "use_st5.train needs Keras on TensorFlow: unset KERAS_BACKEND before Python starts. "
            f"Received: {backend}"
        )
    if strategy == "multi_worker":
        raise ValueError(
            "strategy: expected one, mirrored or tpu, because `train` uses one machine, received "
            "multi_worker."
        )
    from use_st5.training.strategies import shared_strategy

    made_strategy = None if strategy is None else shared_strategy(strategy)
    replicas = 1 if made_strategy is None else made_strategy.num_replicas_in_sync
    check_shared(arguments.batch_size, replicas=replicas)
    files = None if batch_files is None else as_written(batch_files)
    return {"strategy": made_strategy, "batch_files": files, "callbacks": callbacks}


def _check_cycles(target: Path, runtime_options: Mapping[str, Any]) -> None:
    """Refuses batch files, callbacks and a remote folder: a cycle is several trainings."""
    for name in ("batch_files", "callbacks"):
        if value := runtime_options[name]:
            raise ValueError(
                f"{name}: expected None, because pairs without a score are trained in cycles, "
                f"received {value}. Leave it out."
            )
    if remote := remote_path(target):
        raise ValueError(
            f"{remote}: expected a local folder, because pairs without a score are trained in "
            "cycles. Choose a local folder, and copy it at the end."
        )


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
