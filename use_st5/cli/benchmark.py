"""`use-st5 benchmark`: sentences per second and memory of models on this machine."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Annotated, Any

import typer

from use_st5.cli.models import load_encoder, start_tensorflow
from use_st5.cli.output import echo, manual, print_table, waiting
from use_st5.hub.model_manifest import ModelManifest
from use_st5.hub.model_names import bundled_folder, bundled_names, model_folder

HELP = manual(
    """Measure sentences per second and memory of models on this machine.

    MODELS are names of bundled models or folders of SavedModels; by default all bundled ones that
    this installation can load. The sentences are random words; a model that reads 128 tokens cuts
    longer ones. The device is TensorFlow's first GPU, or the CPU.

    Each model runs in its own process. The memory is the largest that this process had, including
    TensorFlow.""",
    "use-st5 benchmark",
    "use-st5 benchmark use_dan_en path/to/my_model --lengths 10,100,500",
    "use-st5 benchmark --batch-size 1 --threads 1 --json",
)
WORDS = "a good day for all the people who live in this old house by the water and go to work"


def benchmark(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODELS]...", help="Names or folders. Default: the bundled ones."),
    ] = None,
    lengths: Annotated[
        str, typer.Option("--lengths", "-l", help="Words of a sentence, with commas.")
    ] = "10,100",
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences in one call of a model.")] = 32,
    threads: Annotated[int | None, typer.Option(min=1, help="Default: as many as cores.")] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="Time of each length.")] = 3.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measures sentences per second and memory of models on this machine."""
    parts = lengths.split(",")
    if not all(part.strip().isdecimal() and int(part) for part in parts):
        raise typer.BadParameter(f"--lengths expects numbers such as 10,100, received {lengths!r}.")
    words = [int(part) for part in parts]
    if not models:  # Some tokenizers are in a package that may be missing.
        has_text = importlib.util.find_spec("tensorflow_text") is not None
        manifests = {name: ModelManifest.read(bundled_folder(name)) for name in bundled_names()}
        models = [
            name
            for name, each in manifests.items()
            if has_text or (each and "sentencepieces" not in str(each.tokenizer))
        ]
    folders = [(model, str(model_folder(model))) for model in models]
    results = [
        {"model": model, **_in_a_process(folder, words, batch_size, threads, seconds)}
        for model, folder in folders
    ]
    if as_json:
        echo(json.dumps(results, ensure_ascii=False))
        return
    heads = [*(f"{n} words, sentences/s" for n in words), "memory, MB"]
    rows = [
        [
            result["model"],
            *(f"{speed:,.0f}" for speed in result["sentences_per_second"].values()),
            f"{result['memory_mb']:,.0f}",
        ]
        for result in results
    ]
    print_table(["model", *heads], rows)


def _in_a_process(folder: str, *arguments: Any) -> dict[str, Any]:
    """Runs `measure` in a new process, which ends with the call, and returns its result."""
    context = multiprocessing.get_context("spawn")
    ignored = (signal.SIGINT, signal.SIG_IGN)  # Only this process handles Ctrl-C.
    pool = ProcessPoolExecutor(1, context, initializer=signal.signal, initargs=ignored)
    try:
        return pool.submit(measure, folder, *arguments).result()
    except BrokenProcessPool as error:
        raise ValueError(f"{folder}: its process ended; memory may have run out") from error
    finally:
        for process in multiprocessing.active_children():
            process.kill()
        pool.shutdown()


def measure(
    folder: str, lengths: list[int], batch_size: int, threads: int | None, seconds: float
) -> dict[str, Any]:
    """Measures one model in this process; the arguments are those of `benchmark`."""
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)
    start_tensorflow()
    import resource

    import tensorflow as tf

    if threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    encoder = load_encoder(folder)
    speeds, words = {}, WORDS.split()
    for length in lengths:
        texts = [
            " ".join(words[(start + place) % len(words)] for place in range(length))
            for start in range(batch_size)
        ]
        options: dict[str, Any] = {"show_progress": False, "on_truncation": "ignore"}
        with waiting(f"measuring {length} words"):
            encoder.encode(texts, batch_size=batch_size, **options)
            calls, start = 0, time.perf_counter()
            while (passed := time.perf_counter() - start) < seconds:
                encoder.encode(texts, batch_size=batch_size, **options)
                calls += 1
        speeds[length] = calls * batch_size / passed
    # The largest resident memory that this process had.
    unit = 1 if sys.platform == "darwin" else 1024
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    return {"sentences_per_second": speeds, "memory_mb": memory}
