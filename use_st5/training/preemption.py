"""The end of a run after SIGTERM or a lost worker: it is saved and can be started again."""

from __future__ import annotations

import logging
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

# "Try again" (EX_TEMPFAIL of sysexits.h): the system that starts workers restarts them, and the run
# continues.
TRY_AGAIN = 75


_log = logging.getLogger(__name__)


class Preempted(SystemExit):
    """Ends the process; the run continues from its last checkpoint when it is started again.

    The exit code is 75, which tells a shell's loop, or a cluster's restart policy, to start the run
    again.

    Args:
        reason: A sentence for the log.
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
    A second signal ends the process as it would without this class.

    Args:
        listens: Whether to note the signal: not needed for a run that cannot be saved.
    """

    def __init__(self, *, listens: bool = True) -> None:
        self.requested = False
        self.listens = listens
        self._before: Any = None

    def __enter__(self) -> StopSignal:
        """Begins to note the signal."""
        self.requested = False
        if self.listens and threading.current_thread() is threading.main_thread():
            old_handler = signal.signal(signal.SIGTERM, self._note)
            # A handler that was not installed from Python cannot be restored.
            self._before = signal.SIG_DFL if old_handler is None else old_handler
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restores the handler that received the signal before."""
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
            self._before = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.requested = True
