"""Compares the cost per core of `use-st5 embed --runner DirectRunner` and `use-st5 embed`.

    pip install "use_st5[beam]"
    python -m benchmarks.beam_throughput "novels/*.txt" --rows 200000

Both commands embed the first lines of the files, by turns, each in processes of its own with one
thread for TensorFlow. The measure is their processor time, including that of worker processes. The
ratio is the plain command's time to Beam's: Beam's throughput per core, as a part of the plain
command's. The time that each takes to start is measured with one line and printed separately.
"""

from __future__ import annotations

import argparse
import functools
import glob
import itertools
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_FILES = 8
_ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "OMP_NUM_THREADS": "1"}


def lines_of(pattern: str) -> Iterator[str]:
    """The lines of all files of a pattern."""
    for name in sorted(glob.glob(pattern)):  # noqa: PTH207  # a pattern as the command takes it
        with Path(name).open(encoding="utf-8-sig", newline="\n") as file:
            yield from (line.rstrip("\r\n") + "\n" for line in file)


def written(lines: list[str], folder: Path) -> Path:
    """Writes the lines into one file and into several of equal length; returns the folder."""
    (folder / "parts").mkdir(parents=True)
    (folder / "all.txt").write_text("".join(lines), encoding="utf-8")
    size = -(-len(lines) // _FILES)
    for number in range(-(-len(lines) // size)):
        part = "".join(lines[number * size : (number + 1) * size])
        (folder / "parts" / f"{number}.txt").write_text(part, encoding="utf-8")
    return folder


def processor_seconds(arguments: list[str]) -> float:
    """The processor time of a command and of all processes that it starts and waits for."""
    command = [sys.executable, "-m", "use_st5", "embed", *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run(
        command, env={**os.environ, **_ONE_THREAD}, capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{process.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def both(folder: Path, model: str, options: list[str]) -> tuple[float, float]:
    """The processor time of each command for a folder of `written`."""
    shared = ["--model", model, "--overwrite"]
    plain = [str(folder / "all.txt"), "-o", str(folder / "all.npy"), *shared]
    beams = [str(folder / "parts" / "*.txt"), "-o", str(folder / "vectors"), *shared]
    beams += ["--runner", "DirectRunner", "--", *options]
    return processor_seconds(plain), processor_seconds(beams)


def check(folder: Path, rows: int) -> None:
    """Checks that both commands have written the same vectors."""
    import pyarrow.parquet as pq

    table = pq.read_table(sorted((folder / "vectors").glob("*.parquet")))
    names = [
        tuple(map(int, name.replace(".txt", "").split(":")))
        for name in table.column("id").to_pylist()
    ]
    order = sorted(range(len(names)), key=names.__getitem__)
    vectors = np.stack(table.column("embedding").to_numpy())[order]
    if not np.allclose(vectors, np.load(folder / "all.npy"), atol=1e-5) or len(vectors) != rows:
        raise RuntimeError("The two commands gave different vectors.")


def main() -> None:
    """Reads the arguments, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", help="text files, a text a line")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", default="use_dan_en")
    parser.add_argument("--options", default="", help="of the runner, parted by blanks")
    arguments = parser.parse_args()
    lines = list(itertools.islice(lines_of(arguments.pattern), arguments.rows))
    with tempfile.TemporaryDirectory() as name:
        all_folder, one_folder = (
            written(lines, Path(name, "whole")),
            written(lines[:1], Path(name, "one")),
        )
        measure = functools.partial(both, model=arguments.model, options=arguments.options.split())
        starts = np.median([measure(one_folder) for _ in range(arguments.repeats)], axis=0)
        print(f"one text: use-st5 embed {starts[0]:.1f} s, with Beam {starts[1]:.1f} s", flush=True)
        ratios = []
        for _ in range(arguments.repeats):
            times = np.array(measure(all_folder))
            net = times - starts
            ratios.append((times[0] / times[1], net[0] / net[1]))
            speed = len(lines) / net
            print(
                f"{len(lines):,} texts: use-st5 embed {times[0]:.1f} s ({speed[0]:,.0f} texts/s "
                f"without the start), with Beam {times[1]:.1f} s ({speed[1]:,.0f}); ratio "
                f"{ratios[-1][0]:.2f}, without the start {ratios[-1][1]:.2f}",
                flush=True,
            )
        check(all_folder, len(lines))
        middle = np.median(ratios, axis=0)
        print(f"median ratio {middle[0]:.2f}, without the start {middle[1]:.2f}")


if __name__ == "__main__":
    main()
