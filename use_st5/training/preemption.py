"""The end of a run after SIGTERM or a lost worker: it is saved and can be started again."""

from __future__ import annotations

import logging
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

# "Try again" (EX_TEMPFAIL of sysexits.h): the system that starts workers does, and the run goes on.
TRY_AGAIN = 75


_log = logging.getLogger(__name__)


class Preempted(SystemExit):
    """The run goes on from its last checkpoint when it is started again.

    It ends the process with the exit code 75, by which a shell's loop, or a cluster's restart
    policy, knows what to do.

    Args:
        reason: A sentence for the log.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(TRY_AGAIN)
        self.reason = reason
        # What ends a process by its code alone is silent.
        _log.warning("%s", reason)

    def __str__(self) -> str:
        """The reason."""
        return self.reason


class StopSignal:
    """Notes a SIGTERM for a block, the signal that a host sends before it stops.

    Only the main thread receives signals; in another, nothing is noted and nothing changes.
    A second signal ends the process as it would have without us.

    Args:
        listens: Whether to note it: what cannot be saved need not be.
    """

    def __init__(self, *, listens: bool = True) -> None:
        self.asked = False
        self.listens = listens
        self._before: Any = None

    def __enter__(self) -> StopSignal:
        """Begins to note it."""
        self.asked = False
        if self.listens and threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGTERM, self._note)
            # What was not installed from Python cannot be put back.
            self._before = signal.SIG_DFL if before is None else before
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Puts back what received the signal before."""
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
            self._before = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.asked = True
