"""Commands killed at random moments; the long run in `run.py` kills the others, too."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.fuzz.kills import COMMANDS, QUICK, Killing, two_writers, unexpected

pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="Windows has no signals to send to a process"
)


def test_lines_of_tensorflow_are_unexpected_on_standard_error() -> None:
    lines = (
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
        "I0000 00:00:1795343499.760656   17477 cudart_stub.cc:31] Could not find cuda drivers",
        "WARNING:tensorflow:5 out of the last 5 calls triggered tf.function retracing.",
        "Traceback (most recent call last):",
    )
    assert unexpected("\n".join(("v.npy: 3 rows", *lines, "interrupted"))) == [*lines]


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.parametrize("name", QUICK)
def test_a_killed_command_is_started_again(name: str, tmp_path: Path) -> None:
    killing = Killing(COMMANDS[name], tmp_path)
    for moment, sent in ((0.4, signal.SIGKILL), (0.6, signal.SIGINT)):
        # On a busy machine the duration varies: if the command had ended, it is killed earlier.
        shares = (1, 0.5, 0.25, 0.1)
        assert any(killing.kill(share * moment, sent) for share in shares), "it met no signal"


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.parametrize("name", ["embed npy", "evaluate"])
def test_of_two_writers_one_is_refused(name: str, tmp_path: Path) -> None:
    two_writers(COMMANDS[name], tmp_path)
