"""Runs that are told to end, or killed, and started again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import keras
import pytest

from tests.training import toy
from tests.training.resume_run import trained
from tests.training.test_strategies import free_ports
from use_st5.training.loop import TRY_AGAIN, Preempted
from use_st5.training.tensorflow_step import TensorFlowLoop

RUN = Path(__file__).with_name("resume_run.py")
STEPS = 240
# The steps after the first checkpoint (step 8) take two seconds: the kill precedes the end.
LONG = 480


def test_outside_the_main_thread_nothing_is_listened_to(tmp_path: Path) -> None:
    before, seen = signal.getsignal(signal.SIGTERM), []
    note = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: seen.append(signal.getsignal(signal.SIGTERM))
    )
    run = made(tmp_path, [note]).run
    thread = threading.Thread(target=run, args=(2,))
    thread.start()
    thread.join()
    assert seen == [before]


def made(folder: Path, callbacks: list[keras.callbacks.Callback]) -> TensorFlowLoop:
    keras.utils.set_random_seed(0)
    parts = (toy.ToyEncoder(dropout=0.2), toy.tasks(only=("nli",)), keras.optimizers.Adam(1e-2))
    return toy.loop(TensorFlowLoop, *parts, folder=folder, callbacks=callbacks, evaluations=1)


def test_a_run_that_is_told_to_end_saves_and_goes_on_from_there(tmp_path: Path) -> None:
    def tell(batch: int, logs: dict | None = None) -> None:
        if batch == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    whole = made(tmp_path / "whole", [])
    whole.run(12)
    told = keras.callbacks.LambdaCallback(on_train_batch_end=tell)
    with pytest.raises(Preempted, match="saved at step 6") as caught:
        made(tmp_path / "told", [told]).run(12)
    assert caught.value.code == TRY_AGAIN == 75
    names = {path.name for path in (tmp_path / "told").iterdir()}
    assert names == {"checkpoint-000000006", "logs"}
    assert signal.getsignal(signal.SIGTERM) is before
    again = made(tmp_path / "told", [])
    assert [record["step"] for record in again.run(12).records] == [8, 10, 12]
    for one, other in zip(whole.encoder.get_weights(), again.encoder.get_weights(), strict=True):
        assert (one == other).all()


class Workers:
    """Two workers; each is started again until it ends without an error."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self.repository, self.folder = repository, folder
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        self.codes: list[list[int]] = [[], []]
        self.processes: list[subprocess.Popen | None] = [None, None]
        self.closed = False
        folder.mkdir()
        self.threads = [threading.Thread(target=self._keep, args=(i,)) for i in range(2)]
        for thread in self.threads:
            thread.start()

    def results(self) -> list[dict]:
        """The result that each worker prints."""
        for thread in self.threads:
            thread.join(timeout=500)
        logs = "".join(p.read_text()[-1500:] for p in sorted(self.folder.glob("*.err")))
        assert [codes[-1] for codes in self.codes] == [0, 0], logs
        texts = [(self.folder / f"{i}.out").read_text() for i in range(2)]
        return [json.loads(text.splitlines()[-1]) for text in texts]

    def close(self) -> None:
        """Kills the workers that still run."""
        self.closed = True
        for process in self.processes:
            if process is not None:
                process.kill()

    def send(self, index: int, number: int, when: Callable[[int], bool]) -> None:
        """Sends a worker a signal as soon as `when` is true for the step of a checkpoint."""
        run, deadline = self.folder / "run", time.monotonic() + 500
        while not any(when(int(path.name[-9:])) for path in run.glob("checkpoint-*")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process = self.processes[index]
        assert process is not None
        process.send_signal(number)

    def _keep(self, index: int) -> None:
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": {"worker": self.addresses}, "task": task})
        environment = {**os.environ, "PYTHONPATH": str(self.repository), "TF_CONFIG": config}
        arguments = [sys.executable, RUN, self.folder / "run", str(STEPS), "multi_worker"]
        while not self.closed and len(self.codes[index]) < 5:
            number = len(self.codes[index])
            with (
                (self.folder / f"{index}.out").open("w") as out,
                (self.folder / f"{index}.{number}.err").open("w") as log,
            ):
                process = subprocess.Popen(arguments, stdout=out, stderr=log, env=environment)
                self.processes[index] = process
                self.codes[index].append(process.wait())
            if self.codes[index][-1] == 0:
                return


@pytest.mark.end_to_end
@pytest.mark.process
def test_workers_that_are_told_to_end_or_killed_end_as_those_never_stopped(
    repository: Path, tmp_path: Path
) -> None:
    started: list[Workers] = []
    try:
        started.append(Workers(repository, tmp_path / "whole"))
        (whole, _) = started[0].results()
        started.append(Workers(repository, tmp_path / "stopped"))
        stopped = started[1]
        stopped.send(0, signal.SIGTERM, lambda step: step > 0)
        while not all(stopped.codes):
            time.sleep(0.05)
        step = max(int(path.name[-9:]) for path in (tmp_path / "stopped/run").glob("checkpoint-*"))
        stopped.send(1, signal.SIGKILL, lambda found: found > step)
        results = stopped.results()
    finally:
        for workers in started:
            workers.close()
    # If one is told to end, both stop after the same step; if one is killed, the other ends too.
    assert [codes[0] for codes in stopped.codes] == [TRY_AGAIN, TRY_AGAIN]
    assert stopped.codes[1][1] == -signal.SIGKILL
    assert stopped.codes[0][1] in (TRY_AGAIN, -signal.SIGABRT)
    assert whole["first"] == 2
    for result in results:
        assert result["first"] > step
        assert result["digest"] == whole["digest"]
        assert result["history"] == whole["history"]


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_killed_run_ends_with_the_weights_of_one_never_killed(
    repository: Path, tmp_path: Path
) -> None:
    whole = trained(tmp_path / "whole", LONG)
    _kill_at_a_random_moment(repository, tmp_path / "killed", tmp_path / "log")
    rest = trained(tmp_path / "killed", LONG)
    assert whole["first"] == 2
    assert rest["first"] is not None  # it was killed before its end
    assert rest["first"] > 2  # it did continue
    assert rest["digest"] == whole["digest"]
    assert rest["history"] == whole["history"]
    names = [path.name for path in (tmp_path / "killed").iterdir()]
    assert all(name.startswith(("checkpoint-", "logs")) for name in names)


def _kill_at_a_random_moment(repository: Path, folder: Path, log: Path) -> None:
    """Starts a run, and sends SIGKILL up to a second after its first checkpoint."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, RUN, folder, str(LONG)],
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": str(repository)},
        )
        try:
            for _ in range(6000):
                if folder.is_dir() and any(folder.glob("checkpoint-*")):
                    break
                assert process.poll() is None, log.read_text()[-3000:]
                time.sleep(0.05)
            time.sleep(random.random())
        finally:
            process.kill()
            process.wait()
