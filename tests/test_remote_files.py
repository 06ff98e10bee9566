"""Files on TensorFlow's file system in memory, `ram://`, which stands for gs:// and the like."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.toy_encoders import Toy
from tests.training import toy as toy_training
from use_st5 import _remote_files
from use_st5._files import atomic_path, sole_writer
from use_st5._remote_files import (
    as_written,
    brought,
    carried,
    check_inner,
    exists,
    here,
    names_in,
    place_for,
    remote_path,
    remove,
)
from use_st5.data.pair_reader import PairReader
from use_st5.data.prepared import open_prepared, prepare
from use_st5.data.prepared_column import PreparedColumn
from use_st5.own_data.sources import open_source
from use_st5.training.trainer import Trainer


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def base(request: pytest.FixtureRequest) -> str:
    """A folder in memory of the test's own."""
    return f"ram://{request.node.name.replace('[', '_').replace(']', '')}"


def written(path: str, text: str) -> str:
    tf.io.gfile.makedirs(path.rpartition("/")[0])
    if tf.io.gfile.exists(path):  # The one in memory would append.
        tf.io.gfile.remove(path)
    with tf.io.gfile.GFile(path, "w") as file:
        file.write(text)
    return path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gs://bucket/a b/c.tsv", "gs://bucket/a b/c.tsv"),
        (Path("gs://bucket/runs/"), "gs://bucket/runs"),
        ("ram://x/", "ram://x"),
        ("C:/Users/x", None),
        ("/tmp/gs:/x", None),
        ("https://example.org/x", None),
        ("hf://datasets/x", None),
        ("plain", None),
        ("gs:", None),
    ],
)
def test_a_scheme_tells_what_lies_elsewhere(path: str | Path, expected: str | None) -> None:
    assert remote_path(path) == expected


def test_a_copy_is_made_anew_when_the_file_changed(base: str) -> None:
    path = written(f"{base}/pairs.tsv", "one")
    first = brought(path)
    assert (first.name, first.read_text()) == ("pairs.tsv", "one")
    assert brought(path) == first
    written(path, "another")
    assert brought(path).read_text() == "another"
    assert brought(first) == first
    with pytest.raises(FileNotFoundError, match=r"nothing.tsv: expected a file or a folder"):
        brought(f"{base}/nothing.tsv")


def test_here_and_elsewhere_are_asked_alike(base: str, tmp_path: Path) -> None:
    path = written(f"{base}/folder/a.txt", "one")
    (tmp_path / "a.txt").write_text("one")
    for folder in (f"{base}/folder", Path(f"{base}/folder"), tmp_path):
        assert names_in(folder) == ["a.txt"]
        assert exists(folder)
        assert not exists(f"{folder}/b.txt")
        with here(f"{folder}/a.txt") as local:
            assert local.read_text() == "one"
        with here(f"{folder}/b.txt") as local:
            assert not local.exists()
    assert (as_written(Path(path)), as_written(tmp_path)) == (path, str(tmp_path))
    assert names_in(f"{base}/none") == names_in(tmp_path / "none") == []
    assert place_for(path) == place_for(path) != place_for(f"{path}2")
    check_inner(path)
    for whole in ("gs://bucket", "gs://bucket/"):
        with pytest.raises(ValueError, match="gs://bucket: expected a path in the bucket"):
            check_inner(whole)
    with pytest.raises(ValueError, match="s4://x: expected a scheme that TensorFlow knows"):
        exists("s4://x")


def test_a_folder_is_carried_with_what_describes_it_last(
    base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, copy = [], _remote_files._copy
    monkeypatch.setattr(
        _remote_files, "_copy", lambda files, a, b: (order.append(b), copy(files, a, b))
    )
    for content in ("old", "new"):
        with carried(f"{base}/model") as local:
            (local / "inner").mkdir(parents=True)
            for name in ("inner/z.json", "use_st5.json", "inner/weights", content):
                (local / name).write_text(content)
    assert order[-2:] == [f"{base}/model/inner/z.json", f"{base}/model/use_st5.json"]
    copied = brought(f"{base}/model")
    found = sorted(p.relative_to(copied).as_posix() for p in copied.rglob("*") if p.is_file())
    assert found == ["inner/weights", "inner/z.json", "new", "use_st5.json"]
    assert (copied / "inner/weights").read_text() == "new"
    remove(f"{base}/model")
    assert not tf.io.gfile.exists(f"{base}/model")


def test_the_house_s_writer_carries_and_a_failed_one_carries_nothing(base: str) -> None:
    with sole_writer(f"{base}/a.txt"), atomic_path(Path(f"{base}/a.txt")) as temporary:
        temporary.write_text("a")
    assert brought(f"{base}/a.txt").read_text() == "a"
    with pytest.raises(RuntimeError), atomic_path(f"{base}/b.txt") as temporary:
        temporary.write_text("b")
        raise RuntimeError
    with pytest.raises(FileNotFoundError, match="found nothing"), atomic_path(f"{base}/b.txt"):
        pass
    assert names_in(base) == ["a.txt"]
    with (
        pytest.raises(ValueError, match="expected a local folder"),
        sole_writer(f"{base}/run", inside=True),
    ):
        pass


def test_prepared_examples_and_readers(base: str, toy_use_dan: Toy) -> None:
    path = written(f"{base}/pairs.tsv", "anchor\tpositive\nthe cat\ta dog\nhow old\tare you\n")
    columns = {name: PreparedColumn("ids", max_tokens=8) for name in ("anchor", "positive")}
    reader = PairReader(path)
    arrays = prepare(reader, columns, toy_use_dan.vectorizer, f"{base}/prepared")
    again = open_prepared(Path(f"{base}/prepared"), columns=columns)
    for name, array in arrays.items():
        np.testing.assert_array_equal(again[name], array)
    assert reader.report.examples == len(arrays["anchor"])
    with pytest.raises(FileExistsError, match="exists"):
        prepare(reader, columns, toy_use_dan.vectorizer, f"{base}/prepared")
    assert open_source(f"{path}=2").rate == 2
    assert open_source(path).kind.name == "pairs"


def test_a_model_is_exported_loaded_and_trained_again(base: str, toy_use_dan: Toy) -> None:
    encoder = use_st5.TrainableEncoder(toy_use_dan.model, toy_use_dan.vectorizer)
    encoder.export(f"{base}/model")
    texts = ["the cat sat", "how old are you"]
    expected = encoder.encode(texts)
    np.testing.assert_allclose(use_st5.load(f"{base}/model").encode(texts), expected, atol=1e-6)
    learner = use_st5.TrainableEncoder.load(f"{base}/model")
    np.testing.assert_allclose(learner.encode(texts), expected, atol=1e-6)


def test_a_run_s_checkpoints_lie_elsewhere_and_continue_exactly(base: str, tmp_path: Path) -> None:
    def trained(folder: str | Path, steps: int) -> Trainer:
        keras.utils.set_random_seed(0)
        trainer = Trainer(
            toy_training.ToyEncoder(dropout=0.2),
            toy_training.tasks(only=("nli",)),
            keras.optimizers.Adam(1e-2),
            folder=folder,
            steps_per_call=2,
            checkpoint_every=2,
            evaluate=lambda: {"score": 1.0},
            evaluate_every=4,
            batch_files=f"{base}/batches",
            tensorboard=True,
            jit_compile=False,
            progress=False,
        )
        trainer.run(steps)
        return trainer

    whole = trained(tmp_path / "whole", 12)
    trained(f"{base}/run", 8)
    assert {"checkpoint-000000004", "checkpoint-000000006", "checkpoint-000000008"} <= {
        *names_in(f"{base}/run")
    }
    # A checkpoint that was not carried to its end does not count.
    written(f"{base}/run/checkpoint-000000010/values.safetensors", "half")
    again = trained(Path(f"{base}/run"), 12)
    assert [record["step"] for record in again.history.records] == [10, 12]
    for one, other in zip(whole.encoder.get_weights(), again.encoder.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    again.restore_best()
    assert again.history.best_step == 4
    assert {"logs", "checkpoint-000000004"} <= {*names_in(f"{base}/run")}
