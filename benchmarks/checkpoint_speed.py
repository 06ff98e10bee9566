"""Measures the time to write and to read a checkpoint, by the size of the model.

    python -m benchmarks.checkpoint_speed
    python -m benchmarks.checkpoint_speed t5_large --folder /mnt/disk

A checkpoint holds randomly initialized weights and Adam's two moments of each, as a run saves them.
It is compared, by turns, with a plain file of as many bytes in the same folder. Neither waits for
the disk: the bytes go to the system's file cache, and come from there if it has enough memory. All
times are medians; the ratio is the checkpoint's time to the plain file's.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from benchmarks.scaling import environment
from use_st5.models.bert.model import BERT_PRESETS, SentenceBert
from use_st5.models.t5.model import T5_PRESETS
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.models.use_dan.model import USE_DAN_PRESETS, USEDAN
from use_st5.training.checkpoints import Checkpoints, changing_variables

SIZES = ["use_dan_en", "minilm_l6", "t5_small", "t5_base"]
_MEBIBYTE = 2**20
_KINDS = {
    **dict.fromkeys(USE_DAN_PRESETS, USEDAN),
    **dict.fromkeys(BERT_PRESETS, SentenceBert),
    **dict.fromkeys(T5_PRESETS, SentenceT5),
}


def main() -> None:
    """Reads the arguments, measures and prints a table in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", default=SIZES, help="named shapes of our families")
    parser.add_argument("--folder", type=Path, help="where to write; default: the system's")
    parser.add_argument("--repeats", type=int, default=5, help="turns")
    arguments = parser.parse_args()
    if unknown := {*arguments.sizes} - {*_KINDS}:
        parser.error(f"expected some of {', '.join(_KINDS)}, received {', '.join(unknown)}")
    if arguments.folder is not None:
        arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{environment()}; medians of {arguments.repeats}\n")
    print(
        "| size | weights, millions | checkpoint, MB | save, s | MB/s | ratio | restore, s | MB/s "
        "| ratio |\n" + "|---" * 9 + "|",
        flush=True,
    )
    for size in arguments.sizes:
        encoder = _KINDS[size].from_preset(size)
        encoder.build()
        weights = encoder.count_params()
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            stored_bytes, save, write, restore, read = measured(
                encoder, Path(folder), arguments.repeats
            )
        print(
            f"| {size} | {weights / 1e6:,.1f} | {stored_bytes / 1e6:,.0f} | {save:.2f} "
            f"| {stored_bytes / save / 1e6:,.0f} | {save / write:.2f} | {restore:.2f} "
            f"| {stored_bytes / restore / 1e6:,.0f} | {restore / read:.2f} |",
            flush=True,
        )
        del encoder
        keras.backend.clear_session()
        gc.collect()


def measured(encoder: keras.Model, folder: Path, repeats: int) -> tuple[float, ...]:
    """Bytes of a checkpoint; seconds to save it, write a plain file, restore it, read the file."""
    optimizer = keras.optimizers.Adam()
    optimizer.build(encoder.trainable_variables)
    groups = {"encoder": changing_variables(encoder), "optimizer": optimizer.variables}
    checkpoints, plain = Checkpoints(folder, groups, keep=1), folder / "plain"
    checkpoints.save(0, {})
    stored_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    block = np.random.default_rng(0).bytes(_MEBIBYTE)

    def write() -> None:
        with plain.open("wb") as file:
            for _ in range(stored_bytes // _MEBIBYTE + 1):
                file.write(block)

    def read() -> None:
        np.fromfile(plain, np.uint8)

    calls = (lambda: checkpoints.save(0, {}), write, lambda: checkpoints.restore(0), read)
    turns = [[seconds(call) for call in calls] for _ in range(repeats + 1)]
    return stored_bytes, *(statistics.median(column) for column in zip(*turns[1:], strict=True))


def seconds(call: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    start = time.perf_counter()
    call()
    return max(time.perf_counter() - start, 1e-9)


if __name__ == "__main__":
    main()
