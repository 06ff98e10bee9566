"""A graph in ONNX Runtime, also after a fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from use_st5.engines.onnx_graph import MEANS, GraphWriter
from use_st5.engines.session import Session

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    """The graph of `2 · means`."""
    graph = GraphWriter()
    vectors = graph.op("Mul", graph.input(MEANS), graph.weight(np.array(2, np.float32)))
    path = tmp_path / "graph.onnx"
    path.write_bytes(graph.model(vectors, 3, {}).SerializeToString())
    return path


def test_it_runs_a_graph(graph_file: Path) -> None:
    session = Session(graph_file)
    assert session.inputs == [MEANS]
    assert session.run({MEANS: np.array([[1, 2, 3]], np.float32)}).tolist() == [[2, 4, 6]]


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_opens_it_again(
    graph_file: Path, fresh_python: Callable[..., str]
) -> None:
    """A fork does not have the threads of a session, and the session's end would wait for them."""
    script = f"""if True:
        import os
        from pathlib import Path
        import numpy as np
        from use_st5.engines.session import Session

        session = Session(Path({str(graph_file)!r}))
        given = {{"means": np.ones((1, 3), np.float32)}}
        session.run(given)
        child = os.fork()
        if not child:  # It ends as the processes of multiprocessing do.
            os._exit(session.run(given).tolist() != [[2.0] * 3])
        print(os.waitpid(child, 0)[1])
    """
    assert fresh_python("-c", script, timeout=60).split() == ["0"]


@pytest.mark.parametrize("threads", ["4,2", " 2 ", "many", ""])
def test_threads_are_read_as_openmp_reads_them(
    graph_file: Path, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert Session(graph_file).run({MEANS: np.ones((1, 3), np.float32)}).tolist() == [[2, 2, 2]]


def test_a_damaged_file_is_named(graph_file: Path) -> None:
    graph_file.write_bytes(graph_file.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"graph\.onnx .*Install a later version"):
        Session(graph_file)
