"""`use-st5 export`: copies, other precisions, refusals to overwrite; on a tiny real USE-DAN."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from use_st5.hub.model_manifest import ModelManifest


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder without logging each request."""

    def log_message(self, *_arguments: object) -> None:
        pass


TEXTS = ["how old are you ?", "the train is late", "", "unseen words everywhere"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training run's folder that holds the exported model `tiny`, float32."""
    from use_st5.models.use_dan.model import USEDAN, USEDANConfig
    from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
    from use_st5.trainable_encoder import TrainableEncoder

    vocabulary = NGramVocabulary(
        unigrams=("how", "old", "are", "you", "train"),
        bigrams=("how old",),
        unigram_buckets=3,
        bigram_buckets=2,
    )
    config = USEDANConfig(num_embeddings=vocabulary.size, embedding_dim=8, hidden_dims=(8, 12))
    run = tmp_path_factory.mktemp("runs") / "tiny_run"
    run.mkdir()
    (run / "checkpoints").mkdir()
    encoder = USEDAN(config)
    encoder(np.ones((1, 1), np.int32))
    TrainableEncoder(
        encoder, NGramTokenizer(vocabulary), name="tiny", card="# Tiny\n\nIs tiny."
    ).export(run / "tiny")
    return run


def vectors(folder: Path) -> np.ndarray:
    from use_st5.encode.encoder import SentenceEncoder

    return SentenceEncoder(folder).encode(TEXTS)


def test_to_int8_and_back(use: Callable, model: Path, tmp_path: Path) -> None:
    result = use("export", str(model), "--to", "small", "--precision", "int8")
    assert result.exit_code == 0, result.stderr
    assert "precision int8" in result.stderr
    assert use("export", "small", "--to", "large", "--precision", "float32").exit_code == 0
    for name, precision in (("small", "int8"), ("large", "float32")):
        manifest = ModelManifest.read(tmp_path / name)
        assert (manifest.name, manifest.precision) == ("tiny", precision)
        manifest.check_contents(tmp_path / name)
        assert "Is tiny." in (tmp_path / name / "README.md").read_text()
    original, small = vectors(model / "tiny"), vectors(tmp_path / "small")
    assert (original * small).sum(axis=1).min() > 0.999
    assert np.abs(original - small).max() > 0
    np.testing.assert_allclose(vectors(tmp_path / "large"), small, atol=1e-6)


def test_the_same_precision_is_a_copy(use: Callable, model: Path, tmp_path: Path) -> None:
    for options in ((), ("--precision", "float32")):
        result = use("export", str(model / "tiny"), "--to", "copy", "--overwrite", *options)
        assert result.exit_code == 0, result.stderr
        copied = ModelManifest.read(tmp_path / "copy")
        assert copied == ModelManifest.read(model / "tiny")
        copied.check_contents(tmp_path / "copy")


def test_only_the_files_of_the_model_are_copied(use: Callable, model: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    source = Path(shutil.copytree(model / "tiny", tmp_path / "tiny"))
    (source / "assets" / "secret.txt").symlink_to(tmp_path / "secret.txt")
    (source / "notes").mkdir()
    (source / "notes" / "more.txt").write_text("more")
    # Hugging Face's cache stores a folder as such links: the user's own, whose content fits.
    (source / "saved_model.pb").rename(tmp_path / "blob")
    (source / "saved_model.pb").symlink_to(tmp_path / "blob")
    result = use("export", "tiny", "--to", "copy")
    assert result.exit_code == 0, result.stderr
    found = {p.relative_to(tmp_path / "copy").as_posix() for p in files(tmp_path / "copy")}
    assert found == {"use_st5.json", *ModelManifest.read(source).files}
    assert not (tmp_path / "copy" / "saved_model.pb").is_symlink()
    (source / "use_st5.json").unlink()
    result = use("export", "tiny", "--to", "other")
    assert result.exit_code == 1
    assert "found a link to" in result.stderr
    assert not (tmp_path / "other").exists()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_nothing_is_overwritten_unasked(use: Callable, model: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years")
    for options in ((), ("--overwrite",)):  # a folder without a model is never overwritten
        result = use("export", str(model), "--to", "precious", *options)
        assert result.exit_code == 1
        assert "Found thesis.txt" in result.stderr
    assert (precious / "thesis.txt").read_text() == "years"
    assert use("export", str(model), "--to", "mine").exit_code == 0
    assert "--overwrite" in use("export", str(model), "--to", "mine").stderr
    assert use("export", str(model), "--to", "mine", "--overwrite").exit_code == 0


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks as a user does: `shutil` needs a filter in Python 3.12, but 3.11.2 has none."""
    folder.mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)


def test_an_archive_holds_the_model_and_its_bytes_depend_on_nothing_else(
    use: Callable, model: Path, tmp_path: Path
) -> None:
    result = use("export", str(model), "--archive", "tiny.tar.gz", "--to", "tiny")
    assert result.exit_code == 0, result.stderr
    os.utime(tmp_path / "tiny" / "saved_model.pb", (0, 0))
    assert use("export", "tiny", "--archive", "again.tgz").exit_code == 0
    assert (tmp_path / "tiny.tar.gz").read_bytes() == (tmp_path / "again.tgz").read_bytes()
    unpack(tmp_path / "tiny.tar.gz", tmp_path / "unpacked")
    unpacked = ModelManifest.read(tmp_path / "unpacked")
    assert unpacked == ModelManifest.read(model / "tiny")
    unpacked.check_contents(tmp_path / "unpacked")


@pytest.mark.parametrize(
    ("option", "name"),
    [("--to", "."), ("--onnx", "a/b")],
)
def test_nothing_is_written_into_the_model(
    use: Callable, model: Path, option: str, name: str
) -> None:
    before = files(model)
    result = use("export", str(model), option, str(model / "tiny" / name), "--overwrite")
    assert result.exit_code == 2
    assert "outside of the model's own" in " ".join(result.stderr.split())
    assert files(model) == before


def test_a_page_for_browsers(use: Callable, model: Path, tmp_path: Path) -> None:
    for precision, options in (("small", ()), ("int8", ("--precision", "int8", "--overwrite"))):
        result = use("export", str(model), "--web", "page", *options)
        assert result.exit_code == 0, result.stderr
        assert f"MB, precision {precision}; open page/index.html in a browser" in result.stderr
        assert f'"precision": "{precision}"' in (tmp_path / "page" / "model.js").read_text()
    result = use("export", str(model), "--web", "page")
    assert (result.exit_code, "give --overwrite" in result.stderr) == (1, True)


def test_a_folder_for_a_runtime(use: Callable, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="the extra `litert` is not installed")
    for precision in ("float32", "int8"):
        options = ("--litert", "lite", "--precision", precision, "--overwrite", "--length", "16")
        result = use("export", str(model), *options)
        assert result.exit_code == 0, result.stderr
        assert f"precision {precision}; lite/reader.py runs it" in result.stderr
        facts = json.loads((tmp_path / "lite" / "model.json").read_text())
        assert (facts["precision"], facts["length"], facts["name"]) == (precision, 16, "tiny")
    assert "give --overwrite" in use("export", str(model), "--litert", "lite").stderr


def test_hub_loads_an_archive_by_its_url(
    use: Callable, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
    assert use("export", str(model), "--archive", "web/tiny.tar.gz").exit_code == 0
    monkeypatch.setenv("TFHUB_CACHE_DIR", str(tmp_path / "cache"))
    handler = functools.partial(QuietHandler, directory=tmp_path / "web")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        loaded = hub.load(f"http://127.0.0.1:{server.server_port}/tiny.tar.gz")
        server.shutdown()
    np.testing.assert_allclose(loaded(TEXTS), vectors(model / "tiny"), atol=1e-6)


def test_a_damaged_model_is_not_passed_on(use: Callable, model: Path, tmp_path: Path) -> None:
    assert use("export", str(model), "--to", "copy").exit_code == 0
    with (tmp_path / "copy" / "saved_model.pb").open("ab") as file:
        file.write(b"x")
    result = use("export", "copy", "--to", "second")
    assert result.exit_code == 1
    assert "saved_model.pb" in result.stderr
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ((), 2, "--web, --onnx or --litert"),
        (("--to", "new", "--length", "64"), 2, "needs --onnx or --litert"),
        (("--archive", "model.zip"), 2, "a name with .tar.gz"),
        (("--archive", "folder.tgz", "--overwrite"), 1, "found something else"),
        (("--archive", "there.tgz", "--to", "new"), 1, "give --overwrite"),
        (("--web", "new", "--precision", "float32"), 2, "float32 for all others"),
        (("--web", "page", "--precision", "small", "--to", "new"), 2, "small is for --web"),
        (("--web", "lite", "--overwrite"), 1, "use_st5: thesis.txt"),
        (("--litert", "lite", "--length", "3"), 1, "a fixed length of 16 or more, received 3"),
        (("--litert", "lite", "--overwrite"), 1, "use_st5: thesis.txt"),
    ],
)
def test_targets_are_refused_before_any_work(
    use: Callable, model: Path, tmp_path: Path, options: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "there.tgz").write_text("precious")
    (tmp_path / "folder.tgz").mkdir()
    (tmp_path / "lite").mkdir()
    (tmp_path / "lite" / "thesis.txt").touch()
    before = sorted(tmp_path.rglob("*"))
    result = use("export", str(model), *options)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "there.tgz").read_text() == "precious"


def test_sources_are_refused_in_one_line(use: Callable, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        (("absent", "--to", "new"), "'absent'"),
        (("empty", "--to", "new"), "one exported model, found []"),
        (("use_transformer_en", "--web", "new"), "a page in the browser runs no other model"),
    ):
        result = use("export", *arguments)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert message in result.stderr
        assert not (tmp_path / "new").exists()
