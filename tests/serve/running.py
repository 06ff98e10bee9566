"""An application on a port of this machine, in a thread."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def running(app: Any, **options: Any) -> Iterator[str]:
    """Serves `app` until the block ends, with options of uvicorn; yields its address."""
    import uvicorn

    config = uvicorn.Config(app, host="127.0.0.1", port=0, **{"log_level": "error", **options})
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
