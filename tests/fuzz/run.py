"""Fuzzes for an hour: `python -m tests.fuzz.run SECONDS`, which is `make fuzz`.

Two processes work side by side, round after round until the time is over: in each round one gives
every tokenizer and every model a new batch of strings, and one reader damaged files; the other
kills every command once. A failure is noted with the input that repeats it. At the end, and after
Ctrl-C, the counts are printed and written to `fuzz/counts.json`. The exit code is 0 if nothing
failed.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzz.command import native_code_unheard, tensorflow
from tests.fuzz.strings import Check, batch, hold

# Set before TensorFlow is imported, and inherited by every command that is killed.
os.environ |= {"CUDA_VISIBLE_DEVICES": "-1", "KERAS_BACKEND": "tensorflow", "MPLBACKEND": "Agg"}
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

OUT = Path("fuzz")
# Strings in a round, and average pieces in a string: a stage gets five times as many strings.
OF_STAGE, OF_MODEL = (4096, 12), (820, 4)
# Each group is killed once in a round, its members by turns.
GROUPS = (
    ("embed npy", "embed jsonl", "embed stdin", "embed real"),
    ("evaluate",),
    ("experiment",),
    ("convert",),
    ("export copy", "export int8"),
)
TWO_WRITERS = ("embed npy", "evaluate", "convert", "export copy", "export int8")
# `long_texts` runs once in this many rounds: it makes one long text of a batch, and reads it in
# every way.
_LONG_TEXTS_EVERY = 8
# A part with this many failures says nothing new, and stops; a process that is stuck ends.
_MOST_FAILURES, _SECONDS_STUCK = 5, 1200
_COLUMNS = ("done", "failures", "seconds")


class Counts:
    """The counts and the current work of one process, in a file that outlives the process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._counts: dict[str, dict[str, float]] = {}
        self._content: dict[str, Any] = {"round": 0, "counts": self._counts, "failures": []}

    def next_round(self) -> int:
        """The number of the round that begins, from 1."""
        self._content["round"] += 1
        return self._content["round"]

    def run(self, part: str, work: Callable[[], int], what: str) -> None:
        """Runs a piece of a part and counts it.

        Args:
            part: Its name in the table.
            work: Returns the number of its checks, and raises an error if a promise is broken.
            what: The input that repeats it.
        """
        count = self._counts.setdefault(part, {"done": 0, "failures": 0, "seconds": 0.0})
        if count["failures"] >= _MOST_FAILURES:
            return
        self._content["at"] = f"{part}: {what}"
        self._write()
        started = time.monotonic()
        faulthandler.dump_traceback_later(_SECONDS_STUCK, exit=True)
        try:
            count["done"] += work()
        except Exception as error:
            said = "".join(traceback.format_exception_only(error)).strip()
            count["failures"] += 1
            self._content["failures"].append(f"{part}: {what}: {said}")
            sys.stderr.write(f"FAILED {part}: {what}: {said[:1000]}\n")
        finally:
            faulthandler.cancel_dump_traceback_later()
        count["seconds"] += time.monotonic() - started
        self._write()

    def _write(self) -> None:
        self._file.write_text(json.dumps(self._content, indent=1), encoding="utf-8")


def fuzz_strings(end: float, counts: Counts) -> None:
    """Tests tokenizers and models on strings, and readers on damaged files, until `end`."""
    from tests.fuzz.models import MODELS, model_check
    from tests.fuzz.readers import READERS
    from tests.fuzz.remote_names import remote_names
    from tests.fuzz.test_damaged_files import damaged_files
    from tests.fuzz.test_tables import attacked_tables
    from tests.fuzz.tokenizer_checks import STAGES

    checks = {name: (make(), OF_STAGE) for name, make in STAGES.items()}
    checks |= {name: (model_check(name), OF_MODEL) for name in MODELS}
    readers = list(READERS)
    while time.time() < end:
        seed = counts.next_round()
        for part, (check, sizes) in checks.items():
            if part == "long_texts" and seed % _LONG_TEXTS_EVERY:
                continue
            drawn = (seed, *sizes)
            counts.run(part, partial(_batch, check, *drawn), f"batch{drawn}")
        name = readers[seed % len(readers)]
        with tempfile.TemporaryDirectory(prefix="use_st5_fuzz_") as root:
            work = partial(damaged_files, name, Path(root, "bench"), seed=seed)
            counts.run(f"damaged {name}", work, f"seed {seed}")
            work = partial(attacked_tables, Path(root), seed=seed)
            counts.run("attacked tables", work, f"seed {seed}")
            work = partial(remote_names, Path(root, "disk"), seed=seed)
            counts.run("names of a remote store", work, f"seed {seed}")


def _batch(check: Check, seed: int, size: int, pieces: int) -> int:
    texts = batch(seed, size, pieces)
    hold(check, texts)
    return len(texts)


def fuzz_kills(end: float, counts: Counts) -> None:
    """Kills every command at random moments, and runs two of a command on one target."""
    from tests.fuzz.kills import COMMANDS, Killing, draw_kill, two_writers

    with tempfile.TemporaryDirectory(prefix="use_st5_fuzz_") as scratch:
        root, killings = Path(scratch), {}
        while time.time() < end:
            seed = counts.next_round()
            for group in GROUPS:
                name = group[seed % len(group)]
                if name not in killings:
                    killings[name] = Killing(COMMANDS[name], root / name)
                drawn = draw_kill(random.Random(f"{name} {seed}"))
                kind = "toy" if "toy" in COMMANDS[name].setup else "real"
                part = f"killed {name} ({kind})"
                counts.run(part, partial(killings[name].kill, *drawn), str(drawn))
            name = TWO_WRITERS[seed % len(TWO_WRITERS)]
            work = partial(two_writers, COMMANDS[name], root / "two")
            counts.run(f"twice at once {name}", work, "")


PARTS = {"strings": fuzz_strings, "kills": fuzz_kills}


def _process(part: str, end: float) -> None:
    """Runs in a process of its own; Ctrl-C ends it, the counts are in the file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with native_code_unheard():  # Sets TensorFlow's log level for later warnings, too.
            tensorflow()
        PARTS[part](end, Counts(OUT / f"{part}.json"))
    except KeyboardInterrupt:
        sys.exit(0)


def main(seconds: float) -> int:
    """Runs both processes, and reports the counts."""
    OUT.mkdir(exist_ok=True)
    for part in PARTS:
        (OUT / f"{part}.json").unlink(missing_ok=True)
    end, context = time.time() + seconds, multiprocessing.get_context("spawn")
    running = {part: context.Process(target=_process, args=(part, end)) for part in PARTS}
    for process in running.values():
        process.start()
    try:
        for process in running.values():
            process.join()
    except KeyboardInterrupt:  # It reaches both processes, too.
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # A second one must not lose the counts.
        for process in running.values():
            process.join(10)
            process.terminate()
    counts, failures = {}, []
    for part, process in running.items():
        file = OUT / f"{part}.json"
        content = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        counts |= content.get("counts", {})
        failures += content.get("failures", [])
        if process.exitcode:
            failures.append(f"{part}: exit code {process.exitcode} at {content.get('at')}")
    for part, count in {"part": dict.fromkeys(_COLUMNS), **counts}.items():
        cells = (key if count[key] is None else f"{count[key]:,.0f}" for key in _COLUMNS)
        sys.stdout.write(f"{part:<36}" + "".join(f"{cell:>12}" for cell in cells) + "\n")
    for failure in failures[:20]:
        sys.stdout.write(f"FAILED {failure[:2000]}\n")
    content = {"seconds": seconds, "counts": counts, "failures": failures}
    (OUT / "counts.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    sys.stdout.write(f"{len(failures)} failures; all counts: {OUT / 'counts.json'}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
