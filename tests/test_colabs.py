"""The notebooks: they are stored with their outputs, and run from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tools.run_notebooks import NOTEBOOKS, executed

# Two sizes show the same as three, with half of the steps.
SHORTER = {"keras_transfer": {"SIZES = [16, 64, 256]": "SIZES = [16, 128]"}}
NAMES = ["bias", "keras_transfer", "languages", "on_a_tpu", "own_pairs", "quickstart", "search"]


def outputs(content: Any) -> list[Any]:
    return [output for cell in content.cells for output in cell.get("outputs", [])]


def text_of(content: Any) -> str:
    """The text that the cells printed on standard output."""
    shown = (each for each in outputs(content) if each.output_type == "stream")
    return "".join(each.text for each in shown if each.name == "stdout")


def pictures(content: Any) -> list[Any]:
    return [each for each in outputs(content) if "image/png" in each.get("data", {})]


def losses(printed: str) -> list[float]:
    """Returns the first and the last loss, from the line that begins with `loss: `."""
    loss = next(line for line in printed.splitlines() if line.startswith("loss: "))
    return [float(word) for word in loss.replace(",", "").split() if word[0].isdigit()]


def row(printed: str, start: str) -> list[float]:
    """The numbers of the line that begins with `start`."""
    line = next(line for line in printed.splitlines() if line.startswith(start))
    return [float(word) for word in re.findall(r"-?\d+\.\d+", line)]


def test_these_are_the_notebooks() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == NAMES


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_and_shows_its_outputs(notebook: Path) -> None:
    content = nbformat.read(notebook, as_version=4)
    nbformat.validate(content)
    code = [cell for cell in content.cells if cell.cell_type == "code"]
    # `python -m tools.run_notebooks` runs them all, in order.
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    assert not [each for each in outputs(content) if each.output_type == "error"]
    assert text_of(content)
    assert all(len(line) <= 120 for cell in content.cells for line in cell.source.splitlines())
    assert not re.search(r"/(root|home|work)/", str(content))


def check_quickstart(content: Any) -> None:
    printed = text_of(content)
    assert "(8, 512) float32" in printed
    assert "serving_default" in printed
    assert len(pictures(content)) == 1
    first, last = losses(printed)
    assert last < first / 2
    # There are three topics, so guessing would score a third.
    assert float(outputs(content)[-1].data["text/plain"]) >= 0.75


def check_own_pairs(content: Any) -> None:
    """From a user's file to an encoder, and from there to hub.load and hub.KerasLayer."""
    printed = text_of(content)
    assert "question as anchor, answer as positive → pairs" in printed
    before, after = row(printed, "mrr ")
    assert after >= before
    first, last = losses(printed)
    assert last < first
    assert "parcel" in printed.rpartition("loss: ")[0].splitlines()[-3], "the nearest answer"


def check_on_a_tpu(content: Any) -> None:
    printed = text_of(content)
    assert "MirroredStrategy, 1 at once" in printed
    first, last = losses(printed)
    assert last < first / 2
    assert "parcel" in printed.splitlines()[-3], "the nearest answer"


def check_search(content: Any) -> None:
    printed = text_of(content)
    for model in ("use_dan_en", "use_transformer_en"):
        first, among_three = row(printed, model)
        assert first >= 0.4
        assert among_three >= 0.6
    lines = printed.splitlines()[-5:]
    answered, not_answered = (
        [float(line.split()[0]) for line in part] for part in (lines[:3], lines[3:])
    )
    assert min(answered) > max(not_answered)
    assert len(pictures(content)) == 1


def check_languages(content: Any) -> None:
    """Guessing is right for one of eight answers."""
    printed = text_of(content)
    assert min(row(printed, "use_dan_multilingual")) >= 0.5
    assert row(printed, "use_dan_en")[1] < 0.3
    assert "use_dan_en knows only English. Load" in printed
    assert len(pictures(content)) == 1


def check_keras_transfer(content: Any) -> None:
    printed = text_of(content)
    assert "in Keras 3: ValueError" in printed
    curves = {name: row(printed, name) for name in ("frozen", "trained", "words only")}
    # With few texts an encoder helps, and more texts are better.
    assert curves["frozen"][0] > curves["words only"][0]
    assert all(curve[-1] > curve[0] + 0.2 for curve in curves.values())
    assert len(pictures(content)) == 1


def check_bias(content: Any) -> None:
    printed = text_of(content)
    for name in ("weat1 ", "weat2 "):
        assert min(row(printed, name)[::2]) > 1
    assert len(pictures(content)) == 2


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_notebook_shows(notebook: Path) -> None:
    globals()[f"check_{notebook.stem}"](nbformat.read(notebook, as_version=4))


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_the_same(notebook: Path, tmp_path: Path) -> None:
    for module in ("tensorflow_hub", "tf_keras", "tensorflow_text"):
        pytest.importorskip(module, reason="the extra `hub` is not installed")
    changes = SHORTER.get(notebook.stem, {})
    assert all(old in notebook.read_text(encoding="utf-8") for old in changes)
    globals()[f"check_{notebook.stem}"](executed(notebook, tmp_path, changes))
    assert list(tmp_path.iterdir()) == []
