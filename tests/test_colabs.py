"""The notebooks: kept without outputs, and run from top to bottom on the bundled model."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest

from use_st5._bundled import bundled_names

NOTEBOOKS = sorted((Path(__file__).parents[1] / "colabs").glob("*.ipynb"))


def run(notebook: Path, folder: Path) -> nbformat.NotebookNode:
    """Executes a notebook in a kernel of its own whose current folder is `folder`."""
    from nbclient import NotebookClient

    content = nbformat.read(notebook, as_version=4)
    client = NotebookClient(
        content, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(notebook.parents[1])})
    return content


def outputs(content: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in content.cells for output in cell.get("outputs", [])]


def test_there_are_notebooks() -> None:
    assert "quickstart.ipynb" in [notebook.name for notebook in NOTEBOOKS]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_is_valid_and_kept_without_outputs(notebook: Path) -> None:
    content = nbformat.read(notebook, as_version=4)
    nbformat.validate(content)
    assert outputs(content) == []
    code = [cell for cell in content.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [None] * len(code)
    assert all(len(line) <= 110 for cell in content.cells for line in cell.source.splitlines())


def text_of(shown: list[nbformat.NotebookNode]) -> str:
    """What the cells printed."""
    return "".join(output.text for output in shown if output.output_type == "stream")


def losses(printed: str) -> list[float]:
    """The first and the last loss, of the line that names them."""
    loss = next(line for line in printed.splitlines() if line.startswith("loss: "))
    return [float(word) for word in loss.replace(",", "").split() if word[0].isdigit()]


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.skipif("use_dan_en" not in bundled_names(), reason="use_dan_en is not bundled yet")
def test_quickstart_runs_on_the_bundled_model(tmp_path: Path) -> None:
    content = run(next(path for path in NOTEBOOKS if path.name == "quickstart.ipynb"), tmp_path)
    shown = outputs(content)
    printed = text_of(shown)
    assert "(8, 512) float32" in printed
    assert "serving_default" in printed
    pictures = [output for output in shown if "image/png" in output.get("data", {})]
    assert len(pictures) == 1
    first, last = losses(printed)
    assert last < first / 2
    # Three topics: a guess would reach a third.
    assert float(shown[-1].data["text/plain"]) >= 0.75
    assert list(tmp_path.iterdir()) == []


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.skipif(
    "use_transformer_en" not in bundled_names(), reason="use_transformer_en is not bundled yet"
)
def test_own_pairs_tune_the_bundled_transformer(tmp_path: Path) -> None:
    """A user's file to an encoder, and on to hub.load and hub.KerasLayer."""
    for module in ("tensorflow_hub", "tf_keras"):
        pytest.importorskip(module, reason="the extra `hub` is not installed")
    content = run(next(path for path in NOTEBOOKS if path.name == "own_pairs.ipynb"), tmp_path)
    shown = outputs(content)
    printed = text_of(shown)
    assert "question as anchor, answer as positive → pairs" in printed
    before, after = (
        float(word)
        for word in next(line for line in printed.splitlines() if line.startswith("mrr "))
        .replace("before,", "")
        .split()
        if word[0].isdigit()
    )
    assert after >= before
    first, last = losses(printed)
    assert last < first
    assert "parcel" in printed.rpartition("loss: ")[0].splitlines()[-3], "the nearest answer"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.skipif("use_dan_en" not in bundled_names(), reason="use_dan_en is not bundled yet")
def test_on_a_tpu_runs_on_what_is_there(tmp_path: Path) -> None:
    content = run(next(path for path in NOTEBOOKS if path.name == "on_a_tpu.ipynb"), tmp_path)
    shown = outputs(content)
    printed = text_of(shown)
    assert "MirroredStrategy, 1 at once" in printed
    first, last = losses(printed)
    assert last < first / 2
    nearest = printed.rpartition("loss: ")[2].splitlines()[-3]
    assert "parcel" in nearest
    assert list(tmp_path.iterdir()) == []
