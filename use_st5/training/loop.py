"""The training loop of one encoder and several tasks: the part that all backends share."""

from __future__ import annotations

import abc
import contextlib
import math
import os
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Literal

import keras
from keras import ops

from use_st5.io.files import sole_writer
from use_st5.io.remote_files import remote_path
from use_st5.losses.task_loss import VectorLoss
from use_st5.training.arguments import Order
from use_st5.training.array_data import check_shared
from use_st5.training.checkpoints import Checkpoints, changing_variables
from use_st5.training.history import History
from use_st5.training.preemption import Preempted, StopSignal
from use_st5.training.reporter import Reporter, TensorBoardWriter
from use_st5.training.run_folder import check_same, run_configuration
from use_st5.training.task import Task, next_multiple, task_in_turn

if TYPE_CHECKING:
    from use_st5.trainable_encoder import TrainableEncoder

Metrics = dict[str, float]

_NOT_FINITE_ADVICE = (
    "Use a smaller learning rate, or clip gradients (the optimizer's global_clipnorm), and check "
    "the data for NaN. The last checkpoint is not affected."
)


class TrainingLoop(abc.ABC):
    """Trains one encoder on several tasks, each batch of one task (USE paper, "Encoders").

    Every `steps_per_execution` steps belong to one task: one call from the host, or several calls
    if an evaluation or a checkpoint is due in between. The order of the tasks and the batches of
    each are functions of seed and step. A run that is killed and started again with the same
    arguments continues from its last checkpoint, to the weights of a run that was never killed.
    Call `keras.utils.set_random_seed` before anything else.

    One optimizer serves all tasks; a step does not change the heads of other tasks or their slots.
    Gradients are clipped by the optimizer's own `clipnorm`, `global_clipnorm` or `clipvalue`.

    A checkpoint holds all variables that change. For weights that are frozen when the loop is made,
    it holds a fingerprint; a run with other frozen weights does not continue from it.

    Args:
        encoder: A `TrainableEncoder`, or a model `ids [batch, length] → [batch, dimension]` with an
            attribute `dimension`, built.
        tasks: The tasks to train on.
        optimizer: A Keras optimizer, whose learning rate is a number or a Keras schedule.
        folder: The folder of checkpoints; a run continues from the last one in it. None: nothing is
            written.
        seed: The seed of the draw of tasks and of the shuffling.
        order: Whether tasks are "drawn", or take turns in a "cycle": see `task_in_turn`.
        steps_per_execution: Steps per call from the host, at most.
        gradient_accumulation_steps: Number of micro-batches into which each batch is cut on its
            replica; the update is made from their mean gradient. In-batch negatives then come only
            from the same micro-batch.
        gradient_cache: Number of pieces in which each replica encodes its part of a micro-batch,
            one after the other and twice (Gao et al. 2021). This needs the memory of a small batch,
            and computes the loss and the gradients of the large one. Each loss must be a
            `VectorLoss`.
        evaluate: Returns validation scores of the encoder with its current weights.
        evaluate_every: Steps between evaluations; there is always one at the end.
        evaluate_at: Further steps with an evaluation and a checkpoint, such as the ends of epochs.
        evaluate_start: Whether the encoder is also evaluated before the first step. The start may
            then be the best.
        patience: The run ends after this number of evaluations in a row without a better score;
            None: all steps are made.
        monitor: The metric whose best checkpoint is kept; None: the first.
        mode: Whether the highest ("max") or the lowest ("min") value is best.
        checkpoint_every: Steps between checkpoints, in addition to those of better evaluations and
            of the end.
        callbacks: Keras callbacks. A "batch" is a call from the host, an "epoch" lies between two
            evaluations. Checkpoints do not hold their state; the encoder has no `optimizer`.
        progress: Whether to show progress on the standard error output.
    """

    def __init__(
        self,
        encoder: TrainableEncoder | keras.Model,
        tasks: Sequence[Task],
        optimizer: keras.optimizers.Optimizer,
        *,
        folder: str | os.PathLike[str] | None = None,
        seed: int = 0,
        order: Order = "drawn",
        steps_per_execution: int = 10,
        gradient_accumulation_steps: int = 1,
        gradient_cache: int = 1,
        evaluate: Callable[[], Metrics] | None = None,
        evaluate_every: int | None = None,
        evaluate_at: Collection[int] = (),
        evaluate_start: bool = False,
        patience: int | None = None,
        monitor: str | None = None,
        mode: Literal["max", "min"] = "max",
        checkpoint_every: int | None = None,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        progress: bool = True,
    ) -> None:
        self.encoder = encoder if isinstance(encoder, keras.Model) else encoder.model
        self.tasks = {task.name: task for task in tasks}
        self.optimizer = optimizer
        self.folder = folder
        self.seed = seed
        self.order: Order = order
        self.steps_per_execution = steps_per_execution
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.gradient_cache = gradient_cache
        self.evaluate = evaluate
        self.evaluate_every = evaluate_every
        self.evaluate_at = frozenset(evaluate_at)
        self.evaluate_start = evaluate_start
        self.patience = patience
        self.monitor = monitor
        self.mode = mode
        self.checkpoint_every = checkpoint_every
        self.callbacks = list(callbacks)
        self.history = History(task_steps=dict.fromkeys(self.tasks, 0))
        self._check(tasks)
        with self._scope():
            for task in self.tasks.values():
                if not task.loss.built:
                    task.loss.build((None, self.encoder.dimension))
            if not optimizer.built:
                optimizer.build(self._trainable_variables())
        self.configuration = run_configuration(
            self.encoder,
            list(self.tasks.values()),
            optimizer,
            order=order,
            fingerprinted=folder is not None,  # Only a checkpoint needs it.
            seed=seed,
            steps_per_execution=steps_per_execution,
            gradient_accumulation_steps=gradient_accumulation_steps,
        )
        self._checkpoints: Checkpoints | None = None
        if folder is not None:
            heads = {f"head_{name}": task.loss for name, task in self.tasks.items()}
            layers = {**heads, "encoder": self.encoder}
            groups = {name: changing_variables(layer) for name, layer in layers.items()}
            groups["optimizer"] = optimizer.variables
            self._checkpoints = Checkpoints(folder, groups, writes=self._is_chief)
        self._saved_step: int | None = None
        self._signal = StopSignal(listens=folder is not None)
        self._reporter = Reporter(self._writer(), progress=progress and self._is_chief)

    def run(self, steps: int) -> History:
        """Trains up to step `steps`, from the last checkpoint if the folder holds one.

        Args:
            steps: Number of all updates, including those of earlier calls and of the checkpoint.

        Returns:
            The run's history; `history.best_step` is the best checkpoint's step.

        Raises:
            ValueError: The checkpoint is of another run.
            FloatingPointError: The loss is no longer finite.
            BlockingIOError: Another process is training into the folder.
            Preempted: The process got SIGTERM and saved the run, or another worker was lost.
        """
        folder = self.folder if self._is_chief and not remote_path(self.folder or "") else None
        writing = contextlib.nullcontext() if folder is None else sole_writer(folder, inside=True)
        with writing, self._signal:
            if self.history.step == 0:
                self._resume()
            self.encoder.stop_training = self.history.has_waited(self.patience)
            callbacks = keras.callbacks.CallbackList(self.callbacks, model=self.encoder)
            calls = -(-(self.evaluate_every or steps) // self.steps_per_execution)
            callbacks.set_params({"steps": calls})
            with self._reporter.showing(self.history.step, steps):
                self._loop(steps, callbacks)
        return self.history

    def restore_best(self) -> None:
        """Gives the encoder the weights of the best evaluation's checkpoint; it needs a folder."""
        if self._checkpoints is None or self.history.best_step is None:
            raise ValueError("Expected an evaluation with a score that is a number, found none.")
        self._checkpoints.restore(self.history.best_step, groups=["encoder"])

    @abc.abstractmethod
    def _train(self, name: str, first: int, steps: int) -> Metrics:
        """Makes `steps` updates for a task, from batch `first` on; returns the means of metrics."""

    def _learning_rate(self) -> float:
        return float(self.optimizer.learning_rate)

    @property
    def _replicas(self) -> int:
        return 1

    @property
    def _is_chief(self) -> bool:
        """Whether this process is the one that shows progress and writes files."""
        return True

    def _is_asked_to_stop(self) -> bool:
        """Whether this process, or another worker, was told to end."""
        return self._signal.requested

    def _scope(self) -> contextlib.AbstractContextManager:
        """The scope in which variables are made."""
        return contextlib.nullcontext()

    def _writer(self) -> TensorBoardWriter | None:
        return None

    def _loop(self, steps: int, callbacks: keras.callbacks.CallbackList) -> None:
        callbacks.on_train_begin()
        logs: Metrics = {}
        if self.evaluate_start and self.history.step == 0 and not self.history.evaluations:
            self._evaluate()
        epoch_begins = True
        while self.history.step < steps and not self.encoder.stop_training:
            if epoch_begins:
                callbacks.on_epoch_begin(self._epoch(self.history.step, steps))
            logs = self._call(steps, callbacks)
            ends = self.history.step >= steps or self.encoder.stop_training
            epoch_begins = ends or self._ends_epoch()
            if epoch_begins:
                epoch = self._epoch(self.history.step - 1, steps)
                logs = {**logs, **self._evaluate()}
                callbacks.on_epoch_end(epoch, logs)
            elif self._due(self.checkpoint_every):
                self._save()
            if not ends and self._is_asked_to_stop():
                self._save()
                raise Preempted(f"Stopped by SIGTERM; saved at step {self.history.step}.")
        self._save()
        callbacks.on_train_end(logs)

    def _call(self, end: int, callbacks: keras.callbacks.CallbackList) -> Metrics:
        """Runs the next steps of one task; returns its values as `task/name`, and the loss."""
        history, start, turn = self.history, self.history.step, self.steps_per_execution
        next_event = next_multiple(start, turn, self.evaluate_every, self.checkpoint_every)
        steps = min(end, next_event, *(step for step in self.evaluate_at if step > start)) - start
        turn_start = start // turn * turn
        name = task_in_turn(self.tasks, order=self.order, seed=self.seed, step=turn_start)
        callbacks.on_train_batch_begin(history.step)
        values = self._train(name, history.task_steps[name], steps)
        if not math.isfinite(values["loss"]):
            raise FloatingPointError(
                f"Expected a finite loss. Received {values['loss']} from task '{name}' in steps "
                f"{start + 1} to {start + steps}. {_NOT_FINITE_ADVICE}"
            )
        history.add(name, steps, values)
        self._reporter.step(history.step, name, values, self._learning_rate())
        logs = {"loss": values["loss"], **{f"{name}/{key}": v for key, v in values.items()}}
        callbacks.on_train_batch_end(history.step - 1, logs)
        return logs

    def _evaluate(self) -> Metrics:
        """Evaluates the encoder, notes the best score, and saves a checkpoint if one is due."""
        metrics, is_best = Metrics(), False
        if self.evaluate is not None:
            metrics = {name: float(value) for name, value in self.evaluate().items()}
            is_best = self.history.improve(metrics, monitor=self.monitor, mode=self.mode)
            self.history.evaluations.append({"step": self.history.step, **metrics})
            self._reporter.evaluation(self.history.step, metrics, is_best)
            self.encoder.stop_training |= self.history.has_waited(self.patience)
        if is_best or self._due(self.checkpoint_every) or self.history.step in self.evaluate_at:
            self._save()
        return metrics

    def _save(self) -> None:
        """Writes a checkpoint, unless there is no folder or the step has one."""
        if self._checkpoints is None or self._saved_step == self.history.step:
            return
        # The loss that was checked is that before the last update. No run can continue from a
        # checkpoint with NaN or infinity, not even in the optimizer's variables.
        for variable in self._checkpoints.variables:
            if not ops.all(ops.isfinite(variable.value)):
                raise FloatingPointError(
                    f"Expected finite weights after step {self.history.step}, found NaN or "
                    f"infinity in {variable.path}. {_NOT_FINITE_ADVICE}"
                )
        state = {**self.history.to_state(), "configuration": self.configuration}
        self._checkpoints.save(self.history.step, state, also_keep=self.history.best_step)
        self._saved_step = self.history.step

    def _resume(self) -> None:
        if self._checkpoints is None or not (steps := self._checkpoints.steps()):
            return
        state = self._checkpoints.state(steps[-1])
        check_same(state.pop("configuration"), self.configuration, self._checkpoints.folder)
        self._checkpoints.restore(steps[-1])
        self.history = History(**state)
        if self.history.best_step is not None and self.history.best_step not in steps:
            # It was removed, as the message for a damaged checkpoint advises.
            self.history.choose_best_of(steps, monitor=self.monitor, mode=self.mode)
        self._saved_step = self.history.step

    def _trainable_variables(self) -> list[keras.Variable]:
        heads = [v for task in self.tasks.values() for v in task.loss.trainable_variables]
        # Tasks may share a loss: its variables count once.
        return [*{id(v): v for v in [*self.encoder.trainable_variables, *heads]}.values()]

    def _ends_epoch(self) -> bool:
        """Whether an evaluation is due: for callbacks an epoch lies between two of them."""
        return self._due(self.evaluate_every) or self.history.step in self.evaluate_at

    def _epoch(self, step: int, steps: int) -> int:
        """The number of the epoch that has the update after `step` updates."""
        interval = self.evaluate_every or steps
        return step // interval + sum(at <= step and at % interval != 0 for at in self.evaluate_at)

    def _due(self, every: int | None) -> bool:
        return every is not None and self.history.step % every == 0

    def _check(self, tasks: Sequence[Task]) -> None:
        """Refuses what no step could be made with, before anything is built."""
        for task in tasks:
            task.check_features()
            task.loss.check_encoder(self.encoder)
            check_shared(
                task.batch_size,
                task.name,
                replicas=self._replicas,
                micro_batches=self.gradient_accumulation_steps,
                pieces=self.gradient_cache,
            )
            if self.gradient_cache > 1 and not isinstance(task.loss, VectorLoss):
                raise ValueError(
                    f"Expected the loss of task '{task.name}' to be a VectorLoss, for "
                    "gradient_cache: one that needs nothing of the encoder but its vectors. "
                    f"Received: {type(task.loss).__name__}"
                )
            if self.order == "cycle" and task.mixing_weight % self.steps_per_execution:
                raise ValueError(
                    "Expected weights that are multiples of steps_per_execution, because "
                    "order='cycle' takes them as numbers of steps. Received: "
                    f"{task.mixing_weight} for '{task.name}' with "
                    f"steps_per_execution={self.steps_per_execution}"
                )
        optimizer = self.optimizer
        scaling = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        if scaling or optimizer.loss_scale_factor or optimizer.gradient_accumulation_steps:
            raise ValueError(
                f"Expected an optimizer that neither scales the loss nor accumulates gradients "
                "(gradient_accumulation_steps of TrainingArguments does). Received: "
                f"{type(optimizer).__name__}, loss_scale_factor={optimizer.loss_scale_factor}, "
                f"gradient_accumulation_steps={optimizer.gradient_accumulation_steps}"
            )
        if not self.encoder.built or not self.encoder.trainable_variables:
            raise ValueError(
                "Expected a built encoder with trainable variables. Call encoder.build((None, "
                "None)), under tf.distribute in the strategy's scope."
            )
