"""`encode` in several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import use_st5
from tests.toy_encoders import Toy
from use_st5.encode.workers import encode_in_workers


class Failing:
    """Encodes to lengths; some texts end the process or raise."""

    def _run(self, texts: list[str]) -> np.ndarray:
        if "exit" in texts:
            os._exit(7)
        if "raise" in texts:
            raise ValueError(f"refused {len(texts)} texts")
        if "slow" in texts:
            time.sleep(1)
        return np.array([[len(text), os.getpid()] for text in texts])


@pytest.mark.process
def test_the_vectors_of_one_process(toy_use_dan: Toy) -> None:
    encoder = use_st5.load(toy_use_dan.folders["float32"])
    texts = [f"{'a b c ' * (n % 7)}{n}" for n in range(500)]
    keywords: Any = {"batch_size": 16, "normalize_embeddings": True, "on_truncation": "ignore"}
    expected = encoder.encode(texts, **keywords)
    np.testing.assert_allclose(encoder.encode(texts, workers=2, **keywords), expected, atol=1e-6)


@pytest.mark.process
def test_the_order_stays_where_a_batch_is_slow() -> None:
    batches = [["slow"], *([str(10**n)] for n in range(40))]
    found = list(encode_in_workers(Failing(), iter(batches), 2))
    assert [each[0, 0] for each in found] == [len(batch[0]) for batch in batches]
    assert len({int(each[0, 1]) for each in found}) == 2


class Counting:
    """Encodes to the number of threads that NumPy's matrix products use in this process."""

    def _run(self, texts: list[str]) -> np.ndarray:
        (blas,) = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
        return np.array([[blas]])


@pytest.mark.process
def test_each_process_computes_with_its_share_of_the_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    cores = os.cpu_count() or 1
    for workers in (1, 2):
        found = next(encode_in_workers(Counting(), iter([["a"]]), workers))
        assert found[0, 0] == max(1, cores // workers)
    assert "OMP_NUM_THREADS" not in os.environ


@pytest.mark.process
def test_an_error_of_a_process_is_one_here() -> None:
    with pytest.raises(ValueError, match="refused 1 texts") as raised:
        list(encode_in_workers(Failing(), iter([["a"], ["raise"], ["b"]]), 2))
    assert "in _run" in str(raised.value.__cause__)
    with pytest.raises(RuntimeError, match="Use fewer workers"):
        list(encode_in_workers(Failing(), iter([["a"], ["exit"], ["b"]]), 2))


# A script that runs in the background ignores SIGINT, so this one restores the default handler.
SCRIPT = """
import os, signal, time
import numpy as np
from use_st5.encode.workers import encode_in_workers
from tests.encode.test_workers import Failing

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for vectors in encode_in_workers(Failing(), (["slow"] for _ in range(100)), 2):
            print(int(vectors[0, 1]), flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def processes_there(ids: set[int]) -> Iterator[int]:
    for each in ids:
        try:
            os.kill(each, 0)
        except ProcessLookupError:
            continue
        yield each


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a group")
def test_ctrl_c_ends_all_processes(tmp_path: Path, repository: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment, start_new_session=True,
    ) as process:  # fmt: skip
        ids = {int(process.stdout.readline()) for _ in range(4)}
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.splitlines()[-1] == "interrupted"
    assert not err
    assert len(ids) == 2
    assert not list(processes_there(ids))
