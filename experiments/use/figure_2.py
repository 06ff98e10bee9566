"""Compute time and memory against the length of a text: Figure 2 of the USE paper.

    python -m experiments.use.figure_2 use_dan_en use_transformer_en --out OUT

MODELS are names of bundled models or folders that use_st5 exported; ratios are to the first. Each
model runs in its own process. The models are measured in turn, one length after the other, so that
other programs slow them down equally. Two times are measured: from text to vector by `encode`,
which cuts texts that are too long for a model; and from ids to vector, without cuts. The
memory is the parameters and the peak of TensorFlow's tensors in one call on ids. On a CPU only
oneDNN's allocator counts memory, and only blocks of 256 KB and more; without it the memory is null
(TF_ENABLE_ONEDNN_OPTS=1 switches it on). OUT gets `resources.json`, `resources.md`, and, if
matplotlib is installed, a plot of each quantity.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import itertools
import json
import math
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.io import atomic_path

LENGTHS = (10, 20, 40, 60, 80, 100, 128, 192, 256, 384, 512)
# Calls are repeated until they take this long together.
SECONDS, MOST_CALLS = 0.02, 100
# Quantity: its title, and the factor from seconds or bytes to the unit of the title.
QUANTITIES = {
    "text_time": ("text to vector, ms", 1e3),
    "ids_time": ("ids to vector, ms", 1e3),
    "memory": ("parameters + working memory, MB", 1e-6),
}
# Common words, which any English vocabulary knows.
WORDS = (
    "a about after all also an and any as at back be because before but by can come could day do "
    "down even find first for from get give go good great had hand have he her here him his home "
    "house how if in into is it just know large last life like little live long look made make man "
    "many may me men more most much must my name never new no not now number of off old on one only"
)


class Probe:
    """Measures one model in this process.

    Args:
        model: The name of a bundled model, or the folder of an exported one.
        batch_size: Texts in one call.
        threads: Threads of TensorFlow; None leaves TensorFlow as it is.
        gpu: Whether the model runs on the first GPU.
    """

    def __init__(self, model: str, batch_size: int, threads: int | None, *, gpu: bool) -> None:
        import tensorflow as tf

        import use_st5

        if threads:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(threads)
            gpus = tf.config.list_physical_devices("GPU")
            if gpu and not gpus:
                raise ValueError("Expected a GPU, TensorFlow sees none. Measure on the CPU.")
            tf.config.set_visible_devices(gpus[:1] if gpu else [], "GPU")
            if gpu:  # Otherwise the first model would take all memory.
                tf.config.experimental.set_memory_growth(gpus[0], True)
        self.encoder = use_st5.load(model)
        self._embed_ids = self.encoder.model.signatures["ids"]
        self._batch_size = batch_size
        self._device = "GPU:0" if gpu else "CPU:0"

    def facts(self) -> dict[str, Any]:
        """The model's facts for the record; `max_length` is null if the model cuts no text."""
        variables = self.encoder.model.variables
        return {
            "name": self.encoder.name,
            "identity": self.encoder.identity,
            "max_length": self.encoder.max_length,
            "parameters": self.encoder.manifest.parameters if self.encoder.manifest else None,
            "parameter_bytes": sum(v.shape.num_elements() * v.dtype.size for v in variables),
        }

    def visit(self, length: int) -> dict[str, Any]:
        """Measures texts of `length` words once.

        Returns:
            "tokens" of a text; "text_seconds" and "ids_seconds" per text; and "working_bytes", the
            peak above the loaded model in a call on ids (None: TensorFlow does not count it).
        """
        texts = sentences(length, self._batch_size)
        ids = self.ids(texts)
        size = self._batch_size

        def by_text() -> Any:  # "ignore": counting the texts that are cut would take time, too.
            return self.encoder.encode(
                texts, batch_size=size, show_progress=False, on_truncation="ignore"
            )

        def by_ids() -> Any:
            return self._embed_ids(ids=ids)["embeddings"].numpy()

        return {
            "tokens": int(ids.shape[1]),
            "text_seconds": seconds(by_text) / size,
            "ids_seconds": seconds(by_ids) / size,
            "working_bytes": peak_bytes(by_ids, self._device),
        }

    def ids(self, texts: Sequence[str]) -> Any:
        """The ids of texts without cuts, int32 `[batch, length]`."""
        import tensorflow as tf

        rows = [self._row(text.split()) for text in texts]
        padded = np.zeros((len(rows), max(map(len, rows))), np.int32)
        for place, row in enumerate(rows):
            padded[place, : len(row)] = row
        return tf.constant(padded)

    def _row(self, words: list[str]) -> np.ndarray:
        """The ids of a text; if it may have been cut, the joined ids of its two halves."""
        row = self.encoder.model.preprocess([" ".join(words)]).numpy()[0]
        limit = self.encoder.max_length
        if limit is None or len(row) < limit or len(words) == 1:
            return row
        half = len(words) // 2
        return np.concatenate([self._row(words[:half]), self._row(words[half:])])


def sentences(length: int, number: int) -> list[str]:
    """Different random sentences of `length` words, the same for every model."""
    draw = random.Random(length)
    return [" ".join(draw.choices(WORDS.split(), k=length)) for _ in range(number)]


def seconds(call: Callable[[], Any]) -> float:
    """Seconds of one call, after a warm-up and a call that decides how many calls to time."""
    call()
    start = time.perf_counter()
    call()
    first = max(time.perf_counter() - start, 1e-9)
    number = min(MOST_CALLS, math.ceil(SECONDS / first))
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def peak_bytes(call: Callable[[], Any], device: str) -> int | None:
    """The peak of TensorFlow's allocator during a call, above what was allocated before."""
    import tensorflow as tf

    memory = tf.config.experimental
    try:
        memory.reset_memory_stats(device)
        before = memory.get_memory_info(device)["current"]
        call()
        return max(0, memory.get_memory_info(device)["peak"] - before)
    except ValueError:  # "Allocator stats not available"
        return None


_probe: list[Probe] = []  # The probe of the model of this process.


def _open(model: str, batch_size: int, threads: int, gpu: bool) -> dict[str, Any]:
    _probe.append(Probe(model, batch_size, threads, gpu=gpu))
    return _probe[0].facts()


def _visit(length: int) -> dict[str, Any]:
    return _probe[0].visit(length)


def run(
    models: Sequence[str],
    output: Path,
    *,
    lengths: Sequence[int] = LENGTHS,
    batch_size: int = 1,
    threads: int = 1,
    repeats: int = 10,
    device: str = "cpu",
) -> str:
    """Measures the models in turn and returns the table; writes the record in every round."""
    record: dict[str, Any] = {
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": " ".join(sys.argv),
        "setting": {
            "batch_size": batch_size,
            "threads": threads,
            "processor": processor(),
            "cores": os.cpu_count(),
            "device": device,
        },
    }
    points: dict[tuple[int, int], dict[str, Any]] = {}
    with contextlib.ExitStack() as stack:
        pools = [
            stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
            for _ in models
        ]
        record["models"] = [
            pool.submit(_open, model, batch_size, threads, device == "gpu").result()
            for pool, model in zip(pools, models, strict=True)
        ]
        for _ in range(repeats):
            for length, (place, pool) in itertools.product(sorted(lengths), enumerate(pools)):
                visit = pool.submit(_visit, length).result()
                key = {"model": record["models"][place]["name"], "length": length}
                point = points.setdefault((length, place), {**key, "tokens": visit.pop("tokens")})
                for name, value in visit.items():
                    point.setdefault(name, []).append(value)
            record["points"] = list(points.values())
            with atomic_path(output / "resources.json") as temporary:
                temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    text = table(record)
    (output / "resources.md").write_text(text, encoding="utf-8")
    if importlib.util.find_spec("matplotlib"):
        plot(record, output)
    return text


def processor() -> str:
    """The processor's name, on Linux from /proc/cpuinfo: Python knows only the architecture."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def costs(record: Mapping[str, Any], quantity: str) -> dict[str, dict[int, list[float]]]:
    """Model → length → the known costs of the visits, in the quantity's unit."""
    factor = QUANTITIES[quantity][1]
    parameters = {model["name"]: model["parameter_bytes"] for model in record["models"]}
    by_model: dict[str, dict[int, list[float]]] = {name: {} for name in parameters}
    for point in record["points"]:
        values = point.get(quantity.replace("time", "seconds"))
        if quantity == "memory":
            working = point["working_bytes"]
            values = [parameters[point["model"]] + each for each in working if each is not None]
        if values:
            by_model[point["model"]][point["length"]] = [factor * value for value in values]
    return by_model


def crossings(lengths: Sequence[float], ratios: Sequence[float]) -> list[float]:
    """The lengths at which a ratio of costs passes 1.

    Between two lengths the ratio is interpolated linearly with logarithmic axes.
    """
    crossing_lengths = []
    points = zip(map(math.log, lengths), map(math.log, ratios), strict=True)
    for (x, low), (next_x, high) in itertools.pairwise(points):
        if (low > 0) != (high > 0):
            share = low / (low - high)
            crossing_lengths.append(math.exp((1 - share) * x + share * next_x))
    return crossing_lengths


def table(record: Mapping[str, Any]) -> str:
    """Markdown: a row for each length and model, and the lengths at which costs cross."""
    setting = record["setting"]
    text = [
        f"{setting['processor']} ({setting['device']}), batches of {setting['batch_size']}, "
        f"{setting['threads']} thread(s). Costs of one text, median (quartiles), and the ratio to "
        "the first model."
    ]
    by_quantity = {quantity: costs(record, quantity) for quantity in QUANTITIES}
    heads = ["words", "model", "ids"]
    heads += [head for title, _ in QUANTITIES.values() for head in (title, "ratio")]
    text += ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    first = record["models"][0]["name"]
    limits = {model["name"]: model["max_length"] or math.inf for model in record["models"]}
    for point in record["points"]:
        cells = [str(point["length"]), point["model"], str(point["tokens"])]
        for quantity, by_model in by_quantity.items():
            values = by_model[point["model"]].get(point["length"])
            if values is None:
                cells += ["unknown", ""]
                continue
            low, middle, high = np.percentile(values, [25, 50, 75])
            cut = quantity == "text_time" and point["tokens"] > limits[point["model"]]
            cells.append(f"{middle:.3g} ({low:.3g}-{high:.3g})" + (" cut" if cut else ""))
            ratio = _ratio(values, by_model[first].get(point["length"]))
            cells.append("" if ratio is None else f"{ratio:.3g}")
        text.append(f"| {' | '.join(cells)} |")
    text.append("")
    for quantity, by_model in by_quantity.items():
        base = by_model.pop(first)
        for name, curve in by_model.items():
            ratios = {length: _ratio(values, base.get(length)) for length, values in curve.items()}
            known_ratios = {length: ratio for length, ratio in ratios.items() if ratio}
            crossing_lengths = crossings([*known_ratios], [*known_ratios.values()])
            where = ", ".join(f"{length:.0f}" for length in crossing_lengths) or "never"
            title = QUANTITIES[quantity][0]
            text.append(f"- {title}: {name} crosses {first} at this number of words: {where}.")
    return "\n".join(text) + "\n"


def _ratio(values: Sequence[float], base: Sequence[float] | None) -> float | None:
    """The median of the ratios of the visits of the same round; None if the base is unknown."""
    if not base:
        return None
    return statistics.median(a / b for a, b in zip(values, base, strict=False))


def plot(record: Mapping[str, Any], folder: Path) -> None:
    """Draws `QUANTITY_DEVICE.png`; a dotted line shows where a model cuts longer texts."""
    from matplotlib.figure import Figure

    for quantity, (title, _) in QUANTITIES.items():
        axes = (figure := Figure()).subplots()
        for place, (name, curve) in enumerate(costs(record, quantity).items()):
            if not curve:
                continue
            lengths, color = list(curve), f"C{place}"
            low, middle, high = np.percentile(np.asarray([*curve.values()]), [25, 50, 75], axis=1)
            axes.plot(lengths, middle, color=color, marker="o", label=name)
            axes.fill_between(lengths, low, high, color=color, alpha=0.2)
            limit = record["models"][place]["max_length"]
            tokens = [p["tokens"] for p in record["points"] if p["model"] == name]
            if quantity == "text_time" and limit is not None and tokens[-1] > limit:
                axes.axvline(np.interp(limit, tokens, lengths), color=color, linestyle=":")
        axes.set_xlabel("words")
        axes.set_ylabel(title)
        axes.set_ylim(bottom=0)
        if axes.lines:  # A quantity whose costs are unknown has no curve.
            axes.legend()
        figure.savefig(folder / f"{quantity}_{record['setting']['device']}.png")


def numbers(text: str) -> tuple[int, ...]:
    """Numbers with commas between them."""
    return tuple(int(each) for each in text.split(","))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    parser.add_argument("-o", "--out", dest="output", required=True, type=Path)
    parser.add_argument("--lengths", type=numbers, default=LENGTHS, help="words of a text")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=10, help="visits to each model and length")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    print(run(**vars(parser.parse_args())))
