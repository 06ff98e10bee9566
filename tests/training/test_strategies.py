from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.training import toy
from tests.training.strategy_run import trained
from use_st5.training.strategies import is_chief, strategy_by_name
from use_st5.training.tensorflow_step import TensorFlowLoop

RUN = Path(__file__).with_name("strategy_run.py")
CLUSTER = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}


def last_lines(text: str, count: int) -> list[dict]:
    return [json.loads(line) for line in text.strip().splitlines()[-count:]]


def free_ports(count: int) -> list[int]:
    """Returns free ports; all are open at the same time, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def start_workers(repository: Path, folder: Path) -> list[subprocess.Popen]:
    """Starts two workers on this machine; each writes its output to a file in the folder."""
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    started = []
    for index in range(2):
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": {"worker": workers}, "task": task})
        environment = {**os.environ, "PYTHONPATH": str(repository), "TF_CONFIG": config}
        with (folder / f"{index}.out").open("w") as out, (folder / f"{index}.err").open("w") as err:
            started.append(
                subprocess.Popen(
                    [sys.executable, RUN, "multi_worker", "1", "0"],
                    stdout=out,
                    stderr=err,
                    env=environment,
                    cwd=folder,
                )
            )
    return started


@pytest.mark.end_to_end
@pytest.mark.process
def test_one_device_mirrored_and_two_workers_give_the_same_losses(
    repository: Path, tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    workers = start_workers(repository, tmp_path)
    try:
        output = fresh_python(RUN, "mirrored", "2", "0", "0.5")
        mirrored, with_dropout = last_lines(output, 2)
        expected = trained(strategy_by_name("one"), tmp_path / "one" / "0", 0)
        results = [expected, mirrored]
        for index, worker in enumerate(workers):
            assert worker.wait(timeout=300) == 0, (tmp_path / f"{index}.err").read_text()[-3000:]
            results += last_lines((tmp_path / f"{index}.out").read_text(), 1)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert [result["replicas"] for result in results] == [1, 2, 2, 2]
    assert len(expected["losses"]) == 12
    assert len({name for name, _ in expected["losses"]}) == 2
    for result in results:
        assert [name for name, _ in result["losses"]] == [name for name, _ in expected["losses"]]
        for (_, loss), (_, same) in zip(result["losses"], expected["losses"], strict=True):
            assert loss == pytest.approx(same, rel=2e-5)
        assert result["weights"] == pytest.approx(expected["weights"], rel=2e-5)
    for name in ("one", "mirrored", "multi_worker"):
        kept = {path.name for path in (tmp_path / name / "0").iterdir()}
        assert kept == {"checkpoint-000000024", "logs"}
    losses = [loss for _, loss in with_dropout["losses"]]
    assert np.isfinite(losses).all()
    assert losses != pytest.approx([loss for _, loss in mirrored["losses"]], rel=1e-3)


@pytest.mark.parametrize(
    ("jobs", "task_type", "index", "expected"),
    [
        (("worker",), "worker", 0, True),
        (("worker",), "worker", 1, False),
        (("chief", "worker"), "chief", 0, True),
        (("chief", "worker"), "worker", 0, False),
        (("worker", "evaluator"), "evaluator", 0, False),
    ],
)
def test_one_process_of_a_cluster_is_its_chief(
    jobs: tuple[str, ...], task_type: str, index: int, expected: bool
) -> None:
    cluster = tf.train.ClusterSpec({job: CLUSTER["worker"] for job in jobs})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, task_type=task_type, task_id=index
    )
    assert is_chief(SimpleNamespace(cluster_resolver=resolver)) is expected


@pytest.mark.parametrize("outside", ["encoder", "optimizer"])
def test_what_was_made_outside_the_scope_is_named(outside: str) -> None:
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    made = {"encoder": toy.ToyEncoder, "optimizer": keras.optimizers.Adam}
    parts = {outside: made[outside]()}
    with strategy.scope():
        parts |= {name: make() for name, make in made.items() if name != outside}
    with pytest.raises(ValueError, match=f"Expected the {outside} to be made within"):
        toy.loop(TensorFlowLoop, tasks=toy.tasks(only=("nli",)), strategy=strategy, **parts)


def test_impossible_strategies_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {}}')
    for name, message in (("cluster", "mirrored, multi_worker or tpu"), ("multi_worker", "TF_C")):
        with pytest.raises(ValueError, match=message):
            strategy_by_name(name)


def test_errors_of_the_network_name_the_tpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise TimeoutError(name)

    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", fail)
    with pytest.raises(ValueError, match="No TPU was found at 'mine'.*TimeoutError"):
        strategy_by_name("tpu", tpu="mine")
