"""What a contrastive batch takes of memory, whole and in pieces. Linux.

    python benchmarks/gradient_cache_memory.py [--batch 512] [--pieces 1 4 16] [--layers 4]

A T5 encoder of random weights learns pairs for some steps, in a fresh process for each number of
pieces (the trainer's gradient_cache). The largest resident memory, less what there was before the
first step, stands beside the time of a step and the loss, which the pieces leave as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Reads the arguments, prints a table in Markdown; `--measure` is the child's part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--pieces", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--xla", action="store_true")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        sys.stdout.write(json.dumps(measure(arguments)) + "\n")
        return
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    print("| pieces | memory (MiB) | seconds per step | last loss |\n|---|---|---|---|")
    for pieces in arguments.pieces:
        command = [sys.executable, *sys.argv, "--measure", "--pieces", str(pieces)]
        output = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        )
        found = json.loads(output.stdout.splitlines()[-1])
        print(f"| {pieces} | {found['mib']:.0f} | {found['seconds']:.2f} | {found['loss']:.6f} |")


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """Trains, and says what it took."""
    import keras
    import numpy as np

    from use_st5.losses.contrastive_loss import ContrastiveLoss
    from use_st5.training.array_data import ArrayData
    from use_st5.training.task import Task
    from use_st5.training.trainer import Trainer

    keras.utils.set_random_seed(0)
    encoder = encoder_of(arguments.layers)
    rng = np.random.default_rng(0)
    shape = (arguments.batch, arguments.length)
    pairs = {name: rng.integers(1, 1000, shape).astype(np.int32) for name in ("anchor", "positive")}
    task = Task("pairs", ContrastiveLoss(), ArrayData(pairs), batch_size=arguments.batch)
    options = {"steps_per_call": 1, "progress": False, "jit_compile": arguments.xla}
    (pieces,) = arguments.pieces
    optimizer = keras.optimizers.SGD(1e-3)
    trainer = Trainer(encoder, [task], optimizer, gradient_cache=pieces, **options)
    before = peak()
    trainer.run(1)
    start = time.perf_counter()
    history = trainer.run(arguments.steps)
    seconds = (time.perf_counter() - start) / (arguments.steps - 1)
    return {"mib": peak() - before, "seconds": seconds, "loss": history.records[-1]["loss"]}


def encoder_of(layers: int) -> keras.Model:
    """Sentence-T5, narrow; without dropout, whose masks would be those of a piece."""
    from use_st5.models.t5.model import T5Config
    from use_st5.models.t5.sentence_t5 import SentenceT5

    widths = {"hidden_dim": 256, "intermediate_dim": 1024, "num_heads": 4}
    config = T5Config(vocabulary_size=1000, num_layers=layers, **widths)
    encoder = SentenceT5(config, projection_dim=None)
    encoder.build((None, None))
    return encoder


def peak() -> float:
    """The largest resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
