"""The engine of a model: its choice, its ONNX file, and ONNX Runtime."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.toy_encoders import Toy
from use_st5.encode.encoder import SentenceEncoder
from use_st5.engines.engine import Session
from use_st5.engines.onnx_graph import MEANS, GraphWriter
from use_st5.engines.onnx_model import add_onnx_model, onnx_model
from use_st5.hub.model_manifest import ModelManifest, check_replaceable, describe_files
from use_st5.models.engines import family_engine
from use_st5.models.use_transformer.engine import ENGINE

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_what_an_encoder_knows(toy_use_dan: Toy, tmp_path: Path) -> None:
    folder = toy_use_dan.folders["int8"]
    one, other = use_st5.load(folder, backend="onnx"), use_st5.load(folder)
    assert one is use_st5.load(folder, backend="onnx")
    assert one is not other
    assert (one.backend, other.backend, one.model) == ("onnx", "tensorflow", None)
    for name in ("name", "identity", "dimension", "max_length", "card"):
        assert getattr(one, name) == getattr(other, name)
    assert one.truncated(["a b c"] * 3).tolist() == []
    with pytest.raises(ValueError, match="Expected an encoder of the backend 'tensorflow'"):
        one.save(tmp_path / "copy")


def test_it_encodes_and_compares_as_with_tensorflow(toy_use_dan: Toy) -> None:
    folder = toy_use_dan.folders["float32"]
    one, other = SentenceEncoder(folder, backend="onnx"), SentenceEncoder(folder)
    texts = ["the cat sat", "", "how old are you"]
    for metric in ("cosine", "angular", "dot"):
        np.testing.assert_allclose(
            one.similarity(texts, metric=metric), other.similarity(texts, metric=metric), atol=1e-6
        )
    single = one.encode("the cat", normalize_embeddings=True)
    assert (single.shape, single.dtype) == ((16,), np.float32)
    np.testing.assert_array_equal(one.encode(" ", on_empty="zero"), np.zeros(16))
    assert one.encode([]).shape == (0, 16)


def test_a_pickle_has_the_backend(toy_use_dan: Toy) -> None:
    encoder = use_st5.load(toy_use_dan.folders["int8"], backend="onnx")
    again = pickle.loads(pickle.dumps(encoder))
    assert again.backend == "onnx"
    np.testing.assert_array_equal(again.encode("the cat"), encoder.encode("the cat"))


def test_other_models_are_refused(toy_use_dan: Toy, tmp_path: Path) -> None:
    folder = shutil.copytree(toy_use_dan.folders["int8"], tmp_path / "other")
    record = folder / "use_st5.json"
    record.write_text(record.read_text("utf-8").replace('"use_dan"', '"other"'), encoding="utf-8")
    with pytest.raises(ValueError, match="runs no other.*tensorflow"):
        SentenceEncoder(folder, backend="onnx")
    root = tf.train.Checkpoint()
    root.call = tf.function(lambda: tf.constant(1))
    tf.saved_model.save(root, str(tmp_path / "foreign"))
    with pytest.raises(ValueError, match="needs use_st5.json"):
        SentenceEncoder(tmp_path / "foreign", backend="onnx")
    with pytest.raises(ValueError, match="Unknown backend: 'torch'"):
        use_st5.load("use_dan_en", backend="torch")  # type: ignore[arg-type]


@pytest.mark.parametrize("family", ["use_dan", "use_transformer", "bert"])
def test_damaged_configurations_are_refused(
    family: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Values of `config` are missing, or have another type."""
    toy = request.getfixturevalue(f"toy_{family}").folders["float32"]
    folder = shutil.copytree(toy, tmp_path / "damaged")
    record = folder / "use_st5.json"
    content = json.loads(record.read_text("utf-8"))
    used = {
        "use_dan": ("activation", "embedding_dim", "hidden_dims"),
        "use_transformer": ("hidden_dim", "num_layers", "num_heads", "early_output", "dimension"),
        "bert": ("hidden_dim", "num_layers", "max_positions", "activation", "layer_norm_epsilon"),
    }
    damages = [{}, {"config": 1}, *({"config": _without(content, name)} for name in used[family])]
    for number, config in enumerate(damages):
        changed = {**content, "config": config, "model_hash": f"{number:064x}"}
        record.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(ValueError, match=rf"use_st5\.json: \$\.config .* {family} "):
            SentenceEncoder(folder, backend="onnx")


def _without(content: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in content["config"]["config"].items() if key != name}


@pytest.mark.process
def test_commands_run_in_a_light_installation(
    fresh_python: Callable[..., str], repository: Path, tmp_path: Path
) -> None:
    command = (repository / "tests/engines/light.py", repository / "use_st5" / "__main__.py")
    texts = tmp_path / "texts.txt"
    texts.write_text("How old are you?\nThe train is late.\n", "utf-8")
    found = fresh_python(*command, "search", texts, "What is your age?", "--backend", "onnx")
    assert found.splitlines()[1].endswith("How old are you?")
    found = fresh_python(*command, "embed", texts, "--backend", "onnx")
    assert len(found.splitlines()) == 2
    found = fresh_python(*command, "similarity", "a", "a", "--backend", "onnx")
    assert found.splitlines()[1].split("\t")[2:] == ["1.000", "1.000"]


@pytest.mark.process
def test_an_exported_model_and_its_classifier_in_a_light_installation(
    fresh_python: Callable[..., str], repository: Path, toy_use_transformer: Toy, tmp_path: Path
) -> None:
    import keras

    folder, work = tmp_path / "tuned", tmp_path / "tuned.run"
    shutil.copytree(toy_use_transformer.folders["int8"], folder)
    add_onnx_model(folder, ModelManifest.read(folder), family_engine)
    work.mkdir()
    classes = keras.layers.Dense(2, activation="softmax", name="classes")
    keras.Sequential([keras.Input((16,)), classes]).save(work / "classifier.keras")
    (work / "classifier.json").write_text('{"labels": ["a", "b"], "accuracy": {}}')
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat\nhow old are you\n", "utf-8")
    command = (repository / "tests/engines/light.py", repository / "use_st5" / "__main__.py")
    found = fresh_python(
        *command, "classify", work / "classifier.keras", texts, "--backend", "onnx"
    )
    assert [line.split("\t")[2] for line in found.splitlines()[1:]] == [
        "the cat",
        "how old are you",
    ]


def test_it_is_made_once(toy_use_transformer: Toy) -> None:
    folder = toy_use_transformer.folders["int8"]
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    made = onnx_model(folder, manifest, ENGINE)
    content = made.read_bytes()
    status = made.stat()
    assert onnx_model(folder, manifest, ENGINE).stat().st_ino == status.st_ino
    made.write_bytes(content[:-1] + b"\0")
    assert onnx_model(folder, manifest, ENGINE).read_bytes() == content
    made.unlink()
    assert onnx_model(folder, manifest, ENGINE).read_bytes() == content


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_another_copy_of_a_model_has_no_influence(toy_use_transformer: Toy, tmp_path: Path) -> None:
    """Neither a damaged copy nor another model that claims the same hash."""
    folder, other = (toy_use_transformer.folders[name] for name in ("int8", "float32"))
    manifest, changed = (ModelManifest.read(each) for each in (folder, other))
    assert manifest is not None
    assert changed is not None
    claimed = onnx_model(
        other, dataclasses.replace(changed, model_hash=manifest.model_hash), ENGINE
    )
    copy = shutil.copytree(folder, tmp_path / "model")
    damage(copy / "variables" / "variables.data-00000-of-00001")
    with pytest.raises(ValueError, match=r"Expected sha256"):
        onnx_model(copy, manifest, ENGINE)
    config = {"config": {**manifest.config["config"], "num_heads": 2}}
    configured = onnx_model(folder, dataclasses.replace(manifest, config=config), ENGINE)
    assert onnx_model(folder, manifest, ENGINE) not in (claimed, configured)


def test_a_cache_that_cannot_be_written_costs_time_alone(
    toy_use_transformer: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = toy_use_transformer.folders["int8"]
    expected = SentenceEncoder(folder, backend="onnx").encode("a b")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="Set XDG_CACHE_HOME"):
        found = SentenceEncoder(folder, backend="onnx").encode("a b")
    assert (found == expected).all()


def test_a_configuration_without_a_layer_is_refused(toy_use_transformer: Toy) -> None:
    folder = toy_use_transformer.folders["int8"]
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    shape = manifest.config["config"]
    fewer = {**shape, "num_layers": shape["num_layers"] - 1, "early_output": None}
    with pytest.raises(ValueError, match="do not belong together"):
        onnx_model(folder, dataclasses.replace(manifest, config={"config": fewer}), ENGINE)
    longer = {**shape, "max_length": 10**12}
    with pytest.raises(ValueError, match="max_length: expected 65,536 or less"):
        onnx_model(folder, dataclasses.replace(manifest, config={"config": longer}), ENGINE)


def test_it_may_be_beside_the_model(toy_use_transformer: Toy, tmp_path: Path) -> None:
    folder = shutil.copytree(toy_use_transformer.folders["int8"], tmp_path / "model")
    before = ModelManifest.read(folder)
    add_onnx_model(folder, before, family_engine)
    manifest = ModelManifest.read(folder)
    assert before is not None
    assert manifest is not None
    assert manifest.model_hash == before.model_hash == describe_files(folder)[1]
    manifest.check_contents(folder)
    assert onnx_model(folder, manifest, ENGINE) == folder / "engine.onnx"
    check_replaceable(folder)
    damage(folder / "engine.onnx")
    with pytest.raises(ValueError, match=r"sha256 .*engine\.onnx, found"):
        onnx_model(folder, manifest, ENGINE)


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    """The graph of `2 · means`."""
    graph = GraphWriter()
    vectors = graph.op("Mul", graph.input(MEANS), graph.weight(np.array(2, np.float32)))
    path = tmp_path / "graph.onnx"
    path.write_bytes(graph.model(vectors, 3, {}).SerializeToString())
    return path


def test_it_runs_a_graph(graph_file: Path) -> None:
    session = Session(graph_file)
    assert session.inputs == [MEANS]
    assert session.run({MEANS: np.array([[1, 2, 3]], np.float32)}).tolist() == [[2, 4, 6]]


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_opens_it_again(
    graph_file: Path, fresh_python: Callable[..., str]
) -> None:
    """A fork does not have the threads of a session, and the session's end would wait for them."""
    script = f"""if True:
        import os
        from pathlib import Path
        import numpy as np
        from use_st5.engines.engine import Session

        session = Session(Path({str(graph_file)!r}))
        given = {{"means": np.ones((1, 3), np.float32)}}
        session.run(given)
        child = os.fork()
        if not child:  # It ends as the processes of multiprocessing do.
            os._exit(session.run(given).tolist() != [[2.0] * 3])
        print(os.waitpid(child, 0)[1])
    """
    assert fresh_python("-c", script, timeout=60).split() == ["0"]


def test_a_damaged_file_is_named(graph_file: Path) -> None:
    graph_file.write_bytes(graph_file.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"graph\.onnx: .*cannot read it"):
        Session(graph_file)
