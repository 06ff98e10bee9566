"""`use-st5 train`: the arguments that the command line passes on, and its output."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from use_st5.cli import train
from use_st5.cli.main import app
from use_st5.training.arguments import PYTHON_ONLY, FileArguments
from use_st5.training.sweeps import Sweep, Trial
from use_st5.training.train import Trained

# The package exports the function under the name of its module, and so hides the module.
training = importlib.import_module("use_st5.training.train")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The calls of the library's `train`, which trains nothing here."""
    calls: list[dict[str, Any]] = []

    def noted(**options: Any) -> Trained:
        calls.append(options)
        if options.get("seed") == 99:
            raise KeyboardInterrupt
        options.pop("log")("something new")
        scores = {"before": {"mrr": 0.25}, "after": {"mrr": 0.5}, "test_before": {"mrr": 0.125}}
        return Trained(
            Path("m"), Path("m.run"), **scores, test_after={"mrr": 0.375},
            monitor="mrr", best_step=3, steps=9,
        )  # fmt: skip

    monkeypatch.setattr(training, "train", noted)
    monkeypatch.setattr(train, "start_keras", lambda command: None)
    return calls


def test_options_reach_the_library_and_the_scores_are_shown(use: Callable, asked: list) -> None:
    result = use(
        *("train", "use_dan_en", "--train", "a.tsv", "--train", "b.csv=0.5", "--to", "m"),
        *("--validation", "d.tsv", "--column", "anchor=title", "--loss", "temperature=0.02"),
        *("--loss", "bidirectional=true", "--loss", "hidden_dims=512,512", "--batch-size", "128"),
        *(
            "--learning-rate",
            "1e-4",
            "--lora-rank",
            "8",
            "--matryoshka-dimensions",
            "64,512",
            "--freeze",
            "embedding",
        ),
        *("--batch-files", "gs://bucket/batches", "--test", "t.tsv", "--score-range", "-1,5"),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        "rows\tscore\tbefore\tafter",
        "validation\tmrr\t25.00\t50.00",
        "test\tmrr\t12.50\t37.50",
    ]
    assert "something new" in result.stderr
    assert asked == [
        {
            **{
                "model": "use_dan_en",
                "files": ["a.tsv", "b.csv=0.5"],
                "to": "m",
                "overwrite": False,
            },
            **{"validation": ["d.tsv"], "test": ["t.tsv"], "score_range": (-1.0, 5.0)},
            "batch_files": "gs://bucket/batches",
            **{"columns": {"anchor": "title"}, "batch_size": 128, "learning_rate": 1e-4},
            **{"lora_rank": 8, "matryoshka_dimensions": (64, 512), "freeze": ("embedding",)},
            "loss": {"temperature": 0.02, "bidirectional": True, "hidden_dims": (512, 512)},
        }
    ]


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        (("--task", "pairs"), "task", "pairs"),
        (
            ("--task", "n=1.txt=neighbours", "--task", "a.tsv=pairs"),
            "task",
            {"n=1.txt": "neighbours", "a.tsv": "pairs"},
        ),
        (("--prompts", "query: "), "prompts", "query: "),
        (
            ("--prompts", "anchor=query: ", "--prompts", "positive=a = b: "),
            "prompts",
            {"anchor": "query: ", "positive": "a = b: "},
        ),
        (("--freeze", "nothing"), "freeze", ()),
        (
            ("--loss", "tsdae", "--loss", "deletion=0.5"),
            "loss",
            {"name": "tsdae", "deletion": 0.5},
        ),
        (("--strategy", "mirrored"), "strategy", "mirrored"),
        (("--strategy", "tpu", "--tpu", "pod-1"), "strategy", "tpu:pod-1"),
        (("--tpu", "grpc://10.0.0.2:8470"), "strategy", "tpu:grpc://10.0.0.2:8470"),
    ],
)
def test_words_of_the_library(
    given: tuple[str, ...], name: str, value: object, use: Callable, asked: list
) -> None:
    assert use("train", "m", "--train", "a.tsv", "--to", "m", *given).exit_code == 0
    assert asked[0][name] == value


def test_a_config_gives_options_by_name_and_those_beside_it_win(
    use: Callable, asked: list, tmp_path: Path
) -> None:
    (tmp_path / "run.toml").write_text(
        """
        model = "use_dan_en"
        train = ["a.tsv"]
        to = "m"
        batch-size = 8
        epochs = 2
        evaluate_epochs = true
        loss = {temperature = 0.02}
        """
    )
    beside = ("--to", "n", "--batch-size", "16", "--settings", "sbert")
    assert use("train", "--from-config", "run.toml", *beside).exit_code == 0
    assert asked == [{
        **{"model": "use_dan_en", "files": ["a.tsv"], "to": "n", "batch_size": 16},
        **{"settings": "sbert", "evaluate_epochs": True, "overwrite": False},
    }]  # fmt: skip
    (tmp_path / "run.toml").write_text("batchsize = 8")
    result = use("train", "--from-config", "run.toml")
    assert "unknown key 'batchsize'; the nearest is 'batch_size'" in result.stderr
    (tmp_path / "run.toml").write_text("batch_size = ")
    assert "run.toml: Invalid value" in use("train", "--from-config", "run.toml").stderr


def test_an_interruption_says_how_it_goes_on(use: Callable, asked: list) -> None:
    result = use("train", "m", "--train", "a.tsv", "--to", "m", "--seed", "99")
    assert result.exit_code == 130
    assert "the same command continues" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("use_dan_en",), 2, "experiments/README.md"),
        (("use_dan_en", "--train", "a.tsv"), 2, "--to DIR"),
        (("m", "--train", "a", "--to", "m", "--loss", "=0.3"), 2, "expected NAME=VALUE"),
        (("m", "--train", "a", "--to", "m", "--task", "b", "--task", "c"), 2, "FILE=TASK for each"),
        (
            ("m", "--train", "a", "--to", "m", "--matryoshka-dimensions", "few"),
            2,
            "numbers with commas",
        ),
        (("m", "--train", "a", "--to", "m", "--score-range", "all"), 2, "numbers with commas"),
        (
            ("m", "--train", "a", "--to", "m", "--prompts", "q: ", "--prompts", "anchor=q: "),
            2,
            "--prompts: expected COLUMN=TEXT for each",
        ),
        (
            ("m", "--train", "a", "--to", "m", "--strategy", "mirrored", "--tpu", "pod"),
            2,
            "--tpu expects --strategy tpu, received mirrored",
        ),
    ],
)
def test_wrong_usage_is_one_line(
    use: Callable, arguments: tuple[str, ...], code: int, message: str, asked: list
) -> None:
    result = use("train", *arguments)
    assert (result.exit_code, asked) == (code, [])
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_every_setting_is_an_option_with_a_help() -> None:
    """The command on a model's card uses such options."""
    params = get_command(app).commands["train"].params
    helps = {name: each.help for each in params for name in each.opts if hasattr(each, "help")}
    for field in dataclasses.fields(FileArguments):
        if field.name not in PYTHON_ONLY:
            assert len(helps[f"--{field.name.replace('_', '-')}"]) > 20


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("train", "m", "--train", "pairs.tsv", "--to", "m2"), "train"),
        (("convert", "t5", "--to", "m"), "convert"),
    ],
)
def test_another_backend_of_keras_is_refused_before_anything_is_read(
    arguments: tuple[str, ...], command: str, use: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    result = use(*arguments)
    assert result.exit_code == 1
    assert result.stderr == f"error: `use-st5 {command}` needs TensorFlow: unset KERAS_BACKEND.\n"


def test_a_sweep_reads_its_ranges_from_words_and_from_a_config(
    use: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("optuna", reason="the extra `sweep` is not installed")
    calls: list[dict[str, Any]] = []

    def noted(**options: Any) -> Sweep:
        options.pop("log")
        calls.append(options)
        good = Trial(1, {"learning_rate": 1.23456e-4}, 0.5, "mrr", 30)
        return Sweep(Path("m"), Path("m.run"), good, [Trial(0, good.arguments, error="nan"), good])

    monkeypatch.setattr("use_st5.training.sweeps.sweep", noted)
    monkeypatch.setattr("use_st5.cli.sweep.start_keras", lambda command: None)
    (tmp_path / "sweep.toml").write_text(
        """
        model = "m"
        train = "a.tsv"
        to = "m"
        trials = 3
        [search]
        learning_rate = "1e-5:1e-3"
        batch_size = [16, 32]
        """
    )
    result = use("sweep", "--from-config", "sweep.toml")
    assert result.stdout.splitlines() == [
        "trial\tlearning_rate\tmrr\tbest step",
        "1\t0.0001235\tfailed\t–",
        "2\t0.0001235\t50.00\t30",
    ]
    words = ("--search", "learning_rate=1e-5:1e-3", "--search", "batch_size=16,32")
    use("sweep", "m", "--train", "a.tsv", "--to", "m", "--trials", "3", *words)
    calls[0]["files"] = [calls[0]["files"]]
    search = {"learning_rate": (1e-5, 1e-3), "batch_size": [16, 32]}
    given = {"model": "m", "files": ["a.tsv"], "to": "m", "trials": 3, "overwrite": False}
    assert calls == [{**given, "search": search}] * 2
