"""`--strategy` and `--tpu`: the values for the library, and a training on two devices."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.toy_encoders import WORDS, Toy
from use_st5.cli.strategy import strategy_name

TWO_CPUS = """
import contextlib
import sys
import tensorflow as tf
sys.stderr = sys.stdout
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from use_st5.cli.main import app
for strategy in ("one", "mirrored"):
    with contextlib.suppress(SystemExit):  # Every command ends with its exit code.
        app([*sys.argv[1:], "--to", strategy, "--strategy", strategy], standalone_mode=False)
"""


@pytest.mark.parametrize(
    ("strategy", "tpu", "name"),
    [
        (None, None, None),
        ("mirrored", None, "mirrored"),
        ("tpu", "pod-1", "tpu:pod-1"),
        (None, "grpc://10.0.0.2:8470", "tpu:grpc://10.0.0.2:8470"),
    ],
)
def test_the_name_that_the_library_takes(
    strategy: str | None, tpu: str | None, name: str | None
) -> None:
    assert strategy_name(strategy, tpu) == name


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Pairs of sentences; no two sentences have the same words."""
    sentences = [" ".join(words) for words in itertools.combinations(WORDS[:8], 3)]
    rows = [f"{a}\t{b}" for a, b in itertools.pairwise(sentences)]
    file = tmp_path / "pairs.tsv"
    file.write_text("\n".join(["anchor\tpositive", *rows]) + "\n")
    return file


@pytest.mark.end_to_end
@pytest.mark.process
def test_two_devices_train_as_one(
    pairs: Path, toy_use_transformer: Toy, tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    """Texts of three and of twenty words: batches have two widths, and one has texts of both."""
    rows = pairs.read_text().splitlines()[1:]
    long = ["\t".join(f"{text} " * 7 for text in row.split("\t")) for row in rows[::2]]
    pairs.write_text("\n".join(["anchor\tpositive", *rows, *long]) + "\n")
    start = str(toy_use_transformer.folders["float32"])
    options = "--steps 6 --batch-size 16 --learning-rate 0.001 --evaluations 6"
    # No dropout, since each replica would draw its own.
    command = ["train", start, "--train", str(pairs), *options.split(), "--dropout", "0"]
    shown = fresh_python("-c", TWO_CPUS, *command)
    alone, shared = (losses(each) for each in shown.split("written: one"))
    assert "written: mirrored" in shown
    assert len(alone) == 6
    # Adam amplifies noise: the losses are close, but not equal to the last digit.
    np.testing.assert_allclose(shared, alone, rtol=2e-4)
    assert np.ptp(alone) > 0.05


def losses(shown: str) -> list[float]:
    """The losses of the steps, as the progress shows them."""
    return [float(found) for found in re.findall(r"losses: pairs ([\d.]+)", shown)]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--strategy", "multi_worker"), 2, "not one of 'one', 'mirrored', 'tpu'"),
        (
            ("--strategy", "mirrored", "--tpu", "pod"),
            2,
            "--tpu expects --strategy tpu, received mirrored",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    arguments: tuple[str, ...],
    code: int,
    message: str,
    pairs: Path,
    use: Callable,
    tmp_path: Path,
    toy_use_transformer: Toy,
) -> None:
    start = str(toy_use_transformer.folders["float32"])
    result = use("train", start, "--train", str(pairs), "--to", str(tmp_path / "m"), *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1), result.stderr
    assert message in result.stderr
    assert not (tmp_path / "m").exists()
    assert not (tmp_path / "m.run").exists()


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
