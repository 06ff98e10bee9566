"""The training loop of one encoder and several tasks: the part that all backends share."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import logging
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import keras
from keras import ops

from use_st5.io.files import remote_path, sole_writer
from use_st5.losses.task_loss import VectorLoss
from use_st5.training.arguments import STEPS_PER_EXECUTION, TrainingArguments
from use_st5.training.checkpoints import Checkpoints, changing_variables
from use_st5.training.history import History, Reporter, TensorBoardWriter
from use_st5.training.run_folder import check_same, run_configuration
from use_st5.training.task import Task, task_in_turn

Metrics = dict[str, float]

# "Try again" (EX_TEMPFAIL of sysexits.h): the system that starts workers restarts them, and the run
# continues.
TRY_AGAIN = 75

_NOT_FINITE_ADVICE = (
    "Use a smaller learning rate, or clip gradients (the optimizer's global_clipnorm), and check "
    "the data for NaN. The last checkpoint is not affected."
)
_log = logging.getLogger(__name__)


class Preempted(SystemExit):
    """Ends the process with the code 75 after SIGTERM or a lost worker; a new start continues.

    The code tells a shell's loop, or a cluster's restart policy, to start the run again.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(TRY_AGAIN)
        self.reason = reason
        # Python prints nothing if a process ends with an exit code.
        _log.warning("%s", reason)

    def __str__(self) -> str:
        """The reason."""
        return self.reason


class TrainingLoop(abc.ABC):
    """Trains one encoder on several tasks, each batch of one task (USE paper, "Encoders").

    Every `args.steps_per_execution` steps (None: 10) belong to one task: one call from the host.
    The order of the tasks and the batches of each are functions of seed and step. A run that is
    killed and started again with the same arguments continues from its last checkpoint, to the
    weights of a run that was never killed. Call `keras.utils.set_random_seed` before anything else.

    One optimizer serves all tasks; a step does not change the heads of other tasks or their slots.
    Gradients are clipped by the optimizer's own `clipnorm`, `global_clipnorm` or `clipvalue`.

    There is a checkpoint at each evaluation. It holds all variables that change. For weights that
    are frozen when the loop is made, it holds a fingerprint; a run with other frozen weights does
    not continue from it.

    Args:
        encoder: A model `ids [batch, length] → [batch, dimension]` with an attribute `dimension`,
            built.
        tasks: The tasks to train on.
        optimizer: A Keras optimizer, whose learning rate is a number or a Keras schedule.
        args: How to train; the optimizer and the tasks replace their fields in it.
        folder: The folder of checkpoints; a run continues from the last one in it. None: nothing is
            written.
        evaluate: Returns validation scores of the encoder with its current weights.
        evaluate_start: Whether the encoder is also evaluated before the first step. The start may
            then be the best.
        monitor: The metric whose best checkpoints are kept; None: the first.
        mode: Whether the highest ("max") or the lowest ("min") value is best.
        keep_best: Number of the best checkpoints that are kept, beside the last one.
        callbacks: Keras callbacks. A "batch" is a call from the host, an "epoch" lies between two
            evaluations, whose scores have "_at_" in their names for "@". Checkpoints do not hold
            their state.
        progress: Whether to show progress on the standard error output.
    """

    def __init__(
        self,
        encoder: keras.Model,
        tasks: Sequence[Task],
        optimizer: keras.optimizers.Optimizer,
        args: TrainingArguments,
        *,
        folder: str | os.PathLike[str] | None = None,
        evaluate: Callable[[], Metrics] | None = None,
        evaluate_start: bool = False,
        monitor: str | None = None,
        mode: Literal["max", "min"] = "max",
        keep_best: int = 1,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        progress: bool = True,
    ) -> None:
        turn = args.steps_per_execution or STEPS_PER_EXECUTION
        self.args = dataclasses.replace(args, steps_per_execution=turn)
        self._turn = turn
        self.encoder = encoder
        self.tasks = {task.name: task for task in tasks}
        self.optimizer = optimizer
        self.folder = folder
        self.evaluate = evaluate
        self.evaluate_start = evaluate_start
        self.monitor = monitor
        self.mode = mode
        self.keep_best = keep_best
        self.callbacks = list(callbacks)
        self.history = History(task_steps=dict.fromkeys(self.tasks, 0))
        self._check(tasks)
        with self._scope():
            for task in self.tasks.values():
                if not task.loss.built:
                    task.loss.build((None, self.encoder.dimension))
            if not optimizer.built:
                optimizer.build(self._trainable_variables())
        self._checkpoints: Checkpoints | None = None
        if folder is not None:
            self.configuration = run_configuration(encoder, tasks, optimizer, self.args)
            heads = {f"head_{name}": task.loss for name, task in self.tasks.items()}
            layers = {**heads, "encoder": encoder}
            groups = {name: changing_variables(layer) for name, layer in layers.items()}
            groups["optimizer"] = optimizer.variables
            self._checkpoints = Checkpoints(folder, groups, writes=self._is_chief)
        self._saved_step: int | None = None
        self._told_to_stop = False
        self._reporter = Reporter(self._writer(), progress=progress and self._is_chief)

    def run(self, steps: int) -> History:
        """Trains up to step `steps`, from the last checkpoint if the folder holds one.

        Args:
            steps: Number of all updates, including those of earlier calls and of the checkpoint.

        Returns:
            The run's history; `history.best_step` is the best checkpoint's step.
        """
        # In batches of the size of `args`: that of a task may be another.
        batches = sum(len(task.data) / task.batch_size for task in self.tasks.values())
        self._interval = self.args.evaluation_interval(steps)
        self._ends = self.args.ends(steps, batches * self.args.batch_size)
        folder = self.folder if self._is_chief and not remote_path(self.folder or "") else None
        writing = contextlib.nullcontext() if folder is None else sole_writer(folder, inside=True)
        with writing, self._noting_sigterm():
            if self.history.step == 0:
                self._resume()
            patience = self.args.early_stopping_patience
            self.encoder.stop_training = self.history.has_waited(patience)
            callbacks = keras.callbacks.CallbackList(self.callbacks, model=self.encoder)
            callbacks.set_params({"steps": -(-self._interval // self._turn)})
            with self._reporter.showing(self.history.step, steps), self._showing_optimizer():
                self._loop(steps, callbacks)
        return self.history

    def restore_best(self, place: int = 0) -> None:
        """Gives the encoder the weights of the best checkpoint, or of that in another place."""
        steps = [] if self._checkpoints is None else self._best_steps(self._checkpoints)
        if self._checkpoints is None or not 0 <= place < len(steps):
            text = f"expected a place below {len(steps)}, the number of best checkpoints"
            raise ValueError(f"restore_best: {text}, received {place}.")
        self._checkpoints.restore(steps[place], groups=["encoder"])

    def _best_steps(self, checkpoints: Checkpoints) -> list[int]:
        """The steps of the best checkpoints, with that of the current step."""
        ranked = self.history.ranked_steps(monitor=self.monitor, mode=self.mode)
        there = {*checkpoints.steps(), self.history.step}
        return [step for step in ranked if step in there][: self.keep_best]

    @abc.abstractmethod
    def _train(self, name: str, first: int, steps: int) -> Metrics:
        """Makes `steps` updates for a task, from batch `first` on; returns the means of metrics."""

    def _tracing(self) -> contextlib.AbstractContextManager:
        """Makes the graph of the first step while the block runs, without an update."""
        return contextlib.nullcontext()

    def _learning_rate(self) -> float:
        return float(self.optimizer.learning_rate)

    @property
    def _is_chief(self) -> bool:
        """Whether this process is the one that shows progress and writes files."""
        return True

    def _is_asked_to_stop(self) -> bool:
        """Whether this process, or another worker, was told to end."""
        return self._told_to_stop

    def _scope(self) -> contextlib.AbstractContextManager:
        """The scope in which variables are made."""
        return contextlib.nullcontext()

    def _writer(self) -> TensorBoardWriter | None:
        return None

    @contextlib.contextmanager
    def _noting_sigterm(self) -> Iterator[None]:
        """Notes SIGTERM, which a host sends before it stops; a second one ends the process."""
        self._told_to_stop = False
        main = threading.current_thread() is threading.main_thread()  # Others get no signals.
        if self.folder is None or not main:
            yield
            return

        def note(number: int, frame: object) -> None:
            if self._told_to_stop:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            self._told_to_stop = True

        # A handler that was not installed from Python cannot be restored.
        before = signal.signal(signal.SIGTERM, note) or signal.SIG_DFL
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    @contextlib.contextmanager
    def _showing_optimizer(self) -> Iterator[None]:
        """Gives the encoder the attribute `optimizer`, which callbacks of trackers read."""
        before = vars(self.encoder).get("optimizer")
        self.encoder.optimizer = self.optimizer
        try:
            yield
        finally:
            del self.encoder.optimizer
            if before is not None:
                self.encoder.optimizer = before

    def _loop(self, steps: int, callbacks: keras.callbacks.CallbackList) -> None:
        callbacks.on_train_begin()
        logs: Metrics = {}
        starts = self.history.step == 0 and not self.history.evaluations
        if starts and self.evaluate_start and self.evaluate is not None:
            with self._tracing():
                self._evaluate()
        epoch_begins = True
        while self.history.step < steps and not self.encoder.stop_training:
            if epoch_begins:
                callbacks.on_epoch_begin(self._epoch(self.history.step))
            logs = self._call(callbacks)
            step = self.history.step
            epoch_begins = step % self._interval == 0 or step in self._ends
            if epoch_begins or self.encoder.stop_training:
                epoch = self._epoch(step - 1)
                metrics = self._evaluate()  # MLflow allows no "@" in names.
                logs |= {name.replace("@", "_at_"): value for name, value in metrics.items()}
                callbacks.on_epoch_end(epoch, logs)
            if step < steps and not self.encoder.stop_training and self._is_asked_to_stop():
                self._save()
                raise Preempted(f"Stopped by SIGTERM; saved at step {step}.")
        self._save()
        callbacks.on_train_end(logs)

    def _call(self, callbacks: keras.callbacks.CallbackList) -> Metrics:
        """Runs the next steps of one task; returns its values as `task/name`, and the loss."""
        history, start = self.history, self.history.step
        turn_start = start // self._turn * self._turn
        ends = (end for end in self._ends if end > start)
        steps = min(turn_start + self._turn, *ends) - start
        order, seed = self.args.task_order, self.args.seed
        name = task_in_turn(self.tasks, order=order, seed=seed, step=turn_start)
        callbacks.on_train_batch_begin(start)
        values = self._train(name, history.task_steps[name], steps)
        if not math.isfinite(loss := values["loss"]):
            span = f"in steps {start + 1} to {start + steps}"
            raise FloatingPointError(f"Loss {loss} of task '{name}' {span}. {_NOT_FINITE_ADVICE}")
        history.add(name, steps, values)
        self._reporter.step(history.step, name, values, self._learning_rate())
        logs = {"loss": loss, **{f"{name}/{key}": v for key, v in values.items()}}
        callbacks.on_train_batch_end(history.step - 1, logs)
        return logs

    def _evaluate(self) -> Metrics:
        """Evaluates the encoder, notes the best score, and saves a checkpoint."""
        metrics = Metrics()
        if self.evaluate is not None:
            metrics = {name: float(value) for name, value in self.evaluate().items()}
            is_best = self.history.improve(metrics, monitor=self.monitor, mode=self.mode)
            self.history.evaluations.append({"step": self.history.step, **metrics})
            self._reporter.evaluation(self.history.step, metrics, is_best)
            patience = self.args.early_stopping_patience
            self.encoder.stop_training |= self.history.has_waited(patience)
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
                found = f"{variable.path} is not finite after step {self.history.step}"
                raise FloatingPointError(f"{found}. {_NOT_FINITE_ADVICE}")
        state = {**self.history.to_state(), "configuration": self.configuration}
        best = self._best_steps(self._checkpoints)
        self._checkpoints.save(self.history.step, state, also_keep=best)
        self._saved_step = self.history.step

    def _resume(self) -> None:
        if self._checkpoints is None or not (steps := self._checkpoints.steps()):
            return
        state = self._checkpoints.state(steps[-1])
        check_same(state.pop("configuration"), self.configuration, self._checkpoints.folder)
        self._checkpoints.restore(steps[-1])
        self.history = history = History(**state)
        if history.best_step not in (None, *steps):
            # It was removed, as the message for a damaged checkpoint advises.
            history.best_step = history.best_score = None
            last = dict(history.evaluations[-1])
            if last.pop("step") == history.step:
                history.improve(last, monitor=self.monitor, mode=self.mode)
        self._saved_step = history.step

    def _trainable_variables(self) -> list[keras.Variable]:
        heads = [v for task in self.tasks.values() for v in task.loss.trainable_variables]
        # Tasks may share a loss: its variables count once.
        return [*{id(v): v for v in [*self.encoder.trainable_variables, *heads]}.values()]

    def _epoch(self, step: int) -> int:
        """The number of the epoch, from one evaluation to the next, that has the next update."""
        return step // self._interval + sum(
            end <= step and end % self._interval != 0 for end in self._ends
        )

    def _check(self, tasks: Sequence[Task]) -> None:
        """Refuses what no step could be made with, before anything is built."""
        args = self.args
        for task in tasks:
            task.check_features()
            task.loss.check_encoder(self.encoder)
            if args.pieces > 1 and not isinstance(task.loss, VectorLoss):
                name = type(task.loss).__name__
                raise ValueError(f"{task.name}: micro_batch_size needs a VectorLoss, not a {name}.")
            if args.task_order == "cycle" and task.mixing_weight % self._turn:
                weight = f"{task.name}: mixing_weight {task.mixing_weight}"
                raise ValueError(f"{weight} must be a multiple of steps_per_execution in a cycle.")
        optimizer = self.optimizer
        scaling = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        if scaling or optimizer.loss_scale_factor or optimizer.gradient_accumulation_steps:
            raise ValueError("The optimizer must neither scale the loss nor accumulate gradients.")
