"""The memory per device to train Sentence-T5 on many devices, found without allocating weights.

    pip install "use_st5[jax]"
    python -m benchmarks.sharded_memory t5_3b --devices 64 --model 8 --batch 512
    python -m benchmarks.sharded_memory t5_11b --devices 256 --model 8 --batch 1024 --lora 8
    python -m benchmarks.sharded_memory t5_small --devices 1 --batch 128 --run

The whole step (two texts of 64 tokens a row, in-batch softmax, gradients, Adafactor) is compiled
with abstract arrays for simulated devices, as `JaxLoop` compiles it. XLA then reports what a device
holds: arguments (weights, moments, the batch), results that do not reuse an argument's memory, and
temporaries. The compiler is the one for processors: that of a TPU orders and fuses operations in
its own way, and may need fewer or more temporaries. With `--run` a small size is also trained for
two steps, and the row ends with the growth of the process's memory per device.
"""

from __future__ import annotations

import argparse
import os
import time
from types import SimpleNamespace
from typing import Any
from unittest import mock

from benchmarks.convert_memory import memory


def main() -> None:
    """Reads the arguments, compiles, and prints a row of a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("preset", help="a shape of T5, such as t5_3b")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--model", type=int, default=1, help="devices along which weights are cut")
    parser.add_argument("--batch", type=int, default=512, help="rows, of two texts each")
    parser.add_argument("--length", type=int, default=64, help="tokens of a text")
    parser.add_argument("--pieces", type=int, default=1, help="GradCache: pieces of the batch")
    parser.add_argument("--lora", type=int, default=0, help="rank of adapters; 0: all weights")
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--run", action="store_true", help="train, too: weights are held then")
    args = parser.parse_args()
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={args.devices}"
    growth_cell = f"{measured(args) / 1e9:.2f} GB | " if args.run else ""
    start = time.monotonic()
    analysis = compiled(args).memory_analysis()
    gigabytes = {
        name: getattr(analysis, f"{name}_size_in_bytes") / 1e9
        for name in ("argument", "output", "alias", "temp")
    }
    results = gigabytes["output"] - gigabytes["alias"]
    total = gigabytes["argument"] + results + gigabytes["temp"]
    print(
        f"| {args.preset} | {f'LoRA {args.lora}' if args.lora else 'all'} | {args.batch} "
        f"| {args.devices} | {args.devices // args.model} x {args.model} | {args.pieces} "
        f"| {gigabytes['argument']:.2f} | {results:.2f} | {gigabytes['temp']:.2f} | {total:.2f} "
        f"| {growth_cell}{time.monotonic() - start:.0f} s |"
    )


def compiled(args: Any) -> Any:
    """The step of a Sentence-T5, compiled for abstract arrays that are sharded by the layout."""
    import jax
    import keras
    import numpy as np

    from use_st5.data.arrays import ArrayData
    from use_st5.losses.contrastive_loss import ContrastiveLoss
    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.training.arguments import TrainingArguments
    from use_st5.training.jax_loop import JaxStep, sharded
    from use_st5.training.task import Task

    distribution = sharded(model=args.model)
    keras.distribution.set_distribution(distribution)
    ids = np.ones((args.batch, args.length), np.int32)
    task = Task("pairs", ContrastiveLoss(), ArrayData({"anchor": ids, "positive": ids}))
    # Variables that are made in this scope have a shape and no value.
    optimizer = keras.optimizers.Adafactor(1e-3)
    with keras.StatelessScope(initialize_variables=False):
        encoder = SentenceT5.from_preset(args.preset, dtype=args.dtype)
        encoder.build()
        if args.lora:
            from use_st5.models.lora import apply_lora

            apply_lora(encoder, rank=args.lora, seed=0)
        task.loss.build((None, encoder.dimension))
        trainable = [*encoder.trainable_variables, *task.loss.trainable_variables]
        for variable in trainable:  # The layout that values would have; the moments copy it.
            variable._layout = distribution.get_variable_layout(variable)
        # For weights that it does not factor, Keras's Adafactor makes variables that have a value.
        backend = SimpleNamespace(Variable=_without_value)
        with mock.patch("keras.src.optimizers.adafactor.backend", backend):
            optimizer.build(trainable)
    step = JaxStep(
        encoder,
        task,
        optimizer,
        TrainingArguments(batch_size=args.batch, micro_batch_size=args.batch // args.pieces),
        trainable=trainable,
    )

    def abstract(variable: Any) -> Any:
        layout = variable._layout or distribution.get_variable_layout(variable)
        return jax.ShapeDtypeStruct(variable.shape, variable.dtype, sharding=layout.backend_layout)

    values = [abstract(variable) for variable in step._changing]
    frozen = [abstract(variable) for variable in step._frozen]
    rows = distribution.get_data_layout(ids.shape).backend_layout
    batch = {
        name: jax.ShapeDtypeStruct(ids.shape, "int32", sharding=rows)
        for name in ("anchor", "positive")
    }
    return step.program(values).lower(values, frozen, batch).compile()


def measured(args: Any) -> float:
    """The bytes per device by which training for two steps increases the process's memory."""
    import keras
    import numpy as np

    from use_st5.data.arrays import ArrayData
    from use_st5.losses.contrastive_loss import ContrastiveLoss
    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.training.arguments import TrainingArguments
    from use_st5.training.jax_loop import JaxLoop, sharded
    from use_st5.training.task import Task

    keras.distribution.set_distribution(sharded(model=args.model))
    ids = np.random.default_rng(0).integers(1, 32_000, (2, 2 * args.batch, args.length))
    data = ArrayData(dict(zip(("anchor", "positive"), ids.astype(np.int32), strict=True)))
    task = Task("pairs", ContrastiveLoss(), data, batch_size=args.batch)
    before = memory("VmRSS")
    encoder = SentenceT5.from_preset(args.preset, dtype=args.dtype)
    encoder.build()
    optimizer = keras.optimizers.Adafactor(1e-3)
    arguments = TrainingArguments(
        batch_size=args.batch, micro_batch_size=args.batch // args.pieces, steps_per_execution=1
    )
    JaxLoop(encoder, [task], optimizer, arguments, progress=False).run(2)
    return (memory("VmHWM") - before) / args.devices


def _without_value(value: float, **options: Any) -> Any:
    import keras

    return keras.Variable("zeros", shape=(), **options)


if __name__ == "__main__":
    main()
