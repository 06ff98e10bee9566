"""The program that XLA gets for a training step, for every family and every loss.

No TPU is at hand. XLA's front end is the same for all devices: the program that is listed here,
before any device's own passes, is what its compiler for TPUs would get. It can only be made if XLA
has a kernel for every TensorFlow operation; the tests search it for what else a TPU refuses.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from experiments.sentence_t5.span_corruption_loss import SpanCorruptionLoss
from tests.training.compiled_programs import ENCODERS, LOSSES
from use_st5 import losses
from use_st5.losses.task_loss import TaskLoss, VectorLoss
from use_st5.models.family import families

# A TPU does not call the host, computes no 64-bit floats, and must know every size beforehand.
REFUSED_OPS = {
    "custom-call",
    "infeed",
    "outfeed",
    "send",
    "recv",
    "set-dimension-size",
    "call-host",
}
REFUSED_TYPES = re.compile(r"\b(f64|c128|token)\[|\[<=")
HOST_OPS = re.compile(r"PyFunc|^Print|StringFormat|Assert$|Summary|^Unique|^Where$|HashTable")

Program = Callable[[str], tuple[str, set[str]]]


@pytest.fixture(scope="module")
def program(
    request: pytest.FixtureRequest, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Program:
    """A function: the name of a family or loss → its step's HLO and TensorFlow operations."""
    names = [
        item.callspec.params["name"]
        for item in request.session.items
        if item.path == request.path and "name" in getattr(item, "fixturenames", ())
        if not any(item.iter_markers("skip"))
    ]
    folder = tmp_path_factory.mktemp("programs")
    files = folder / "names.json", folder / "programs.json"
    files[0].write_text(json.dumps(names), encoding="utf-8")
    run_python(repository, "-m", "tests.training.compiled_programs", *files)
    programs: dict[str, Any] = json.loads(files[1].read_text(encoding="utf-8"))

    def of(name: str) -> tuple[str, set[str]]:
        found = programs[name]
        assert "error" not in found, found["error"]
        return found["hlo"], set(found["ops"])

    return of


def run_python(repository: Path, *arguments: str | Path, **environment: str) -> str:
    """Runs Python in a fresh process, and returns its output."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(repository), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def operations(text: str) -> set[str]:
    """The names of the HLO operations of a program."""
    return set(re.findall(r"^\s+(?:ROOT )?%?[\w.-]+ = .*? ([a-z][a-z0-9-]*)\(", text, re.MULTILINE))


def assert_fit_for_a_tpu(text: str, ops: set[str]) -> None:
    found = operations(text)
    assert {"dot", "add", "parameter"} <= found
    assert found & REFUSED_OPS == set(), text
    assert REFUSED_TYPES.findall(text) == []
    assert [op for op in ops if HOST_OPS.search(op)] == []


@pytest.mark.process
@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.end_to_end
def test_the_step_of_every_family_holds_nothing_that_a_tpu_refuses(
    name: str, program: Program
) -> None:
    text, ops = program(name)
    assert_fit_for_a_tpu(text, ops)
    assert "bf16[" in text


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.parametrize("name", LOSSES)
def test_the_step_of_every_loss_holds_nothing_that_a_tpu_refuses(
    name: str, program: Program
) -> None:
    assert_fit_for_a_tpu(*program(name))


def test_every_family_and_every_loss_is_here() -> None:
    tried = {type(make()) for make, _ in LOSSES.values()}
    public = {getattr(losses, name) for name in losses.__all__ if name.endswith("Loss")}
    assert public - {TaskLoss, VectorLoss} == tried - {SpanCorruptionLoss}  # of an experiment
    # A cross-encoder is tried with the losses of pairs. The graphs of foreign SavedModels and the
    # networks of KerasHub, which is an extra, are not ours.
    others = {"cross_encoder", "kerashub", "saved_model"}
    # Other tests of this process may have registered families of their own.
    ours = {n for n, each in families().items() if type(each).__module__.startswith("use_st5.")}
    assert {name.split()[0] for name in ENCODERS} | others >= ours


def test_what_a_tpu_refuses_is_found() -> None:
    @tf.function(jit_compile=True)
    def doubtful(x: tf.Tensor) -> tf.Tensor:
        chosen = tf.boolean_mask(x, x > 0)
        return tf.reduce_sum(tf.cast(chosen, tf.float64))

    text = doubtful.experimental_get_compiler_ir(tf.zeros([4]))(stage="hlo")
    assert REFUSED_TYPES.search(text)
    with pytest.raises(AssertionError):
        assert_fit_for_a_tpu(text, set())


COMPILED = """
import keras
from tests.toy_encoders import USE_TRANSFORMER
from tests.training import toy
from use_st5.data.arrays import ArrayData
from use_st5.training.task import Task
from use_st5.training.tensorflow_step import TensorFlowLoop
names = ("premise", "hypothesis", "label")
data = ArrayData({name: toy.arrays()[name] for name in names}, buckets=(2, 4, 5))
tasks = [Task("nli", toy.losses()["nli"], data, batch_size=4), *toy.tasks(only=("teacher",))]
adam, options = keras.optimizers.Adam(), {"jit_compile": True, "steps_per_execution": 10}
toy.loop(TensorFlowLoop, toy.ToyEncoder(), tasks, adam, **options).run(60)
print({data.batch(step, 4, 0)["premise"].shape[1] for step in range(16)})
"""


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_task_is_compiled_once_for_each_width(repository: Path, tmp_path: Path) -> None:
    """Three widths of one task and one of the other: four programs for 60 steps in six calls."""
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text --xla_dump_hlo_module_re=.*step.*"
    output = run_python(repository, "-c", COMPILED, XLA_FLAGS=flags)
    assert output.strip() == "{2, 4, 5}"
    assert len([*tmp_path.glob("*before_optimizations.txt")]) == 4
