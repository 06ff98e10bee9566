"""The command line of an experiment, and what holds for every script."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from experiments import minilm
from experiments.command import main, options_of, parse

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    for path in (ROOT / "experiments").rglob("*.py")
    if "\nfrom experiments.command import main\n" in path.read_text(encoding="utf-8")
)


def run(
    data: Path,
    output: Path,
    *,
    seed: int = 0,
    resume: bool = True,
    rate: float | None = None,
    tasks: Sequence[str] = (),
    sizes: Sequence[int] = (),
    preset: Literal["mini", "large"] | None = None,
    part: str | None = None,
    given_vectors: Path | None = None,
    factors: dict[str, float] | None = None,
) -> dict[str, float]:
    """Returns its seed as the score."""
    if seed == 99:
        raise KeyboardInterrupt
    return {"seed": float(seed)}


EXPERIMENT = SimpleNamespace(run=run, expected={"seed": 0.25})
VARIANTS = {"other": SimpleNamespace(run=lambda data, output: {"other": 1.0})}


def started(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Starts the experiment as a script, with these words as its arguments."""
    monkeypatch.setattr(sys, "argv", ["experiment", *words])
    main(EXPERIMENT, VARIANTS)


def loaded(script: str) -> tuple[Any, dict[str, Any]]:
    """The experiment of a script and its variants."""
    module = vars(importlib.import_module(script))
    experiment = module.get("EXPERIMENT") or module["run"]
    return experiment, module.get("VARIANTS", {})


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", {}),
        ("--seed 3 --no-resume --rate=0.5", {"seed": 3, "resume": False, "rate": 0.5}),
        ("--tasks a,b --sizes 1,2", {"tasks": ("a", "b"), "sizes": (1, 2)}),
        ("--preset large", {"preset": "large"}),
        ("--given-vectors some/file", {"given_vectors": Path("some/file")}),
    ],
)
def test_options_become_keyword_arguments(words: str, options: dict[str, Any]) -> None:
    found = parse(run, {}, ["--data", "d", "--out", "o", *words.split()])
    assert found == (run, Path("d"), Path("o"), options)


def test_the_data_comes_from_the_environment_and_training_alone_needs_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("USE_ST5_DATA", raising=False)
    words = ["--out", "o", "--part", "train"]
    assert parse(run, {}, words)[1:] == (Path(), Path("o"), {"part": "train"})
    monkeypatch.setenv("USE_ST5_DATA", "there")
    assert parse(run, {}, ["--out", "o"])[1] == Path("there")


def test_scores_are_printed_beside_the_expected_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    place = ("--data", str(tmp_path), "--out", "o")
    started(monkeypatch, *place)
    shown = capsys.readouterr()
    assert shown.out == "score\tvalue\texpected\nseed\t0.0000\t0.2500\n"
    assert shown.err == "written: o\n"
    started(monkeypatch, *place, "--tasks", "a")
    assert capsys.readouterr().out == "score\tvalue\nseed\t0.0000\n", "nothing is expected"
    started(monkeypatch, *place, "--variant", "other")
    assert capsys.readouterr().out == "score\tvalue\nother\t1.0000\n"


def test_an_interruption_says_how_to_continue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        started(monkeypatch, "--data", str(tmp_path), "--out", "o", "--seed", "99")
    assert ended.value.code == 130
    assert "the same command continues" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--data d", "required: -o/--out"),
        ("--out o", "USE_ST5_DATA"),
        ("--data d --out o --variant mine", "invalid choice: 'mine'"),
        ("--data d --out o --preset big", "invalid choice: 'big'"),
        ("--data d --out o --sizes few", "invalid"),
        ("--data d --out o --se 1", "unrecognized arguments: --se"),
        ("--data d --out o --factors 2", "unrecognized arguments: --factors"),
        ("--data d --out o more", "unrecognized arguments: more"),
    ],
)
def test_wrong_words_are_refused(
    words: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.delenv("USE_ST5_DATA", raising=False)
    with pytest.raises(SystemExit) as ended:
        parse(EXPERIMENT, VARIANTS, words.split())
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_data_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="found no absent"):
        started(monkeypatch, "--data", "absent", "--out", "o")


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_can_be_started(script: str) -> None:
    experiment, variants = loaded(script)
    for each in (experiment, *variants.values()):
        run = getattr(each, "run", each)
        assert [*inspect.signature(run).parameters][:2] == ["data", "output"]
        assert options_of(run).keys() >= {"seed", "resume"}
    for name in variants:
        parse(experiment, variants, ["--data", "d", "--out", "o", "--variant", name])


def test_the_readme_names_every_script() -> None:
    text = (ROOT / "experiments/README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `python -m (experiments\.\w+\.\w+)", text, re.MULTILINE)
    started = {
        f"experiments.{path.parent.name}.{path.stem}"
        for path in (ROOT / "experiments").glob("*/*.py")
        if '\nif __name__ == "__main__":' in path.read_text(encoding="utf-8")
    }
    assert {*named} == started


@pytest.mark.process
def test_none_runs_where_another_process_writes(
    tmp_path: Path, written_elsewhere: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The scripts check first whether MiniLM is installed.
    monkeypatch.setattr(minilm, "minilm_folder", lambda: tmp_path)
    written_elsewhere(tmp_path / "run", inside=True)
    for script in SCRIPTS:
        experiment, _ = loaded(script)
        if "output" in inspect.signature(getattr(experiment, "run", experiment)).parameters:
            with pytest.raises(BlockingIOError, match="is being written by process"):
                getattr(experiment, "run", experiment)(tmp_path, tmp_path / "run")
