"""Targets that commands refuse to write to; commands with remote files on empty machines.

TensorFlow reads `file://HOST/PATH` as the local PATH; for anything else it is no path, just like
gs://BUCKET/PATH. (The `ram://` of other tests takes NAME for a folder if there is a NAME.run.)
"""

from __future__ import annotations

import itertools
import os
import signal
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.evaluation.toys import BagOfWords, words_task
from tests.machines import new_machine  # noqa: F401
from tests.toy_encoders import WORDS, Toy
from use_st5.cli import convert, embed, export, models, train
from use_st5.cli.files import local_copy
from use_st5.evaluation.runner import evaluate
from use_st5.io.files import cached_path, exists, names_in, upload
from use_st5.training.classifier import Classifier
from use_st5.training.loop import TrainingLoop

SENTENCES = [" ".join(words) for words in itertools.permutations(WORDS[:6], 3)]


@pytest.fixture
def base(tmp_path: Path, new_machine: Callable[[], Path]) -> str:  # noqa: F811
    """The test's own remote folder, and a machine with an empty disk."""
    del new_machine
    return f"file://bucket{tmp_path}/bucket"


@pytest.fixture
def start(base: str, toy_use_dan: Toy) -> str:
    """A model in the remote folder."""
    upload(toy_use_dan.folders["float32"], f"{base}/start")
    return f"{base}/start"


@pytest.fixture
def given(base: str, start: str) -> tuple[str, ...]:
    """The arguments of a training that do not depend on the machine."""
    pairs = "".join(f"{a}\t{b}\n" for a, b in itertools.pairwise(SENTENCES))
    topics = "".join(f"{text}\t{text.split()[0]}\n" for text in SENTENCES)
    files = {"pairs": f"anchor\tpositive\n{pairs}", "topics": f"text\tlabel\n{topics}"}
    for name, content in files.items():
        with tf.io.gfile.GFile(f"{base}/{name}.tsv", "w") as file:
            file.write(content)
    return (
        *("train", start, "--train", f"{base}/pairs.tsv=2", "--train", f"{base}/topics.tsv"),
        *("--batch-size", "8", "--steps", "8", "--evaluations", "4"),
        *("--learning-rate", "0.01", "--seed", "3"),
    )


@pytest.fixture
def told_to_end(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`told_to_end(6)` sends this process a SIGTERM after step 6."""
    whole = TrainingLoop._call

    def at(step: int) -> None:
        def call(self: TrainingLoop, *arguments: Any) -> dict[str, float]:
            values = whole(self, *arguments)
            if self.history.step == step:
                os.kill(os.getpid(), signal.SIGTERM)
            return values

        monkeypatch.setattr(TrainingLoop, "_call", call)

    return at


def vectors(folder: str) -> np.ndarray:
    return use_st5.load(folder).encode(SENTENCES[:4])


@pytest.mark.end_to_end
def test_a_training_goes_on_from_a_new_machine(
    use: Callable,
    base: str,
    given: tuple[str, ...],
    new_machine: Callable[[], Path],  # noqa: F811
    told_to_end: Callable[[int], None],
    tmp_path: Path,
) -> None:
    new_machine()
    result = use(*given, "--to", str(tmp_path / "whole"))
    assert result.exit_code == 0, result.stderr
    told_to_end(5)
    new_machine()
    command = (*given, "--to", f"{base}/tuned", "--batch-files", f"{base}/batches")
    result = use(*command)
    assert result.exit_code == 75, result.stderr
    assert "checkpoint-000000005" in names_in(f"{base}/tuned.run/checkpoints")
    assert not exists(f"{base}/tuned")
    home = new_machine()
    told_to_end(0)
    result = use(*command)
    assert result.exit_code == 0, result.stderr
    assert f"written: {base}/tuned" in result.stderr
    assert f"{base}/tuned.run/checkpoints/logs" in result.stderr
    assert {each.name for each in home.iterdir()} == {"cache"}, "all else lies elsewhere"
    # The batches of one training were files, those of the other were arrays.
    np.testing.assert_array_equal(vectors(f"{base}/tuned"), vectors(str(tmp_path / "whole")))
    batches = names_in(f"{base}/batches")
    assert sorted(name.rpartition("-")[0] for name in batches) == ["pairs", "topics"]
    card = cached_path(f"{base}/tuned/README.md").read_text()
    assert "pairs.tsv" in card
    assert {"run.png", "history.json", "classifier.json"} <= {*names_in(f"{base}/tuned.run")}
    new_machine()
    classifier = Classifier.load(f"{base}/tuned.run/classifier.keras")
    probabilities = classifier.probabilities(SENTENCES[:2])
    assert probabilities.shape == (2, 6)
    head = keras.models.load_model(cached_path(f"{base}/tuned.run/classifier.keras"))
    by_keras = np.asarray(head(vectors(f"{base}/tuned")[:2]))
    np.testing.assert_allclose(probabilities, by_keras, atol=1e-6)
    result = use(*command, "--seed", "4")
    assert result.exit_code == 1
    assert f"{base}/tuned.run: this run was begun with another seed" in result.stderr
    anew = ("--train", f"{base}/pairs.tsv", "--steps", "1", "--evaluations", "1", "--overwrite")
    result = use("train", f"{base}/start", *command[-4:], *anew)
    assert result.exit_code == 0, result.stderr
    assert names_in(f"{base}/tuned.run/checkpoints") == ["logs"]


def test_what_is_there_is_kept_unless_told(
    use: Callable, base: str, given: tuple[str, ...]
) -> None:
    for to, message in (
        (f"{base}/start", "start exists; give --overwrite"),
        ("file://bucket", "file://bucket: expected a path in the bucket"),
    ):
        result = use(*given, "--to", to)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert message in result.stderr


def test_a_model_is_exported_packed_and_converted(
    use: Callable, base: str, start: str, tmp_path: Path
) -> None:
    from tests.tiny_bert import write_tiny_bert

    upload(cached_path(start), f"{base}/run/model")
    result = use("export", f"{base}/run", "--to", f"{base}/small", "--precision", "int8")
    assert result.exit_code == 0, result.stderr
    assert f"{base}/small: " in result.stderr
    result = use("export", start, "--to", f"{base}/copy", "--archive", f"{base}/copy.tar.gz")
    assert result.exit_code == 0, result.stderr
    np.testing.assert_array_equal(vectors(f"{base}/copy"), vectors(start))
    with tarfile.open(cached_path(f"{base}/copy.tar.gz")) as archive:
        assert "saved_model.pb" in archive.getnames()
    assert "exists; give --overwrite" in use("export", start, "--to", f"{base}/copy").stderr
    assert "found ['copy', 'small', 'start']" in use("export", base, "--to", "m").stderr
    write_tiny_bert(tmp_path / "bert", head=False)
    upload(tmp_path / "bert", f"{base}/bert")
    result = use("convert", f"{base}/bert", "--to", f"{base}/converted")
    assert result.exit_code == 0, result.stderr
    assert use_st5.load(f"{base}/converted").name == "converted"


def test_texts_are_embedded(use: Callable, base: str, start: str) -> None:
    with tf.io.gfile.GFile(f"{base}/texts.txt", "w") as file:
        file.write("\n".join(SENTENCES[:4]) + "\n")
    command = ("embed", f"{base}/texts.txt", "-o", f"{base}/vectors.npy", "--model", start)
    result = use(*command)
    assert result.exit_code == 0, result.stderr
    assert f"written: {base}/vectors.npy" in result.stderr
    found = np.load(cached_path(f"{base}/vectors.npy"))
    np.testing.assert_allclose(found, vectors(start), atol=1e-6)
    assert "exists; give --overwrite" in use(*command).stderr
    assert use(*command, "--overwrite").exit_code == 0


def test_vectors_that_could_not_be_uploaded_are_kept(
    use: Callable, base: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(SENTENCES[:4]) + "\n")
    command = ("embed", f"{tmp_path}/texts.txt", "-o", f"{base}/v.npy", "--model", start)

    def refuse(*_: object) -> None:
        raise OSError("no network")

    with monkeypatch.context() as patch:
        patch.setattr(embed, "upload", refuse)
        assert "no network" in use(*command).stderr
    result = use(*command)
    assert "continuing" in result.stderr
    assert "after 4 of 4 rows" in result.stderr
    assert np.load(cached_path(f"{base}/v.npy")).shape[0] == 4


LOCAL = [
    ("evaluate", "use_dan_en", "--tasks", "weat", "--out", "ram://x/y.json"),
    ("mine", "pairs.tsv", "--to", "ram://x/y.tsv"),
    ("bitext", "texts.txt", "texts.txt", "--to", "ram://x/y.tsv"),
    ("index", "texts.txt", "--to", "ram://x/y"),
    ("similarity", "a", "b", "--heatmap", "ram://x/y.png"),
    ("report", "record.json", "--out", "ram://x/y"),
]


@pytest.mark.parametrize("arguments", LOCAL, ids=lambda arguments: " ".join(arguments[:2]))
def test_what_writes_here_alone_says_so(
    arguments: tuple[str, ...], use: Callable, base: str, tmp_path: Path
) -> None:
    del base
    files = {"texts.txt": "a\n", "words.txt": "a b\nc\n", "pairs.tsv": "anchor\tpositive\na\tb\n"}
    for name, text in files.items():
        Path(name).write_text(text)
    evaluate(BagOfWords(), [words_task()], Path()).write("record.json")
    result = use(*arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.stderr
    assert "expected a local" in result.stderr
    assert "ram://x" in result.stderr
    assert not exists("ram://x")


def test_an_unknown_scheme_and_nothing_are_one_line(use: Callable, base: str) -> None:
    result = use("train", "use_dan_en", "--train", "s4://x/y.tsv", "--to", "m")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "s4://x/y.tsv: expected a scheme that TensorFlow knows" in result.stderr
    assert "gs://" in result.stderr
    result = use("train", "use_dan_en", "--train", f"{base}/y.tsv", "--to", "m")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert f"{base}/y.tsv: expected a file or a folder" in result.stderr
    with pytest.raises(FileNotFoundError):
        local_copy(f"{base}/nothing")
    assert local_copy("here") == Path("here")
    assert train.HELP.count("gs://")


WRITERS = [
    ("embed", "texts.txt", "-o", "target", "--format", "npy", "--overwrite"),
    ("evaluate", "use_dan_en", "--tasks", "weat", "--out", "target"),
    ("convert", "texts.txt", "--to", "target", "--overwrite"),
    ("export", "use_dan_en", "--to", "target", "--overwrite"),
    ("report", "record.json", "--out", "folder"),
]


@pytest.fixture
def no_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts and a record, where the test fails if a command begins to work."""
    (tmp_path / "texts.txt").write_text("one\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("a b\nc\n", encoding="utf-8")
    evaluate(BagOfWords(), [words_task()], tmp_path).write(tmp_path / "record.json")

    def work(*_: Any, **__: Any) -> None:
        raise AssertionError("the command began to work")

    for module in (models, export):
        monkeypatch.setattr(module, "start_tensorflow", work)
    for module in (convert, export):
        monkeypatch.setattr(module, "start_keras", work)
    monkeypatch.setattr(use_st5, "load", work, raising=False)
    monkeypatch.setattr("use_st5.evaluation.report.write_report", work)
    return tmp_path


@pytest.mark.process
def test_what_another_process_writes_is_refused_before_any_work(
    use: Callable, no_work: Path, written_elsewhere: Callable[..., int]
) -> None:
    ids = {
        "target": written_elsewhere(no_work / "target", inside=False),
        "folder": written_elsewhere(no_work / "folder", inside=True),
    }
    for arguments in WRITERS:
        result = use(*arguments)
        assert result.exit_code == 1, arguments
        name = "folder" if "folder" in arguments else "target"
        said = f"{no_work / name} is being written by process {ids[name]} "
        assert said in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", WRITERS)
def test_what_cannot_be_written_is_refused_before_any_work(
    use: Callable, no_work: Path, arguments: tuple[str, ...]
) -> None:
    """A file where a folder must be, and a device."""
    at = arguments.index("target" if "target" in arguments else "folder")

    def to(path: str) -> Any:
        return use(*arguments[:at], path, *arguments[at + 1 :])

    before = sorted(no_work.rglob("*"))
    for result in (to("texts.txt/x"), to("/dev/null")):
        assert result.exit_code == 1, result.stderr
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
    assert sorted(no_work.rglob("*")) == before
    assert not Path(os.devnull).is_file()
