"""Commands killed at random moments; the long run in `run.py` kills the others, too."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.fuzz.kills import COMMANDS, QUICK, Killing, two_writers

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to a process"),
]


@pytest.mark.parametrize("name", QUICK)
def test_a_killed_command_is_started_again(name: str, tmp_path: Path) -> None:
    killing = Killing(COMMANDS[name], tmp_path)
    met = [killing.kill(0.4, signal.SIGKILL), killing.kill(0.6, signal.SIGINT)]
    assert any(met), "no signal met the command"


@pytest.mark.parametrize("name", ["embed npy", "evaluate"])
def test_of_two_writers_one_is_refused(name: str, tmp_path: Path) -> None:
    two_writers(COMMANDS[name], tmp_path)
