from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.training import toy
from tests.training.strategy_run import trained
from tests.training.test_strategies import free_ports
from use_st5.data.arrays import ArrayData
from use_st5.training import batch_files
from use_st5.training.batch_files import BatchFiles
from use_st5.training.strategies import strategy_by_name
from use_st5.training.tensorflow_step import TensorFlowLoop, array_dataset

SERVER = """
import sys
import tensorflow as tf
server = tf.distribute.Server({"worker": [sys.argv[1]]}, job_name="worker", task_index=0)
print("ready", flush=True)
server.join()
"""


def lengths_data(**options: object) -> ArrayData:
    """Forty texts of one to sixteen ids, with a label and a vector each."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(1, 17, (40, 1))
    numbers = np.arange(1, 41, dtype=np.int32)[:, None]
    return ArrayData(
        {
            "text": np.where(np.arange(16) < lengths, numbers, 0).astype(np.int32),
            "label": np.arange(40, dtype=np.int32),
            "vector": draw.standard_normal((40, 3)).astype(np.float32),
        },
        **options,
    )


def files_of(folder: str | Path, data: ArrayData, replicas: int = 1, micro: int = 1) -> BatchFiles:
    return BatchFiles(
        folder,
        "task",
        data,
        columns=["vector", "text", "label"],
        batch_size=8,
        seed=5,
        micro_batches=micro,
        replicas=replicas,
    )


@pytest.fixture(autouse=True)
def _short_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_files, "_STEPS_A_FILE", 4)


@pytest.mark.parametrize("options", [{}, {"group_size": 4}, {"buckets": (2, 8, 16)}])
def test_files_hold_the_batches_of_the_arrays_for_any_number_of_workers(
    tmp_path: Path, options: dict
) -> None:
    data = lengths_data(**options)
    for replicas, hosts, micro in ((1, 1, 1), (4, 1, 2), (4, 2, 1), (2, 2, 4)):
        files = files_of(tmp_path, data, replicas, micro)
        files.write(0, 14)
        local = replicas // hosts
        for host in range(hosts):
            share = range(host * local, host * local + local)
            ours = files.dataset(5, 14, replica_count=replicas, replicas=share)
            theirs = array_dataset(
                data,
                8,
                seed=5,
                start_step=5,
                replica_count=replicas,
                replicas=share,
                micro_batches=micro,
            )
            assert ours.options().autotune.enabled is False
            for name, spec in theirs.element_spec.items():
                assert ours.element_spec[name].is_compatible_with(spec), name
                assert ours.element_spec[name].shape.as_list() == spec.shape.as_list()
            found = list(ours.take(9 * local).as_numpy_iterator())
            with pytest.raises(tf.errors.FailedPreconditionError, match="infinite"):
                list(ours)
            for one, other in zip(found, theirs.take(9 * local).as_numpy_iterator(), strict=True):
                assert one.keys() == other.keys()
                for name, value in one.items():
                    np.testing.assert_array_equal(value, other[name])


def test_a_worker_reads_its_own_files_alone(tmp_path: Path) -> None:
    files = files_of(tmp_path, lengths_data(), replicas=2)
    files.write(0, 4)
    records = sorted(Path(files.folder).glob("*tfrecord*"))
    assert len(records) == 8
    for path in records[4:]:
        path.unlink()
    read = files.dataset(0, 4, replica_count=2, replicas=range(1))
    assert len(list(read.take(4))) == 4


def test_what_is_there_is_kept_and_what_was_not_finished_is_written_anew(tmp_path: Path) -> None:
    files = files_of(tmp_path, lengths_data())
    files.write(0, 8)
    times = {path: path.stat().st_mtime_ns for path in Path(files.folder).iterdir()}
    # As if the writer had been killed while it wrote the second file.
    half = Path(files._file(range(4, 8), 3))
    half.write_bytes(half.read_bytes()[:20])
    Path(files._done(range(4, 8))).unlink()
    files_of(tmp_path, lengths_data()).write(2, 10)
    kept = [p for p, time in times.items() if p.stat().st_mtime_ns == time]
    assert {path.name[:19] for path in kept} == {"000000000-000000004"}
    assert len(list(files.dataset(0, 10).take(10))) == 10


def test_other_data_or_another_seed_have_files_of_their_own(tmp_path: Path) -> None:
    names = [files_of(tmp_path, lengths_data()).folder, files_of(tmp_path, lengths_data()).folder]
    assert names[0] == names[1]
    changed = lengths_data()
    changed.arrays["label"] = changed.arrays["label"] + 1
    names += [files_of(tmp_path, changed).folder]
    names += [files_of(tmp_path, lengths_data(buckets=(8, 16))).folder]
    other = {"columns": ["label"], "batch_size": 8}
    names += [BatchFiles(tmp_path, "task", changed, seed=s, **other).folder for s in (5, 6)]
    assert len(set(names)) == 5


def test_any_file_system_of_tensorflow_serves() -> None:
    files = files_of("ram://batches", lengths_data())
    files.write(0, 6)
    assert len(list(files.dataset(1, 6).take(5))) == 5
    assert tf.io.gfile.listdir(files.folder)


def test_a_resumed_run_reads_on_and_learns_what_one_learns_from_arrays(tmp_path: Path) -> None:
    losses = []
    for files in (None, tmp_path / "batches"):
        found = []
        for steps in (6, 20):
            keras.utils.set_random_seed(1)
            trainer = toy.loop(
                TensorFlowLoop,
                toy.ToyEncoder(),
                toy.tasks(8, only=("nli", "teacher")),
                keras.optimizers.Adam(1e-2),
                folder=tmp_path / ("arrays" if files is None else "files"),
                batch_files=files,
            )
            found += [record["loss"] for record in trainer.run(steps).records]
        found += [record["loss"] for record in trainer.run(30).records[7:]]
        losses.append(found)
    assert len(losses[0]) == 15
    assert losses[0] == losses[1]


def test_workers_elsewhere_without_a_folder_are_refused_before_any_work() -> None:
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        encoder, optimizer = toy.ToyEncoder(), keras.optimizers.SGD(0.1)
    strategy.extended._device = "/job:worker/replica:0/task:0/device:CPU:0"
    with pytest.raises(ValueError, match="batch_files: expected a folder"):
        toy.loop(TensorFlowLoop, encoder, toy.tasks(only=("nli",)), optimizer, strategy=strategy)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a TensorFlow server in a process of its own."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with (tmp_path / "server.err").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, address], stdout=subprocess.PIPE, stderr=log
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield address
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_server_in_another_process_trains_as_this_one_does(
    server: str,
    repository: Path,
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("strategy_run.py"), "one", "1", "0"],
        env={**os.environ, "PYTHONPATH": str(repository), "WORKER": server},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    remote = json.loads(done.stdout.splitlines()[-1])
    local = trained(strategy_by_name("one"), tmp_path / "local", 0)
    assert [name for name, _ in remote["losses"]] == [name for name, _ in local["losses"]]
    for (_, loss), (_, expected) in zip(remote["losses"], local["losses"], strict=True):
        assert loss == pytest.approx(expected, rel=2e-5)
    assert remote["weights"] == pytest.approx(local["weights"], rel=2e-5)
    assert {path.name for path in (tmp_path / "one" / "0").iterdir()} == {
        "batches",
        "checkpoint-000000024",
        "logs",
    }
