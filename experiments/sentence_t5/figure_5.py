"""Sentences per second by model, batch size and length: Figure 5 of the Sentence-T5 paper.

    python -m experiments.sentence_t5.figure_5 fresh:t5_small fresh:t5_base --out OUT
    KERAS_BACKEND=jax python -m experiments.sentence_t5.figure_5 use_transformer_en --out OUT

MODELS are names, folders or checkpoints, as `TrainableEncoder.load` takes them, or `fresh:PRESET`
for random weights, which take as much time as trained ones. The time is from ids to vectors. All
ids of a batch are random, without padding. The model runs on the device of Keras's backend: with
TensorFlow the first GPU or the processor, with JAX its first device. Each shape is called for some
seconds, at least three times, after one call that compiles; the median counts. OUT gets
`throughput.json`, `throughput.md`, and, if matplotlib is installed, a plot for each length. The
paper's own shapes are 128 tokens and batches of 512 (CPU) or 1,024 sentences.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from use_st5 import TrainableEncoder
from use_st5.io import atomic_path
from use_st5.models import family_of

FEWEST_CALLS, MOST_CALLS = 3, 200


def measure(
    model: str, shapes: Sequence[tuple[int, int]], seconds: float, dtype: str | None
) -> Iterator[dict[str, Any]]:
    """The speed of a model at each shape; shapes longer than the model reads are left out.

    Args:
        model: A model as on the command line.
        shapes: Pairs (tokens, batch size).
        seconds: The time for which each shape is called.
        dtype: Keras dtype policy; None: the model's own.

    Yields:
        "model", "parameters", "tokens", "batch_size" and "sentences_per_second", which is None
        if the batch did not fit into memory.
    """
    load = TrainableEncoder.fresh if model.startswith("fresh:") else TrainableEncoder.load
    encoder = load(model.removeprefix("fresh:"), dtype=dtype)
    run, draw = compiled(encoder.model), np.random.default_rng(0)
    longest = family_of(encoder.model).max_tokens(encoder.model)
    for tokens, size in shapes:
        if longest is not None and tokens > longest:
            continue
        ids = draw.integers(1, encoder.tokenizer.vocabulary.size, (size, tokens), np.int32)
        try:
            speed = size / median_seconds(lambda: np.asarray(run(ids)), seconds)  # noqa: B023
        except Exception as error:
            # TensorFlow's ResourceExhaustedError; JAX has one class for all errors.
            if "exhausted" not in f"{type(error).__name__} {error}".lower():
                raise
            speed = None
        shape = {"tokens": tokens, "batch_size": size, "sentences_per_second": speed}
        yield {"model": model, "parameters": encoder.model.count_params(), **shape}


def compiled(model: keras.Model) -> Callable[[np.ndarray], Any]:
    """Ids → vectors, without dropout: one graph for all shapes, or under JAX one for each."""
    if keras.backend.backend() != "tensorflow":
        return model.predict_on_batch
    import tensorflow as tf

    signature = [tf.TensorSpec([None, None], tf.int32)]
    return tf.function(lambda ids: model(ids, training=False), signature, autograph=False)


def median_seconds(call: Callable[[], Any], seconds: float) -> float:
    """The median duration of calls, after one call that makes graphs and fills caches."""
    call()
    times: list[float] = []
    while len(times) < FEWEST_CALLS or (sum(times) < seconds and len(times) < MOST_CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return max(statistics.median(times), 1e-9)


def setting(dtype: str | None, threads: int | None) -> dict[str, Any]:
    """The device, the versions, the number format and the threads (0: as many as cores)."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        kind = jax.devices()[0].device_kind
    else:
        import tensorflow as tf

        gpus = tf.config.list_physical_devices("GPU")
        details = tf.config.experimental.get_device_details(gpus[0]) if gpus else {}
        kind = details.get("device_name", "cpu")
    return {
        "platform": kind if kind != "cpu" else platform.processor() or platform.machine(),
        "backend": backend,
        "versions": {
            "keras": keras.__version__,
            backend: importlib.import_module(backend).__version__,
        },
        "dtype": dtype or "float32",
        "threads": threads or 0,
        "cores": os.cpu_count(),
    }


def table(record: Mapping[str, Any]) -> str:
    """A Markdown table: a row for each model and length, a column for each batch size."""
    speeds = record["speeds"]
    sizes = sorted({entry["batch_size"] for entry in speeds})
    heads = ["model", "parameters", "tokens", *(f"batch of {size}" for size in sizes)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    rows: dict[tuple[str, str, int], dict[int, str]] = {}
    for entry in speeds:
        row = (entry["model"], f"{entry['parameters'] / 1e6:,.1f} M", entry["tokens"])
        speed = entry["sentences_per_second"]
        cell = "no room" if speed is None else f"{speed:,.{0 if speed >= 100 else 2}f}"
        rows.setdefault(row, {})[entry["batch_size"]] = cell
    for row, cells in rows.items():
        values = [*map(str, row), *(cells.get(size, "") for size in sizes)]
        lines.append(f"| {' | '.join(values)} |")
    settings = record["setting"]
    where = (
        f"{settings['platform']}, {settings['backend']} "
        f"{settings['versions'][settings['backend']]}, {settings['dtype']}"
    )
    return f"Sentences per second, from ids to vectors: {where}.\n\n" + "\n".join(lines) + "\n"


def plot(record: Mapping[str, Any], folder: Path) -> None:
    """Draws `throughput_TOKENS.png` for each length."""
    from matplotlib.figure import Figure

    for tokens in sorted({entry["tokens"] for entry in record["speeds"]}):
        axes = (figure := Figure()).subplots()
        points: dict[str, list[tuple[int, float]]] = {}
        for entry in record["speeds"]:
            if entry["tokens"] == tokens and entry["sentences_per_second"] is not None:
                point = (entry["batch_size"], entry["sentences_per_second"])
                points.setdefault(entry["model"], []).append(point)
        for model, model_points in points.items():
            axes.loglog(*zip(*sorted(model_points), strict=True), marker="o", label=model)
        axes.set_xlabel("sentences in a batch")
        axes.set_ylabel(f"sentences of {tokens} tokens per second")
        axes.legend()
        figure.savefig(folder / f"throughput_{tokens}.png")


def numbers(text: str) -> tuple[int, ...]:
    """Numbers with commas between them."""
    return tuple(int(each) for each in text.split(","))


def run(
    models: Sequence[str],
    output: Path,
    *,
    tokens: Sequence[int] = (32, 128),
    batch_sizes: Sequence[int] = (1, 8, 32, 128),
    dtype: str | None = None,
    threads: int | None = None,
    seconds: float = 2.0,
) -> str:
    """Measures the models in turn and returns the table; writes the record after each shape."""
    if threads and keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    record: dict[str, Any] = {"created": created, "command": " ".join(sys.argv)}
    record |= {"setting": setting(dtype, threads), "speeds": []}
    shapes = [(length, size) for length in tokens for size in batch_sizes]
    for model in models:
        for speed in measure(model, shapes, seconds, dtype):
            record["speeds"].append(speed)
            with atomic_path(output / "throughput.json") as temporary:
                temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        keras.backend.clear_session()
    text = table(record)
    (output / "throughput.md").write_text(text, encoding="utf-8")
    if importlib.util.find_spec("matplotlib"):
        plot(record, output)
    return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    parser.add_argument("-o", "--out", dest="output", required=True, type=Path)
    parser.add_argument("--tokens", type=numbers, default=(32, 128))
    parser.add_argument("--batch-sizes", type=numbers, default=(1, 8, 32, 128))
    parser.add_argument("--dtype", help="bfloat16 or mixed_bfloat16; default: the model's")
    parser.add_argument("--threads", type=int, help="of TensorFlow on a processor")
    parser.add_argument("--seconds", type=float, default=2.0)
    print(run(**vars(parser.parse_args())))
