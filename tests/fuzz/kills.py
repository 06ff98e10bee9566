"""Commands that are killed at random moments and started again, and two of them on one target."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.strings import SENTENCES

REPOSITORY = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
_TIMEOUT, _PATIENCE = 300, 60
# Log lines of TensorFlow's native code have the last three forms.
_UNEXPECTED = re.compile(
    r"Traceback|Exception ignored|WARNING:tensorflow|[IWE]\d{4} \d\d:\d\d:[\d.]+ "
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:[\d.]+: [IWE] |WARNING: All log messages before absl"
)
# The message to the second of two writers, while the first is at work or when it has ended.
_REFUSED = re.compile(r"error: .* (is being written by process \d+|exists; give --overwrite).*\n")


class Command(NamedTuple):
    """A command that is killed.

    Attributes:
        setup: A setup of `tests.fuzz.command`: its toys, and whether it imports TensorFlow.
        arguments: The arguments of `use-st5`, in a folder that `make` has filled.
        make: Writes the inputs, and an older target if a target may be replaced.
        target: The file or folder that the command writes.
        result: Returns the content of the target, without times; None if there is no target.
        stdin: The file that is read as standard input.
    """

    setup: str
    arguments: tuple[str, ...]
    make: Callable[[Path], None]
    target: str
    result: Callable[[Path], object]
    stdin: str | None = None

    @property
    def uses_tensorflow(self) -> bool:
        """Whether its process takes long to start."""
        return self.setup in ("tensorflow", "toy_experiment")


def _texts(folder: Path) -> None:
    lines = (f"{SENTENCES[number % len(SENTENCES)]} {number}\n" for number in range(300))
    (folder / "texts.txt").write_text("".join(lines), encoding="utf-8")


def _bytes(name: str) -> Callable[[Path], object]:
    def result(folder: Path) -> object:
        path = folder / name
        return path.read_bytes() if path.exists() else None

    return result


def _embed(name: str, setup: str = "toy_encoder", *more: str, stdin: str | None = None) -> Command:
    def make(folder: Path) -> None:
        _texts(folder)
        (folder / name).write_bytes(b"old")
        if setup == "tensorflow":
            _tiny(folder)

    source = "-" if stdin else "texts.txt"
    arguments = ("embed", source, "-o", name, "--overwrite", *more)
    return Command(setup, arguments, make, name, _bytes(name), stdin)


def _evaluation(folder: Path) -> None:
    encoder = "from tests.fuzz.command import SlowEncoder\n"
    (folder / "slow.py").write_text(encoder, encoding="utf-8")
    (folder / "data").mkdir()
    (folder / "data" / "words.txt").write_text("a b\nc\n", encoding="utf-8")


def _scores(folder: Path) -> object:
    path = folder / "evaluation.json"
    if not path.exists():
        return None
    tasks = json.loads(path.read_text(encoding="utf-8"))["tasks"]
    return {name: task["scores"] for name, task in tasks.items()}


def _tiny(folder: Path) -> None:
    """Writes the model `tiny`, which is exported once in a process and then copied."""
    from tests.fuzz.tiny_models import export_use_dan

    kept = _kept("tiny", export_use_dan)
    shutil.copytree(kept, folder / "tiny")


def _model_and_older(folder: Path) -> None:
    """Writes the model `tiny`, and an older one at the target: `tiny` with another name."""
    _tiny(folder)
    shutil.copytree(folder / "tiny", folder / "out")
    path = folder / "out" / "use_st5.json"
    manifest = json.loads(path.read_text(encoding="utf-8")) | {"name": "old"}
    path.write_text(json.dumps(manifest), encoding="utf-8")


def _checkpoint_and_older(folder: Path) -> None:
    from tests.fuzz.tiny_models import write_hugging_face

    shutil.copytree(_kept("t5", write_hugging_face), folder / "t5")
    _model_and_older(folder)


_made: dict[str, Path] = {}


def _kept(name: str, make: Callable[[Path], object]) -> Path:
    import atexit
    import tempfile

    if name not in _made:
        scratch = Path(tempfile.mkdtemp(prefix="use_st5_fuzz_"))
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        make(scratch / name)
        _made[name] = scratch / name
    return _made[name]


def _vectors(folder: Path) -> object:
    """Checks the files of the model in `out`; returns its name, precision and vectors."""
    from use_st5.encode.encoder import SentenceEncoder

    if not (folder / "out").exists():
        return None
    encoder = SentenceEncoder(folder / "out")
    encoder.manifest.check_contents(folder / "out")
    vectors = encoder.encode([*SENTENCES[:3]])
    return encoder.name, encoder.manifest.precision, vectors.round(5).tolist()


def _export(*options: str) -> Command:
    arguments = ("export", "tiny", "--to", "out", "--overwrite", *options)
    return Command("tensorflow", arguments, _model_and_older, "out", _vectors)


_EVALUATE = ("evaluate", "slow.py:SlowEncoder", "--data", "data", "--out", "evaluation.json")
COMMANDS = {
    "embed npy": _embed("v.npy"),
    "embed jsonl": _embed("v.jsonl"),
    "embed stdin": _embed("v.npy", stdin="texts.txt"),
    "evaluate": Command(
        "toy_tasks", (*_EVALUATE, "--cache", "kept"), _evaluation, "evaluation.json", _scores
    ),
    "experiment": Command(
        "toy_experiment",
        ("--data", ".", "--out", "run"),
        lambda folder: None,
        "run",
        _bytes("run/digest.txt"),
    ),
    "convert": Command(
        "tensorflow",
        ("convert", "t5", "--to", "out", "--overwrite", "--name", "out"),
        _checkpoint_and_older,
        "out",
        _vectors,
    ),
    "export copy": _export(),
    "export int8": _export("--precision", "int8"),
    "embed real": _embed("v.npy", "tensorflow", "--model", "tiny", "--batch-size", "8"),
}
# Commands that need only required packages, and a second each: for the ordinary tests.
QUICK = ("embed stdin", "evaluate")


class Started:
    """A command in its own process, which imports everything and then waits for `go`."""

    def __init__(self, command: Command, folder: Path, **environment: str) -> None:
        ready, ours = os.pipe()
        theirs, go = os.pipe()
        source = (folder / command.stdin).open("rb") if command.stdin else subprocess.DEVNULL
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.command", command.setup, *command.arguments],
            cwd=folder,
            env={
                **os.environ,
                **environment,
                "PYTHONPATH": str(REPOSITORY),
                "FUZZ_GATE": f"{ours},{theirs}",
            },
            stdin=source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(ours, theirs),
            text=True,
        )
        os.close(ours)
        os.close(theirs)
        if command.stdin:
            source.close()
        self._ready, self._go = os.fdopen(ready, "rb", 0), os.fdopen(go, "wb", 0)

    def wait(self) -> None:
        """Waits until all is imported."""
        assert self._ready.read(1), f"it did not start: {self.end()}"

    def go(self) -> None:
        """Lets the command begin."""
        self._go.write(b"!")

    def _last_words(self, *, again: bool) -> str:
        """Waits until the command has ended; returns its standard error."""
        if again:
            # TensorFlow swallows an interrupt while its own C code calls Python, and may then trace
            # without end: so Ctrl-C is pressed once more.
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.communicate(timeout=_PATIENCE)[1]
            self._process.send_signal(signal.SIGINT)
        return self._process.communicate(timeout=_TIMEOUT)[1]

    def end(self, sent: signal.Signals | None = None) -> tuple[int, str]:
        """Sends a signal, if any; returns the command's exit code and standard error at its end."""
        if sent is not None:
            self._process.send_signal(sent)
        try:
            said = self._last_words(again=sent == signal.SIGINT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"it hangs: {self._process.communicate()[1]}") from None
        finally:
            self._ready.close()
            self._go.close()
        return self._process.returncode, said


def run_to_end(command: Command, folder: Path) -> None:
    """Runs a command; in this process if another one would have to import TensorFlow."""
    if command.uses_tensorflow:
        _run_here(command, folder)
        return
    started = Started(command, folder)
    started.wait()
    started.go()
    code, said = started.end()
    assert code == 0, f"exit code {code}: {said}"


def _run_here(command: Command, folder: Path) -> None:
    from typer.testing import CliRunner

    from tests.fuzz import toy_training
    from tests.fuzz.command import SETUPS
    from use_st5.cli.main import app

    SETUPS[command.setup]()
    with contextlib.chdir(folder):
        if command.setup == "toy_experiment":
            toy_training.run(Path(), Path("run"))
            return
        done = CliRunner().invoke(app, [*command.arguments])
    assert done.exit_code == 0, f"exit code {done.exit_code}: {done.output}"


def leftovers(folder: Path) -> list[str]:
    """The names of the files that only an interrupted command leaves behind."""
    return [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.name.startswith(".") or path.suffix == ".partial"
    ]


def unexpected(said: str) -> list[str]:
    """The lines on standard error that no command may write: tracebacks and TensorFlow's own."""
    return [line for line in said.splitlines() if _UNEXPECTED.match(line)]


class Killing:
    """Kills one command again and again.

    Args:
        command: The command.
        root: An empty folder.

    Attributes:
        seconds: The duration of the command if it is not killed.
    """

    def __init__(self, command: Command, root: Path) -> None:
        self._command, self._root = command, root
        whole = self._folder("whole")
        self._before = command.result(whole)
        started = Started(command, whole)
        started.wait()
        started.go()
        begun = time.monotonic()
        code, said = started.end()
        assert code == 0, f"exit code {code}: {said}"
        self.seconds = time.monotonic() - begun
        self._expected = command.result(whole)
        assert self._expected is not None
        assert not leftovers(whole), leftovers(whole)

    def kill(self, moment: float, sent: signal.Signals) -> bool:
        """Kills the command and starts it again.

        Args:
            moment: The time of the signal, as a share of `seconds`.
            sent: The signal.

        Returns:
            Whether the signal came before the command's end, as a number of kills: 0 or 1.

        Raises:
            AssertionError: The target is not whole, the same command does not end well with the
                same result, or something is left behind.
        """
        folder = self._folder("killed")
        started = Started(self._command, folder)
        started.wait()
        started.go()
        time.sleep(moment * self.seconds)
        code, said = started.end(sent)
        assert not unexpected(said), said
        if sent is signal.SIGINT and code:
            assert code in (130, -sent), f"exit code {code}: {said}"
        found = self._command.result(folder)
        whole = found in (None, self._before, self._expected)
        assert whole, f"half a result: {found!r:.500}"
        run_to_end(self._command, folder)
        assert self._command.result(folder) == self._expected, "another result"
        assert not leftovers(folder), f"left behind: {leftovers(folder)}"
        return code != 0

    def _folder(self, name: str) -> Path:
        folder = self._root / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._command.make(folder)
        return folder


def two_writers(command: Command, root: Path) -> int:
    """Starts a command twice at once: one goes on, the other is refused in one line.

    Returns:
        1, the number of times that it was tried.

    Raises:
        AssertionError: Both went on, or none, or the result differs from that of one alone.
    """
    # There is nothing to replace: the second one is refused, even if it comes late.
    arguments = tuple(each for each in command.arguments if each != "--overwrite")
    command = command._replace(arguments=arguments)
    alone, both = root / "alone", root / "both"
    for folder in (alone, both):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command.make(folder)
        _remove(folder / command.target)
    run_to_end(command, alone)
    # Slow enough that the second begins while the first is at work.
    started = [Started(command, both, FUZZ_PAUSE="0.1") for _ in range(2)]
    for each in started:
        each.wait()
    for each in started:  # Otherwise the first could end before the second begins.
        each.go()
    ends = [each.end() for each in started]
    refused = [(code, said) for code, said in ends if code]
    assert len(refused) == 1, f"exit codes {[code for code, _ in ends]}, expected one 0: {ends}"
    code, said = refused[0]
    assert code == 1, f"exit code {code}: {said}"
    assert _REFUSED.fullmatch(said), said
    assert command.result(both) == command.result(alone), "another result"
    assert not leftovers(both), f"left behind: {leftovers(both)}"
    return 1


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def draw_kill(draw: random.Random) -> tuple[float, signal.Signals]:
    """A moment and a signal for `Killing.kill`."""
    return draw.uniform(0, 1.05), draw.choice(SIGNALS)
