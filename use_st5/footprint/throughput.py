"""Sentences a second by model, batch and length (Sentence-T5 paper, Figure 5)."""

from __future__ import annotations

import dataclasses
import datetime
import gc
import importlib
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import keras
import msgspec
import numpy as np

from use_st5._records import Count, Positive, read_record
from use_st5.evaluation.record import write_json
from use_st5.footprint.measure import OnVisit, processor
from use_st5.models.inference import checked_length, inference, texts_at_once
from use_st5.trainable_encoder import TrainableEncoder

# Sentence-T5's own are 128 tokens and 512 (CPU) or 1,024 sentences.
BATCH_SIZES = (1, 8, 32, 128)
TOKENS = (32, 128)
FRESH = "fresh:"

FORMAT = 1
_LIMIT = 2**24
_FEWEST_CALLS, _MOST_CALLS = 3, 200

Cell = tuple[str, int, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Speed:
    """How fast a model is with one shape of batches.

    Attributes:
        model: As it was named.
        tokens: Ids of every sentence, none of them padding.
        batch_size: Sentences in a call.
        sentences_per_second: Of the median call; None where the batch did not fit into memory.
    """

    model: str
    tokens: Positive
    batch_size: Positive
    sentences_per_second: Annotated[float, msgspec.Meta(gt=0, le=1e12)] | None

    @property
    def cell(self) -> Cell:
        """What a record holds one speed of."""
        return self.model, self.tokens, self.batch_size


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThroughputRecord:
    """What was measured on a machine.

    Attributes:
        created: When it was last added to, ISO 8601 in UTC.
        command: The command line.
        setting: "platform" (the name of the device), "backend", "versions", "dtype", "threads" and
            "cores".
        parameters: Number of weights by model.
        speeds: What was measured.
    """

    created: str
    command: str
    setting: dict[str, Any]
    parameters: dict[str, Count]
    speeds: tuple[Speed, ...]

    def write(self, path: Path) -> None:
        """Writes the record as JSON; the file appears when it is whole."""
        write_json(path, {"format": FORMAT, **dataclasses.asdict(self)})

    @classmethod
    def read(cls, path: Path) -> ThroughputRecord:
        """Reads a record.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It is no record, or one of another format.
        """
        remedy = "Give a record that `use-st5 benchmark --throughput` wrote."
        return read_record(path, cls, remedy=remedy, version=FORMAT, limit=_LIMIT)


def measure_throughput(
    models: Sequence[str],
    path: str | os.PathLike[str],
    *,
    tokens: Sequence[int] = TOKENS,
    batch_sizes: Sequence[int] = BATCH_SIZES,
    dtype: str | None = None,
    threads: int | None = None,
    seconds: float = 2.0,
    on_visit: OnVisit = lambda done, total: None,
    command: str = "",
) -> ThroughputRecord:
    """Measures sentences a second from ids to vectors (Sentence-T5 paper, Figure 5).

    One model after the other is loaded, warmed up on each shape and called for some seconds. It
    runs where Keras does: on TensorFlow's first GPU or the processor, under JAX on its first
    device, a TPU's too. All ids of a batch are drawn at random and none is padding, so that the
    figures say what the arithmetic costs; the way from strings to ids is part of the footprint.

    Args:
        models: Names, folders or checkpoints, as `TrainableEncoder.load` takes them, or
            `fresh:PRESET`: weights that are drawn cost what trained ones cost.
        path: The record; one that is there is continued.
        tokens: Ids of a sentence.
        batch_sizes: Sentences in a call.
        dtype: Keras dtype policy, such as "bfloat16"; None: the model's own.
        threads: Of TensorFlow on a processor; None: as they are. They can be chosen as long as
            TensorFlow has not computed anything in this process.
        seconds: How long each shape is called, at least three times.
        on_visit: Is told how many shapes are done, and how many there will be.
        command: The command line, for the record.

    Raises:
        FileNotFoundError: There is no such model.
        FileExistsError: The record there is of another machine or setting.
        ValueError: An argument is out of range, or a model compares pairs.
        RuntimeError: It is too late to choose threads.
    """
    _check(models, tokens, batch_sizes)
    if threads is not None:
        _use_threads(threads)
    record = _begun(Path(path), _setting(dtype), command)
    shapes = [(length, size) for length in tokens for size in batch_sizes]
    known, total = {speed.cell for speed in record.speeds}, len(models) * len(shapes)
    for place, name in enumerate(models):
        on_visit(place * len(shapes), total)
        missing = [shape for shape in shapes if (name, *shape) not in known]
        if missing:
            encoder = _opened(name, dtype)
            weights = {**record.parameters, name: encoder.model.count_params()}
            record = dataclasses.replace(record, parameters=weights)
            for number, speed in enumerate(_speeds(name, encoder, missing, seconds), start=1):
                record = dataclasses.replace(record, speeds=(*record.speeds, speed), created=_now())
                record.write(Path(path))
                on_visit(place * len(shapes) + number, total)
            del encoder
            keras.backend.clear_session()
            gc.collect()
    on_visit(total, total)
    return record


def _check(models: Sequence[str], tokens: Sequence[int], batch_sizes: Sequence[int]) -> None:
    if not models or not tokens or not batch_sizes or min(*tokens, *batch_sizes) < 1:
        raise ValueError(
            "Expected models, and tokens and batch sizes of at least 1, received "
            f"{[*models]}, {[*tokens]} and {[*batch_sizes]}."
        )


def _opened(name: str, dtype: str | None) -> TrainableEncoder:
    if name.startswith(FRESH):
        return TrainableEncoder.fresh(name.removeprefix(FRESH), dtype=dtype)
    encoder = TrainableEncoder.load(name, dtype=dtype)
    if texts_at_once(encoder.model) != 1:
        raise ValueError(f"{name}: expected an encoder of single texts, received one of pairs.")
    return encoder


def _speeds(
    name: str, encoder: TrainableEncoder, shapes: Sequence[tuple[int, int]], seconds: float
) -> Iterator[Speed]:
    """The speed at each shape; shapes beyond what the model reads are left out."""
    run, draw = inference(encoder.model), np.random.default_rng(0)
    rows, longest = encoder.vectorizer.vocabulary.size, checked_length(encoder.model, None)
    for tokens, size in shapes:
        if longest is not None and tokens > longest:
            continue
        ids = draw.integers(1, rows, (size, tokens), np.int32)
        try:
            found = size / _seconds_of_call(lambda: np.asarray(run(ids)), seconds)  # noqa: B023
        except Exception as error:
            if not _out_of_memory(error):
                raise
            found = None
        yield Speed(model=name, tokens=tokens, batch_size=size, sentences_per_second=found)


def _seconds_of_call(call: Callable[[], Any], seconds: float) -> float:
    """The median of calls after one that makes graphs and fills caches."""
    call()
    times: list[float] = []
    while len(times) < _FEWEST_CALLS or (sum(times) < seconds and len(times) < _MOST_CALLS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return max(statistics.median(times), 1e-9)


def _out_of_memory(error: Exception) -> bool:
    # TensorFlow's ResourceExhaustedError; JAX has one class for all and says it in the text.
    told = f"{type(error).__name__} {error}"
    return isinstance(error, MemoryError) or any(
        sign in told for sign in ("ResourceExhausted", "RESOURCE_EXHAUSTED")
    )


def _begun(path: Path, setting: dict[str, Any], command: str) -> ThroughputRecord:
    """The record that is there, or one without a figure."""
    fresh = ThroughputRecord(
        created=_now(), command=command, setting=setting, parameters={}, speeds=()
    )
    if not path.exists():
        return fresh
    older = ThroughputRecord.read(path)
    if older.setting != setting:
        differ = [key for key in setting if older.setting.get(key) != setting[key]]
        raise FileExistsError(
            f"{path} was measured in another setting ({', '.join(differ)}): choose another folder."
        )
    return dataclasses.replace(older, command=command)


def _setting(dtype: str | None) -> dict[str, Any]:
    backend = keras.backend.backend()
    return {
        "platform": _platform(backend),
        "backend": backend,
        "versions": {
            "python": platform.python_version(),
            "keras": keras.__version__,
            backend: importlib.import_module(backend).__version__,
        },
        "dtype": dtype or "float32",
        "threads": _threads(backend),
        "cores": os.cpu_count(),
    }


def _platform(backend: str) -> str:
    """The name of the device that a model runs on."""
    if backend == "jax":
        import jax

        device = jax.devices()[0]
        return processor() if device.platform == "cpu" else device.device_kind
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return processor()
    return tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU")


def _use_threads(count: int) -> None:
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(count)
        tf.config.threading.set_inter_op_parallelism_threads(count)


def _threads(backend: str) -> int:
    """How many a model may use; 0: as many as there are cores."""
    if backend != "tensorflow":
        return 0
    import tensorflow as tf

    return tf.config.threading.get_intra_op_parallelism_threads()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
