"""`tf.distribute` strategies by name, and their checks."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

import tensorflow as tf

from use_st5.losses.task_loss import Gather


@functools.cache
def shared_strategy(name: str) -> tf.distribute.Strategy:
    """The strategy of a name as `--strategy` takes it, such as "tpu:NAME"; one for each name.

    A model that was made in the scope of another strategy with this name would not fit.
    """
    kind, _, tpu = name.partition(":")
    return strategy_by_name(kind, tpu=tpu or None)


def strategy_by_name(name: str, *, tpu: str | None = None) -> tf.distribute.Strategy:
    """Makes a strategy; the encoder and the optimizer must be made in its `scope()`.

    - `"one"`: the first GPU, or the CPU.
    - `"mirrored"`: all GPUs of this machine, or else all CPU devices that TensorFlow sees.
    - `"multi_worker"`: several machines, listed in the environment variable `TF_CONFIG` as
      `{"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": 0}}`.
      Every machine runs the same program with its own index. Make the strategy before anything else
      uses TensorFlow.
    - `"tpu"`: a TPU; `tpu` is its name or address, None for the one of this virtual machine.

    Args:
        name: One of the names above.
        tpu: The name or address of the TPU, only for "tpu".
    """
    if name == "one":
        gpu = tf.config.list_physical_devices("GPU")
        return tf.distribute.OneDeviceStrategy("/gpu:0" if gpu else "/cpu:0")
    if name == "mirrored":
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    if name == "multi_worker":
        if '"worker"' not in os.environ.get("TF_CONFIG", ""):
            example = """{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, "task": …}"""
            raise ValueError(f"multi_worker needs TF_CONFIG on every machine, such as {example}")
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name != "tpu":
        words = "one, mirrored, multi_worker or tpu"
        raise ValueError(f"strategy: expected {words}, received {name!r}.")
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu or "local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except Exception as error:  # Of TensorFlow, of Google's client, or of the network.
        problem = "No TPU on this machine" if tpu is None else f"No TPU was found at {tpu!r}"
        # TensorFlow without TPUs lacks the operation that starts one; its message does not help.
        if not isinstance(error, tf.errors.NotFoundError):
            problem += f" ({type(error).__name__}: {str(error)[:200]})"
        raise ValueError(f"{problem}: install tensorflow-tpu, as docs/on_a_tpu.md says.") from error
    return tf.distribute.TPUStrategy(resolver)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process writes files: the only one, the chief, or worker 0."""
    resolver = strategy.cluster_resolver
    if resolver is None or resolver.task_type is None:
        return True
    if resolver.task_type == "worker" and "chief" in resolver.cluster_spec().jobs:
        return False
    return resolver.task_type in ("chief", "worker") and (resolver.task_id or 0) == 0


def has_remote_workers(strategy: tf.distribute.Strategy) -> bool:
    """Whether other processes compute the steps: a `tf.distribute.Server`, the hosts of a TPU.

    The workers of "multi_worker" do not: each runs the program itself.
    """
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return False
    try:
        devices = strategy.extended.worker_devices
    except RuntimeError:  # TensorFlow's default strategy names no devices.
        return False
    jobs = {tf.DeviceSpec.from_string(name).job for name in devices}
    return not jobs <= {None, "localhost"}


def compiles_everything(strategy: tf.distribute.Strategy) -> bool:
    """Whether XLA compiles everything that `strategy.run` runs: on a TPU with one chip or more."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def any_worker(strategy: tf.distribute.Strategy, says: bool) -> bool:
    """Whether `says` is true in any worker of a multi-worker strategy; else, in this process.

    Every worker must call it; the call returns when all workers have called it.
    """
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return says
    return bool(_sum_over_workers(strategy)(tf.constant(float(says))).numpy() > 0)


@functools.cache
def _sum_over_workers(strategy: tf.distribute.Strategy) -> Callable[[tf.Tensor], tf.Tensor]:
    def total(value: tf.Tensor) -> tf.Tensor:
        per_replica = strategy.run(tf.identity, args=(value,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)

    return tf.function(total)


def wait_for_workers(strategy: tf.distribute.Strategy) -> None:
    """Returns when every worker of a multi-worker strategy has called it."""
    any_worker(strategy, False)


class ReplicaGather(Gather):
    """Gathers rows over the replicas of the strategy that runs the caller, with exact gradients.

    Every replica must call it with the same number of rows.
    """

    def __call__(self, rows: tf.Tensor) -> tf.Tensor:
        """The rows of all replicas in replica order, `[rows, …]` → `[replicas · rows, …]`."""
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync
        if replicas == 1:
            return rows
        shape = [replicas * rows.shape[0], *rows.shape[1:]]  # lost in the gather between machines
        return tf.ensure_shape(context.all_gather(rows, axis=0), shape)

    def first_row(self, rows: int | tf.Tensor) -> tf.Tensor:
        """The position of this replica's first row among the gathered rows, int32 scalar."""
        context = tf.distribute.get_replica_context()
        return tf.cast(context.replica_id_in_sync_group, tf.int32) * tf.cast(rows, tf.int32)
