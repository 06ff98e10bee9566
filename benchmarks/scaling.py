"""Measures the input and the exchange of vectors that more chips need, as far as one machine can.

    python -m benchmarks.scaling input
    python -m benchmarks.scaling gather

`input`: the sentences per second that can be read from record files (`BatchFiles`), from arrays,
and from strings that are tokenized on the way. They are compared with the sentences per second that
training steps of some sizes use on this machine, and would use on a v5e chip (computed,
`benchmarks/tpu_arithmetic.py`). The sentences per second of processor time of a core show how many
cores of a host a chip needs.

`gather`: the time of a step of pairs on 1, 2, 4 and 8 replicas, which are parts of this machine's
processor and share one batch, and the time of the exchange that the in-batch softmax needs in it:
vectors and ids forward, gradients back. Each number is measured in a fresh process. With more
replicas each has fewer cores, so only the share of the exchange is meaningful; between real chips
the same bytes travel over other links.

All times are medians; each part takes some minutes on two cores. `benchmarks/checkpoint_speed.py`
measures the cost of a checkpoint.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

if TYPE_CHECKING:
    from use_st5.data.arrays import ArrayData

ROOT = Path(__file__).resolve().parents[1]
_IDS = 32_000

Times = tuple[float, float]


def main() -> None:
    """Reads the arguments, measures and prints tables in Markdown."""
    options = arguments().parse_args()
    if options.part == "gather" and options.measure:
        sys.stdout.write(json.dumps(gathered(options)) + "\n")
        return
    print(f"{environment()}; medians of {options.repeats}\n", flush=True)
    for line in input_tables(options) if options.part == "input" else gather_table(options):
        print(line, flush=True)


def arguments() -> argparse.ArgumentParser:
    """The options of the two parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)
    of_input = parts.add_parser("input", help="sentences a second in, beside what a step takes")
    of_input.add_argument("--sizes", nargs="+", default=["t5_mini_en", "t5_small", "t5_base"])
    of_input.add_argument("--batches", type=int, default=100, help="that are read in a turn")
    of_input.add_argument("--rows", type=int, default=256, help="pairs of a batch that is read")
    of_input.add_argument("--step_rows", type=int, default=8, help="pairs of a step")
    of_gather = parts.add_parser("gather", help="the cost of gathering, by number of replicas")
    of_gather.add_argument("--replicas", type=int, nargs="+", default=[1, 2, 4, 8])
    of_gather.add_argument("--size", default="t5_mini_en")
    of_gather.add_argument("--rows", type=int, default=64, help="pairs of a batch")
    of_gather.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    for part in (of_input, of_gather):
        part.add_argument("--length", type=int, default=64, help="tokens of a text")
        part.add_argument("--steps", type=int, default=1, help="in a turn")
        part.add_argument("--repeats", type=int, default=5, help="turns")
    return parser


def environment() -> str:
    """The processor, its cores and the versions of the software, as text."""
    from experiments.use.figure_2 import processor

    versions = ", ".join(f"{name} {version(name)}" for name in ("tensorflow", "keras"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{processor()}, {cores} cores; Python {platform.python_version()}, {versions}"


def timed(call: Callable[[], object], repeats: int) -> Times:
    """Medians of the seconds and the processor seconds of a call, after one warm-up call."""
    call()
    turns = []
    for _ in range(repeats):
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        call()
        turns.append((time.perf_counter() - wall_start, time.process_time() - cpu_start))
    wall, cores = (statistics.median(column) for column in zip(*turns, strict=True))
    return max(wall, 1e-9), max(cores, 1e-9)


def input_tables(options: argparse.Namespace) -> Iterator[str]:
    """Sentences per second of each source, then compared with the step of each size."""
    import keras

    from benchmarks.tpu_arithmetic import Chip, step_flops
    from use_st5.models.t5.model import T5_PRESETS

    yield "| source | sentences/s | by a core |\n|---|---|---|"
    cores = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, read in sources(options, folder).items():
            sentences = 2 * options.rows * options.batches
            wall, work = timed(read, options.repeats)
            cores[name] = sentences / work
            yield f"| {name} | {sentences / wall:,.0f} | {cores[name]:,.0f} |"
    yield (
        "\n| size | a step here takes, sentences/s | a v5e chip takes (computed) | source "
        "| a core's to the step's | cores that feed a chip |"
    )
    yield "|---" * 6 + "|"
    chip = Chip()
    for size in options.sizes:
        trainer = trainer_of(size, options.step_rows, options.length)
        wall, _ = timed(more_steps(trainer, options.steps), options.repeats)
        step_speed = 2 * options.step_rows * options.steps / wall
        flops = step_flops(T5_PRESETS[size], options.length, pieces=False)
        chip_speed = chip.peak * chip.utilization / flops
        for name, speed in cores.items():
            yield (
                f"| {size} | {step_speed:,.1f} | {chip_speed:,.0f} | {name} "
                f"| {speed / step_speed:,.0f} | {chip_speed / speed:.2g} |"
            )
        del trainer
        keras.backend.clear_session()
        gc.collect()


def sources(options: argparse.Namespace, folder: str) -> dict[str, Callable[[], None]]:
    """Name → a function that reads the first `batches` batches of pairs from that source."""
    import tensorflow as tf

    from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
    from use_st5.training.batch_files import BatchFiles
    from use_st5.training.tensorflow_step import array_dataset

    data = pairs(options.rows * options.batches, options.length)
    files = BatchFiles(
        folder, "pairs", data, columns=[*data.arrays], batch_size=options.rows, seed=0
    )
    files.write(0, options.batches)
    tokenizer = SentencePieceTokenizer()
    words = (ROOT / "LICENSE").read_text(encoding="utf-8").split()
    starts = np.random.default_rng(0).integers(0, len(words) - 40, 2 * len(data))
    texts = tf.data.Dataset.from_tensor_slices(
        [" ".join(words[start : start + 40]) for start in starts]
    )
    streams = {
        "files": files.dataset(0, options.batches),
        "arrays": array_dataset(data, options.rows, seed=0),
        "strings": texts.batch(2 * options.rows)
        .map(lambda text: tokenizer.padded(text, options.length), tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE),
    }

    def reader(stream: tf.data.Dataset) -> Callable[[], None]:
        def read() -> None:
            for _ in stream.take(options.batches):
                pass

        return read

    return {name: reader(stream) for name, stream in streams.items()}


def pairs(examples: int, length: int) -> ArrayData:
    """Random pairs of texts, without padding."""
    from use_st5.data.arrays import ArrayData

    draw = np.random.default_rng(0)
    shape = (examples, length)
    return ArrayData(
        {name: draw.integers(1, _IDS, shape, np.int32) for name in ("anchor", "positive")}
    )


def trainer_of(size: str, rows: int, length: int, strategy: Any = None) -> Any:
    """A trainer of pairs, as in the experiment `sentence_t5`, but with plain SGD."""
    import keras

    from use_st5.losses.contrastive_loss import ContrastiveLoss
    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.training.arguments import TrainingArguments
    from use_st5.training.strategies import strategy_by_name
    from use_st5.training.task import Task
    from use_st5.training.tensorflow_step import TensorFlowLoop

    strategy = strategy or strategy_by_name("one")
    with strategy.scope():
        encoder = SentenceT5.from_preset(size)
        encoder.build()
        optimizer = keras.optimizers.SGD(1e-3)
    task = Task(
        "pairs", ContrastiveLoss(bidirectional=True), pairs(4 * rows, length), batch_size=rows
    )
    # One replica is compiled, as TensorFlow can compile no more.
    args = TrainingArguments(
        steps_per_execution=1, jit_compile=strategy.num_replicas_in_sync == 1, evaluations=1
    )
    return TensorFlowLoop(encoder, [task], optimizer, args, strategy=strategy, progress=False)


def more_steps(trainer: Any, steps: int) -> Callable[[], object]:
    """A function that trains for `steps` further steps in each call."""
    return lambda: trainer.run(trainer.history.step + steps)


def gather_table(options: argparse.Namespace) -> Iterator[str]:
    """A row for each number of replicas, each measured in a fresh process."""
    yield "| replicas | ms a step | to one's | gathering, ms | part of the step | KiB a replica |"
    yield "|---" * 6 + "|"
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"}
    first = None
    for replicas in options.replicas:
        command = [sys.executable, "-m", "benchmarks.scaling", *sys.argv[1:], "--measure"]
        command += ["--replicas", str(replicas)]
        process = subprocess.run(
            command, env=variables, capture_output=True, text=True, check=False
        )
        if process.returncode:
            raise RuntimeError(f"{replicas} replicas failed:\n{process.stderr[-2000:]}")
        result = json.loads(process.stdout.splitlines()[-1])
        first = first or result["step"]
        yield (
            f"| {replicas} | {1e3 * result['step']:,.1f} | {result['step'] / first:.2f} "
            f"| {1e3 * result['gather']:.2f} | {result['gather'] / result['step']:.2%} "
            f"| {result['bytes'] / 1024:,.0f} |"
        )


def gathered(options: argparse.Namespace) -> dict[str, float]:
    """Seconds of a step and of its gathering, and the bytes that a replica has afterwards."""
    import tensorflow as tf

    from use_st5.training.strategies import ReplicaGather, strategy_by_name

    (replicas,) = options.replicas
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * replicas,
    )
    strategy = strategy_by_name("mirrored")
    trainer = trainer_of(options.size, options.rows, options.length, strategy)
    step, _ = timed(more_steps(trainer, options.steps), options.repeats)
    gather, width = ReplicaGather(), trainer.encoder.dimension
    rows = options.rows // replicas

    def exchange() -> list[tf.Tensor]:
        """Gathers vectors and ids of anchors and positives as the loss does, with gradients."""
        tensors = []
        for seed in range(2):
            # Made on each replica: a tensor that all replicas share would not be gathered.
            vectors = tf.random.stateless_uniform([rows, width], [seed, 0])
            ids = tf.ones([rows, options.length], tf.int32)
            with tf.GradientTape() as tape:
                tape.watch(vectors)
                loss = tf.reduce_sum(gather(vectors) ** 2)
            tensors += [tape.gradient(loss, vectors), gather(ids)]
        return tensors

    graph = tf.function(lambda: strategy.run(exchange))
    gather_seconds, _ = timed(graph, 20 * options.repeats)
    size = 2 * options.rows * (2 * 4 * width + 4 * options.length)
    return {"step": step, "gather": gather_seconds, "bytes": size}


if __name__ == "__main__":
    main()
