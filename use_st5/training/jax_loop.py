"""The training loop under JAX, on one device or on many by Keras's distribution API."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from use_st5._imports import require
from use_st5.data.arrays import check_shared
from use_st5.losses.task_loss import LOCAL, encode_together
from use_st5.training.arguments import TrainingArguments
from use_st5.training.checkpoints import changing_variables, frozen_weights
from use_st5.training.loop import Metrics, TrainingLoop
from use_st5.training.task import Task, micro_batches, shuffling_seed

if TYPE_CHECKING:
    import jax

Batch = dict[str, Any]
Values = list["jax.Array"]
VariableValues = list[tuple[keras.Variable, Any]]

# The axes of the devices' mesh: rows of a batch lie along the first, parts of weights along both.
BATCH, MODEL = "batch", "model"

Rules = Mapping[str, tuple[str | None, ...]]

# By the roles of layers, which are the same in every family: the units of a head and of a
# feed-forward layer stay together along "model" (Megatron-LM, section 3).
RULES: Rules = {
    ".*/(query|key|value|inner|linear)/kernel": (BATCH, MODEL),
    ".*/(output|outer)/kernel": (MODEL, BATCH),
    ".*(/|_)embedding/embeddings": (None, MODEL),
}


class JaxLoop(TrainingLoop):
    """Trains one encoder on several tasks under JAX; the arguments are those of `TrainingLoop`.

    It runs on JAX's first device, or on the devices of the `keras.distribution` that is set, such
    as `use_st5.training.sharded` makes. That distribution places the weights, and each batch is cut
    along its rows. With the same initial weights it makes the same steps as `TensorFlowLoop`,
    except that dropout draws other numbers. TensorFlow need not be installed.
    """

    def __init__(
        self,
        encoder: keras.Model,
        tasks: Sequence[Task],
        optimizer: keras.optimizers.Optimizer,
        args: TrainingArguments,
        **options: Any,
    ) -> None:
        super().__init__(encoder, tasks, optimizer, args, **options)
        trainable = self._trainable_variables()
        self._steps = {
            name: JaxStep(encoder, task, optimizer, args, trainable=trainable)
            for name, task in self.tasks.items()
        }

    def _train(self, name: str, first: int, steps: int) -> Metrics:
        task = self.tasks[name]
        seed = shuffling_seed(name, seed=self.args.seed)
        numbers = range(first, first + steps)
        return self._steps[name](task.data.batch(step, task.batch_size, seed) for step in numbers)

    def _check(self, tasks: Sequence[Task]) -> None:
        if keras.config.backend() != "jax":
            raise ValueError("Set KERAS_BACKEND=jax before Keras is imported.")
        super()._check(tasks)
        for task in tasks:
            check_shared(task.batch_size, devices=parts_of_batch())
            task.data.check_batch(task.batch_size)


class JaxStep:
    """The compiled gradient and update of one task, a function of the values of all variables.

    The values that change are donated to it, so that the device holds one copy of them.
    """

    def __init__(
        self,
        encoder: keras.Model,
        task: Task,
        optimizer: keras.optimizers.Optimizer,
        args: TrainingArguments,
        *,
        trainable: list[keras.Variable],
    ) -> None:
        self._jax = require("jax", "jax")  # imported here: the package imports without it
        self.encoder = encoder
        self.loss = task.loss
        self.optimizer = optimizer
        self._parts = args.gradient_accumulation_steps
        self._pieces = args.pieces
        self.names = ("loss", *task.loss.metric_names)
        self._feature_names = [feature.name for feature in task.loss.features]
        self._trained = [*encoder.trainable_variables, *task.loss.trainable_variables]
        layers = (encoder, task.loss)
        trainable_ids = {id(variable) for variable in trainable}
        self._state = [
            v for layer in layers for v in changing_variables(layer) if id(v) not in trainable_ids
        ]
        self._changing = [*trainable, *self._state, *optimizer.variables]
        self._frozen = [variable for layer in layers for variable in frozen_weights(layer)]
        self._read: set[int] = set()
        self._compiled: Any = None

    def __call__(self, batches: Iterable[dict[str, np.ndarray]]) -> dict[str, float]:
        """Makes an update with each batch; returns the means of the loss and of each metric."""
        values = [variable.value for variable in self._changing]
        frozen = [variable.value for variable in self._frozen]
        if self._compiled is None:
            self._compiled = self.program(values)
        results = []
        try:
            # The host prepares the next batch while the device computes.
            for batch in batches:
                columns = placed({name: batch[name] for name in self._feature_names})
                values, numbers = self._compiled(values, frozen, columns)
                results.append(numbers)
        finally:
            for variable, value in zip(self._changing, values, strict=True):
                variable.assign(value)
        means = np.mean(self._jax.device_get(results), axis=0)
        return dict(zip(self.names, map(float, means), strict=True))

    def program(self, values: Values) -> Any:
        """The compiled step; outputs keep the inputs' sharding, or the next call compiles anew."""
        options = {}
        if keras.distribution.distribution() is not None:
            options["out_shardings"] = ([value.sharding for value in values], None)
        return self._jax.jit(self._step, donate_argnums=0, **options)

    def _step(self, values: Values, frozen: Values, batch: Batch) -> tuple[Values, jax.Array]:
        """Makes one update; returns the variables' next values, and loss and metrics `[names]`."""
        frozen_values = list(zip(self._frozen, frozen, strict=True))
        total: Any = 0.0
        sums: Any = None
        for part in micro_batches(batch, self._parts):
            variable_values = list(zip(self._changing, values, strict=True)) + frozen_values
            trained_values = _values_of(self._trained, variable_values)
            differentiate = self._jax.value_and_grad(self._loss_of, has_aux=True)
            (_, (numbers, values)), gradients = differentiate(trained_values, variable_values, part)
            total = total + numbers
            sums = gradients if sums is None else [*map(operator.add, sums, gradients)]
        # Variables that the loss does not read get no update, and no weight decay either.
        pairs = [
            (gradient / self._parts, variable)
            for gradient, variable in zip(sums, self._trained, strict=True)
            if id(variable) in self._read
        ]
        with keras.StatelessScope(zip(self._changing, values, strict=True)) as scope:
            self.optimizer.apply(*(list(column) for column in zip(*pairs, strict=True)))
        values = [scope.get_current_value(variable) for variable in self._changing]
        return values, total / self._parts

    def _loss_of(
        self, trained: Values, current: VariableValues, batch: Batch
    ) -> tuple[jax.Array, tuple[jax.Array, Values]]:
        """A micro-batch's loss; also loss and metrics `[names]`, and the variables' next values."""
        current = [*current, *zip(self._trained, trained, strict=True)]
        if self._pieces == 1:
            with _Reading(current, self._read) as scope:
                loss, metrics = self.loss(self.encoder, batch, training=True)
        else:
            vectors, state = self._encode_in_pieces(current, batch)
            with _Reading([*current, *state], self._read) as scope:
                loss, metrics = self.loss.from_vectors(vectors, batch, training=True, gather=LOCAL)
        numbers = ops.stack([loss, *(metrics[name] for name in self.names[1:])])
        next_values = scope.values_of(self._changing)
        return loss, (ops.stop_gradient(numbers), next_values)

    def _encode_in_pieces(
        self, current: VariableValues, batch: Batch
    ) -> tuple[list[jax.Array], VariableValues]:
        """The vectors of the batch's texts by GradCache, and the state after the last piece."""
        # Each piece has rows of every device. If the pieces were consecutive rows, each would have
        # the rows of one device, and all devices would compute what only that one needs to.
        pieces = [
            ids.reshape(-1, self._pieces, *ids.shape[1:]).swapaxes(0, 1)
            for ids in self.loss.texts(batch)
        ]

        def encode(state: Values, texts: list[jax.Array]) -> tuple[Values, list[jax.Array]]:
            mapping = [*current, *zip(self._state, state, strict=True)]
            with _Reading(mapping, self._read) as scope:
                vectors = encode_together(self.encoder, texts, training=True)
            return scope.values_of(self._state), vectors

        # In a loop the compiler cannot merge the two computations, so it need not be prevented.
        encode_piece = self._jax.checkpoint(encode, prevent_cse=False)
        state, vectors = self._jax.lax.scan(encode_piece, _values_of(self._state, current), pieces)
        row_vectors = [each.swapaxes(0, 1).reshape(-1, each.shape[-1]) for each in vectors]
        return row_vectors, list(zip(self._state, state, strict=True))


class _Reading(keras.StatelessScope):
    """A stateless scope with given values, which notes the ids of variables that are read in it."""

    def __init__(self, mapping: VariableValues, read: set[int]) -> None:
        super().__init__(mapping)
        self._read = read

    def get_current_value(self, variable: keras.Variable) -> Any:
        """Notes the variable, and returns its current value."""
        self._read.add(id(variable))
        return super().get_current_value(variable)

    def values_of(self, variables: list[keras.Variable]) -> Values:
        """The current values of several variables, without noting them."""
        return [super(_Reading, self).get_current_value(variable) for variable in variables]


def _values_of(variables: list[keras.Variable], current: VariableValues) -> Values:
    values = {id(variable): value for variable, value in current}
    return [values[id(variable)] for variable in variables]


def sharded(*, model: int = 1, rules: Rules = RULES) -> keras.distribution.Distribution:
    """A distribution of weights and batches over the devices of JAX.

    With `model=1` each device holds all weights and a part of the batch (`DataParallel`). With a
    larger `model` the devices are a mesh `[devices / model, model]` (`ModelParallel`). The batch is
    cut along its first axis, "batch". The linear layers of the Transformers are cut along both
    axes: along "model" as in Megatron-LM (Shoeybi et al. 2019, section 3), along "batch" as in
    ZeRO-3 (Rajbhandari et al. 2020). Their tables are cut along "model". Adam's moments are cut
    like the weights. The losses are those of one device: an in-batch softmax has the candidates of
    the whole batch.

    Set the distribution before the encoder is made; it also places a loaded checkpoint's weights:

        >>> keras.distribution.set_distribution(sharded(model=4))
        >>> encoder = TrainableEncoder.load("t5-11b")
        >>> Trainer(encoder, tasks).train()

    Args:
        model: Length of the axis "model", which divides the number of devices.
        rules: Pattern of a weight's path → for each of its axes the axis of the mesh along which it
            is cut, "batch", "model" or None. A weight that no pattern matches lies whole on every
            device.
    """
    places = [*keras.distribution.list_devices()]
    if model < 1 or len(places) % model:
        raise ValueError(f"model: expected a part of {len(places)} devices, received {model}.")
    if model == 1:
        return keras.distribution.DataParallel(devices=places, auto_shard_dataset=False)
    mesh = keras.distribution.DeviceMesh((len(places) // model, model), (BATCH, MODEL), places)
    layout = keras.distribution.LayoutMap(mesh)
    for pattern, axes in rules.items():
        layout[pattern] = axes
    return keras.distribution.ModelParallel(
        layout_map=layout, batch_dim_name=BATCH, auto_shard_dataset=False
    )


def placed(batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Places a batch's arrays as the current distribution says; unchanged without one."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return dict(batch)
    import jax

    return {
        name: jax.device_put(array, distribution.get_data_layout(array.shape).backend_layout)
        for name, array in batch.items()
    }


def parts_of_batch() -> int:
    """The number of parts into which the current distribution cuts a batch; 1 without one."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return 1
    mesh = distribution.device_mesh
    return mesh.shape[mesh.axis_names.index(distribution.batch_dim_name)]
