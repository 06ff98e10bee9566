"""The framework of the experiments: command line, runs, tasks on corpora, tables over seeds."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import keras
import numpy as np
import pytest

from experiments.ablation import Ablation
from experiments.command import main, options_of, parse
from experiments.corpus_tasks import (
    CorpusTask,
    Examples,
    Material,
    open_tasks,
    prepare_tasks,
)
from experiments.run import Run
from experiments.seed_table import seed_means, seed_table
from experiments.stsb_dev import stsb_development
from use_st5.data import PreparedColumn
from use_st5.data import arrays as module
from use_st5.losses import ClassificationLoss
from use_st5.training import ArrayData

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
    rate: float | None = None,
    tasks: Sequence[str] = (),
    sizes: Sequence[int] = (),
    preset: Literal["mini", "large"] | None = None,
    part: str | None = None,
    given_vectors: Path | None = None,
) -> dict[str, float]:
    """Returns its seed as the score."""
    return {"seed": float(seed)}


EXPERIMENT = SimpleNamespace(run=run)
VARIANTS = {"other": SimpleNamespace(run=lambda data, output: {"other": 1.0})}


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--seed 3 --rate=0.5", {"seed": 3, "rate": 0.5}),
        ("--tasks a,b --sizes 1,2", {"tasks": ("a", "b"), "sizes": (1, 2)}),
        (
            "--preset large --given-vectors some/file",
            {"preset": "large", "given_vectors": Path("some/file")},
        ),
    ],
)
def test_options_become_keyword_arguments(words: str, options: dict[str, Any]) -> None:
    found = parse(run, {}, ["--data", "d", "--out", "o", *words.split()])
    assert found == (run, Path("d"), Path("o"), options)


def test_the_data_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("USE_ST5_DATA", raising=False)
    words = ["--out", "o", "--part", "train"]
    assert parse(run, {}, words)[1:] == (Path("data"), Path("o"), {"part": "train"})
    monkeypatch.setenv("USE_ST5_DATA", "there")
    assert parse(run, {}, words)[1] == Path("there")


def test_scores_of_the_experiment_or_of_a_variant_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    def started(*words: str) -> str:
        place = ["experiment", "--data", str(tmp_path), "--out", "o"]
        monkeypatch.setattr(sys, "argv", [*place, *words])
        main(EXPERIMENT, VARIANTS)
        return capsys.readouterr().out

    assert started("--seed", "3") == "seed\t3.0000\n"
    assert started("--variant", "other") == "other\t1.0000\n"


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_can_be_started(script: str) -> None:
    module = vars(importlib.import_module(script))
    experiment, variants = module.get("EXPERIMENT") or module["run"], module.get("VARIANTS", {})
    for each in (experiment, *variants.values()):
        run = getattr(each, "run", each)
        assert [*inspect.signature(run).parameters][:2] == ["data", "output"]
        assert options_of(run).keys() >= {"seed"}
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


def test_only_training_runs_without_tensorflow_and_on_several_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Run(tmp_path, tmp_path).parts == ("prepare", "train", "export")
    with pytest.raises(ValueError, match="expected --part train"):
        Run(tmp_path, tmp_path, strategy="multi_worker")
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    training = Run(tmp_path, tmp_path, part="train")
    assert training.parts == ("train",)
    with pytest.raises(ValueError, match="expected --part train"):
        Run(tmp_path, tmp_path)


TASK = CorpusTask(
    name="nli",
    loss=lambda: ClassificationLoss(num_classes=3),
    data=Examples(iter, {}),
    batch_size=8,
)


def test_examples_are_read_late_and_filtered(tmp_path: Path) -> None:
    opened: list[Path] = []

    def read(data: Path) -> list[dict[str, str]]:
        opened.append(data)
        return [{"sentence": "A test."}, {"sentence": "A text."}]

    data = Examples(read, {"sentence": PreparedColumn("ids", max_tokens=3)})
    ((name, (examples, columns)),) = data.sources("mine", Material(tmp_path, {"a test"})).items()
    assert (name, columns, opened) == ("mine", data.columns, [])
    assert list(examples()) == [{"sentence": "A text."}]


def test_parts_share_the_weight_by_their_weighted_sizes() -> None:
    parts = {
        name: ArrayData({"ids": np.zeros((rows, 2), np.int32)})
        for name, rows in {"short": 30, "long": 5}.items()
    }
    task = dataclasses.replace(TASK, weight=0.4, part_weights={"long": 2.0})
    weights = task.weights(parts)
    assert weights == pytest.approx({"short": 0.4 * 30 / 40, "long": 0.4 * 10 / 40})
    assert TASK.weights(parts) == {"short": 30, "long": 5}, "without a weight, the sizes"


def test_arrays_are_prepared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "fingerprint", lambda tokenizer: {})
    rows = [{"label": row % 7} for row in range(100)]
    examples = Examples(lambda data: rows, {"label": PreparedColumn("label")}, every=3)
    task = dataclasses.replace(TASK, data=examples)
    run, material = Run(tmp_path, tmp_path), Material(tmp_path, ())
    with pytest.raises(FileNotFoundError):
        open_tasks(run, [task])
    for _ in range(2):
        prepare_tasks(run, [task], None, material)
        rows = []
    (part,) = open_tasks(run, [task])["nli"].values()
    assert part.arrays["label"].tolist() == [row % 7 for row in range(0, 100, 3)]


class Row:
    """An experiment whose score is its seed."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int | None, Path]] = []

    def run(
        self, data: Path, output: Path, *, seed: int, steps: int | None, teacher: Path, **_: object
    ) -> None:
        self.started.append((output.name, steps, teacher))
        output.mkdir(parents=True)
        (output / "scores.json").write_text(json.dumps({"pearson": 0.5 + seed / 100}))


def test_every_row_with_every_seed_once(tmp_path: Path) -> None:
    one, two = Row(), Row()
    scored: list[Path] = []

    def further(data: Path, model: Path) -> dict[str, float]:
        scored.append(model)
        return {"mr": 0.7}

    ablation = Ablation(rows={"one": one, "two": two}, steps=30)
    scores = ablation.run(tmp_path, tmp_path / "out")
    teacher = tmp_path / "out/teacher"
    assert one.started == [(f"one_30_{seed}", 30, teacher) for seed in range(3)]
    assert scores == pytest.approx({"one/pearson": 0.51, "two/pearson": 0.51})
    table = (tmp_path / "out/table.md").read_text()
    assert "After 30 steps" in table
    assert "| two | 3 | 51.00 ± 1.00 |" in table
    ablation.run(tmp_path, tmp_path / "out")
    assert len(one.started) == 3, "what is complete is kept"
    ablation.run(tmp_path, tmp_path / "out", seeds=1, steps=10, seed=5, rows=["one"])
    assert (one.started[3], len(two.started)) == (("one_10_5", 10, teacher), 3)
    means = dataclasses.replace(ablation, further=further).run(tmp_path, tmp_path / "out", seeds=1)
    assert means == pytest.approx({"one/pearson": 0.51, "two/pearson": 0.51})
    assert scored == [tmp_path / f"out/{name}_30_0/model" for name in ("one", "two")]


def test_a_table_has_mean_and_spread_and_of_one_seed_no_spread() -> None:
    rows = {
        "SBERT": [{"a": 0.50, "b": 0.70}, {"a": 0.52, "b": 0.74}],
        "untuned": [{"a": 0.40, "b": float("nan")}],
    }
    assert seed_table("Title", rows, averaged=True).splitlines() == [
        "## Title",
        "",
        "| | seeds | a | b | mean |",
        "|---|---|---|---|---|",
        "| SBERT | 2 | 51.00 ± 1.41 | 72.00 ± 2.83 | 61.50 ± 2.12 |",
        "| untuned | 1 | 40.00 | nan | nan |",
    ]
    rows = {"one": [{"a": 0.5, "b": 0.7}, {"a": 0.6}], "two": [{"a": 0.7}, {"a": 0.7}]}
    cells = [line.split("|")[4].strip() for line in seed_table("Title", rows).splitlines()[4:]]
    assert cells == ["", ""], "what not all seeds have is left empty"
    assert seed_means(rows) == pytest.approx({"one/a": 0.55, "two/a": 0.7})


def test_an_encoder_that_knows_the_scores_has_a_correlation_of_one(tmp_path: Path) -> None:
    rows = [f"g\tf\t1\t{n}\t{n}\tleft\tright {n}\n" for n in range(5)]
    (tmp_path / "stsbenchmark").mkdir()
    (tmp_path / "stsbenchmark/sts-dev.csv").write_text("".join(rows))

    def encode(texts: list[str]) -> np.ndarray:
        cosines = np.array([int(text[6:]) / 5 if "right" in text else 1.0 for text in texts])
        return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)

    assert stsb_development(tmp_path)(encode) == pytest.approx(
        {"stsb_dev_pearson": 1.0, "stsb_dev_spearman": 1.0}
    )
