"""The end of a run after SIGTERM or a lost worker: it is saved and can be started again."""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any

# "Try again" (EX_TEMPFAIL of sysexits.h): the system that starts workers restarts them, and the run
# continues.
TRY_AGAIN = 75

_log = logging.getLogger(__name__)


class Preempted(SystemExit):
    """Ends the process, for a reason that is logged; the run continues when it is started again.

    The exit code is 75, which tells a shell's loop, or a cluster's restart policy, to start the run
    again.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(TRY_AGAIN)
        self.reason = reason
        # Python prints nothing if a process ends with an exit code.
        _log.warning("%s", reason)

    def __str__(self) -> str:
        """The reason."""
        return self.reason


class StopSignal:
    """Notes whether SIGTERM, which a host sends before it stops, arrives during a block.

    Only the main thread receives signals; in another thread, nothing is noted and nothing changes.
    A second signal ends the process as it would without this class. `listens`: not needed for a run
    that cannot be saved.
    """

    def __init__(self, *, listens: bool = True) -> None:
        self.requested = False
        self.listens = listens
        self._before: Any = None

    def __enter__(self) -> StopSignal:
        """Begins to note the signal."""
        self.requested = False
        if self.listens and threading.current_thread() is threading.main_thread():
            # A handler that was not installed from Python cannot be restored.
            self._before = signal.signal(signal.SIGTERM, self._note) or signal.SIG_DFL
        return self

    def __exit__(self, *error: object) -> None:
        """Restores the handler that received the signal before."""
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
            self._before = None

    def _note(self, number: int, frame: object) -> None:
        if self.requested:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.requested = True
