"""Computes the cost of training the paper's Sentence-T5 on v5e slices; nothing is measured.

    python -m benchmarks.tpu_arithmetic
    python -m benchmarks.tpu_arithmetic t5_base --chips 16 --length 128 --utilization 0.5

Batches and steps are those of `sentence_t5 --variant published`; all texts have the full length.
The chip is that of Google's page "TPU v5e" (docs.cloud.google.com/tpu/docs/v5e) as of 2026; options
describe another one. `--utilization`, the part of the peak that a step reaches, is an assumption:
MaxText's page of optimized models names 0.35 to 0.65 for models of 8 to 405 billion weights on v5p
and v6e; short sentences in narrow layers reach less. `--storage` and `--link` are assumptions, too.
`--link` is a quarter of the 400 GB/s that a chip exchanges in both directions, because the corner
chips of a slice that is not a ring have two of the four links.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
from collections.abc import Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from use_st5.models.t5.model import T5_PRESETS, T5Config
from use_st5.models.t5.names import weight_shapes

DIMENSION = 768
_SIZES = ("t5_base", "t5_large", "t5_3b", "t5_11b")
_FLOAT = 4  # bytes of a weight, a moment, a gradient, and an id
_CHECKPOINT_EVERY = 500  # steps, as in the experiment
# The activations of `t5_base` that XLA's compiler for processors holds (6.78 GB with 8,192 tokens a
# device, benchmarks/sharded_memory.py), relative to the numbers that are counted here.
_HELD = 1.25
_FILLED = 0.9  # of a chip's memory; the rest is left for uses that are not counted


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chip:
    """A chip, its part of a machine, and the assumptions about both.

    Attributes:
        peak: FLOP/s in bfloat16.
        utilization: The part of `peak` that a step reaches.
        memory: Bytes.
        link: Bytes/s that a chip sends to others.
        on_host: Number of chips of a virtual machine.
        storage: Bytes/s at which a checkpoint is written.
    """

    peak: float = 197e12
    utilization: float = 0.4
    memory: float = 16e9
    link: float = 100e9
    on_host: int = 8
    storage: float = 1e9


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSize:
    """A stage of training: `steps` batches of `batch` rows, of `texts` texts each."""

    name: str
    steps: int
    batch: int
    texts: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """A step on some chips.

    Attributes:
        rows: Rows of the batch per chip.
        pieces: GradCache's pieces; None if a chip cannot hold the whole model and one row.
        state: Bytes of weights, moments and gradients on a chip.
        activations: Bytes of the activations of a piece, on a chip; None without pieces.
        compute: Seconds of arithmetic.
        exchange: Seconds between chips; None without pieces.
        checkpoint: Seconds to write a checkpoint, divided by the steps between two checkpoints.
    """

    rows: float
    pieces: int | None
    state: float
    activations: float | None
    compute: float
    exchange: float | None
    checkpoint: float

    @property
    def seconds(self) -> float:
        """The sum of all times that are known."""
        return self.compute + (self.exchange or 0.0) + self.checkpoint


def weights(config: T5Config) -> int:
    """Weights of an encoder with its projection."""
    return encoder_weights(config) + config.hidden_dim * DIMENSION


def encoder_weights(config: T5Config) -> int:
    """Weights of the token table and the encoder."""
    return sum(map(math.prod, weight_shapes(config, decoder=False).values()))


def forward_flops(config: T5Config, length: int) -> int:
    """Operations to compute the vector of a text of `length` tokens; a multiply-add counts as two.

    2 · length · (weights of the matrices of all layers) + 4 · length² · (widths of all heads of all
    layers) + 2 · (weights of the projection). Looking up rows takes none.
    """
    norms = (2 * config.num_layers + 1) * config.hidden_dim
    tables = config.vocabulary_size * config.hidden_dim + config.num_buckets * config.num_heads
    matrices = encoder_weights(config) - norms - tables
    attention = 4 * length**2 * config.num_layers * config.num_heads * config.key_value_dim
    return 2 * length * matrices + attention + 2 * config.hidden_dim * DIMENSION


def step_flops(config: T5Config, length: int, *, pieces: bool) -> int:
    """Operations for a text in training: forward, backward (twice forward), GradCache's forward."""
    return (4 if pieces else 3) * forward_flops(config, length)


def activation_bytes(config: T5Config, length: int) -> float:
    """Bytes that a text keeps for its gradient; fewer on a TPU, with half of them in bfloat16.

    In float32, for each layer and token: the input of both sublayers and its norm (4 · width),
    queries, keys, values and their mix (4 · widths of the heads), the inner numbers before and
    after the ReLU or gate, and the scores and weights of attention (2 · length · heads). A quarter
    is added, because XLA's compiler for processors was found to hold so much more.
    """
    inner = 2 if config.activation == "relu" else 4
    numbers = 4 * (config.hidden_dim + config.num_heads * config.key_value_dim)
    numbers += inner * config.intermediate_dim + 2 * length * config.num_heads
    return _HELD * _FLOAT * length * config.num_layers * numbers


def checkpoint_bytes(config: T5Config) -> int:
    """Bytes of weights and Adafactor's moments; Keras stores one per weight, although factored."""
    return 2 * _FLOAT * weights(config)


def step_on(
    chip: Chip, config: T5Config, training: TrainingSize, *, chips: int, length: int
) -> Step:
    """A step of a stage: the whole model on each chip if it fits, or else sharded weights."""
    rows = training.batch / chips
    texts, count = rows * training.texts, weights(config)
    for pieces in (2**power for power in range(int(max(rows, 1)).bit_length())):
        # Weight, moment, gradient; GradCache also holds the sum of the gradients of its pieces.
        state = (3 if pieces == 1 else 4) * _FLOAT * count
        activations = texts / pieces * activation_bytes(config, length)
        if state + activations <= _FILLED * chip.memory:
            break
    else:
        pieces, activations, state = None, None, 4 * _FLOAT * count / chips
    flops = texts * step_flops(config, length, pieces=pieces != 1)
    # A sum over chips sends every number twice. Vectors and ids are gathered, and the gradients of
    # the vectors are summed.
    other_share = (chips - 1) / chips
    gathered_bytes = training.batch * training.texts * _FLOAT * (3 * DIMENSION + length)
    exchanged_bytes = other_share * (2 * _FLOAT * count + gathered_bytes)
    return Step(
        rows=rows,
        pieces=pieces,
        state=state,
        activations=activations,
        compute=flops / (chip.peak * chip.utilization),
        exchange=None if pieces is None else exchanged_bytes / chip.link,
        checkpoint=checkpoint_bytes(config) / chip.storage / _CHECKPOINT_EVERY,
    )


def published_trainings() -> list[TrainingSize]:
    """The stages of the experiment: pairs of questions and answers, then triplets."""
    from experiments.sentence_t5.two_stage import PUBLISHED

    return [
        TrainingSize(
            name=stage.name, steps=stage.args.steps, batch=stage.args.batch_size, texts=texts
        )
        for stage, texts in zip(PUBLISHED, (2, 3), strict=True)
    ]


def table_of_sizes(chip: Chip, sizes: list[str], length: int) -> Iterator[str]:
    """The numbers that depend only on the size of the model, as Markdown."""
    yield (
        "| size | weights, millions | GFLOP a sentence, forward | in a step with GradCache "
        "| sentences/s a chip | a host | its input, MB/s | checkpoint, GB | written in, s |"
    )
    yield "|---" * 9 + "|"
    for name in sizes:
        config = T5_PRESETS[name]
        flops = step_flops(config, length, pieces=True)
        speed = chip.peak * chip.utilization / flops
        size = checkpoint_bytes(config)
        yield (
            f"| {name} | {weights(config) / 1e6:,.0f} | {forward_flops(config, length) / 1e9:,.1f} "
            f"| {flops / 1e9:,.1f} | {speed:,.0f} | {chip.on_host * speed:,.0f} "
            f"| {chip.on_host * speed * length * _FLOAT / 1e6:.2f} | {size / 1e9:.2f} "
            f"| {size / chip.storage:.1f} |"
        )


def table_of_trainings(trainings: list[TrainingSize], length: int) -> Iterator[str]:
    """The sentences and ids that each stage reads, as Markdown."""
    yield "| stage | steps | batch | texts a row | sentences, millions | their ids, GB |"
    yield "|---" * 6 + "|"
    for training in trainings:
        texts = training.steps * training.batch * training.texts
        yield (
            f"| {training.name} | {training.steps:,} | {training.batch:,} | {training.texts} "
            f"| {texts / 1e6:,.1f} | {texts * length * _FLOAT / 1e9:,.1f} |"
        )


def table_of_slices(
    chip: Chip, sizes: list[str], chips: list[int], length: int, trainings: list[TrainingSize]
) -> Iterator[str]:
    """A step of the first stage on each number of chips, and the duration of each stage."""
    durations = " | ".join(training.name for training in trainings)
    yield (
        "| size | chips | hosts | rows a chip | GradCache pieces | weights, moments, gradients, GB "
        f"| activations, GB | ms a step: arithmetic | exchange | checkpoint | {durations} |"
    )
    yield "|---" * (10 + len(trainings)) + "|"
    for name in sizes:
        for number in chips:
            steps = [
                step_on(chip, T5_PRESETS[name], training, chips=number, length=length)
                for training in trainings
            ]
            step = steps[0]
            activation_cell = "" if step.activations is None else f"{step.activations / 1e9:.2f}"
            exchange_cell = "" if step.exchange is None else f"{1e3 * step.exchange:.1f}"
            durations = " | ".join(
                _time(training.steps * each.seconds)
                for training, each in zip(trainings, steps, strict=True)
            )
            yield (
                f"| {name} | {number} | {-(-number // chip.on_host)} | {step.rows:g} "
                f"| {step.pieces or 'cut'} | {step.state / 1e9:.2f} | {activation_cell} "
                f"| {1e3 * step.compute:,.1f} | {exchange_cell} | {1e3 * step.checkpoint:.1f} "
                f"| {durations} |"
            )


def _time(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s"


def main() -> None:
    """Reads the arguments, computes and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", default=_SIZES, help="T5's presets, such as t5_base")
    parser.add_argument("--chips", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--length", type=int, default=64, help="tokens of a text")
    units = {"peak": 1e12, "utilization": 1, "memory": 1e9, "link": 1e9, "storage": 1e9}
    for name, unit in units.items():
        value = getattr(Chip(), name) / unit
        parser.add_argument(f"--{name}", type=float, default=value, help=f"in {unit:.0e}")
    arguments = parser.parse_args()
    if unknown := {*arguments.sizes} - {*T5_PRESETS}:
        parser.error(f"expected some of {', '.join(T5_PRESETS)}, received {', '.join(unknown)}")
    if min(*arguments.chips, arguments.length, *(getattr(arguments, name) for name in units)) <= 0:
        parser.error("expected numbers above 0")
    chip = Chip(**{name: getattr(arguments, name) * unit for name, unit in units.items()})
    sizes, trainings = [*arguments.sizes], published_trainings()
    print(*table_of_trainings(trainings, arguments.length), sep="\n", end="\n\n")
    print(*table_of_sizes(chip, sizes, arguments.length), sep="\n", end="\n\n")
    print(*table_of_slices(chip, sizes, arguments.chips, arguments.length, trainings), sep="\n")


if __name__ == "__main__":
    main()
