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
    for moment, sent in ((0.4, signal.SIGKILL), (0.6, signal.SIGINT)):
        # How long a command takes differs on a busy machine: earlier, where it had ended by then.
        shares = (1, 0.5, 0.25, 0.1)
        assert any(killing.kill(share * moment, sent) for share in shares), "it met no signal"


@pytest.mark.parametrize("name", ["embed npy", "evaluate"])
def test_of_two_writers_one_is_refused(name: str, tmp_path: Path) -> None:
    two_writers(COMMANDS[name], tmp_path)
