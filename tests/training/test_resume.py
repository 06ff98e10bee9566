from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.training.resume_run import trained

RUN = Path(__file__).with_name("resume_run.py")
# The steps after the first checkpoint (step 8) take two seconds: the kill precedes the end.
STEPS = 480


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_killed_run_ends_with_the_weights_of_one_never_killed(
    repository: Path, tmp_path: Path
) -> None:
    whole = trained(tmp_path / "whole", STEPS)
    _kill_at_a_random_moment(repository, tmp_path / "killed", tmp_path / "log")
    rest = trained(tmp_path / "killed", STEPS)
    assert whole["first"] == 2
    assert rest["first"] is not None  # it was killed before its end
    assert rest["first"] > 2  # it did continue
    assert rest["digest"] == whole["digest"]
    assert rest["history"] == whole["history"]
    names = [path.name for path in (tmp_path / "killed").iterdir()]
    assert all(name.startswith("checkpoint-") for name in names)


def _kill_at_a_random_moment(repository: Path, folder: Path, log: Path) -> None:
    """Starts a run, and sends SIGKILL up to a second after its first checkpoint."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, RUN, folder, str(STEPS)],
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
