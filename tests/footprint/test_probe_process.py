from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.footprint import probe_process
from use_st5.footprint.probe_process import ProbeProcess


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # noqa: ANN201
    """Starts a process that runs the given code instead of the server."""
    processes = []

    def start(code: str) -> ProbeProcess:
        (tmp_path / "stand_in.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(probe_process, "_SERVER", "import stand_in")
        processes.append(ProbeProcess("toy", tmp_path, device="cpu", threads=1, batch_size=1))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


def test_an_error_names_the_model_and_the_length(served) -> None:  # noqa: ANN001
    process = served('input(); print(\'{"error": "ResourceExhaustedError: out of memory"}\')')
    with pytest.raises(ValueError, match="toy, texts of 512 words: ResourceExhaustedError: out of"):
        process.visit(512)


def test_a_process_that_dies_leaves_its_last_words(served) -> None:  # noqa: ANN001
    process = served("import sys; sys.exit('no such library')")
    with pytest.raises(ValueError, match=r"loading it: .* ended with code 1 \(no such library\)"):
        process.facts()


def test_a_process_that_is_killed(served) -> None:  # noqa: ANN001
    process = served("import os; os.kill(os.getpid(), 9)")
    with pytest.raises(ValueError, match="ended by signal 9; memory may have run out"):
        process.facts()
