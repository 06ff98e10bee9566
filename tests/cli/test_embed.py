"""`use-st5 embed`: rows, formats, errors, and interrupted work."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from use_st5.beam import corpus as corpus_module
from use_st5.beam.corpus import CorpusReport
from use_st5.cli import embed as embed_module
from use_st5.cli.files import open_input

TEXTS = ["Ein Satz.", "", "tab\there", "emoji 🙂 and 日本語", 'a "quote" and \\', "  spaces  "]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets two rows per chunk, so that a few lines make several chunks."""
    monkeypatch.setattr(embed_module, "_CHUNK_ROWS", 2)


def write(path: Path, texts: list[str]) -> None:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_npy_has_one_row_per_line_in_order(use: Callable, fake: Any, tmp_path: Path) -> None:
    write(tmp_path / "texts.txt", TEXTS)
    result = use("embed", "texts.txt", "-o", "vectors.npy")
    assert result.exit_code == 0, result.stderr
    vectors = np.load(tmp_path / "vectors.npy")
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, fake.encode(TEXTS))
    assert names(tmp_path) == ["texts.txt", "vectors.npy"]
    assert "6 rows of 8" in result.stderr
    assert result.stdout == ""


def test_jsonl_gives_texts_and_every_float_back(use: Callable, fake: Any, tmp_path: Path) -> None:
    write(tmp_path / "texts.txt", TEXTS)
    assert use("embed", "texts.txt", "-o", "vectors.jsonl").exit_code == 0
    lines = (tmp_path / "vectors.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    rows = [json.loads(line) for line in lines]
    assert [row["text"] for row in rows] == TEXTS
    vectors = np.array([row["embedding"] for row in rows], np.float32)
    np.testing.assert_array_equal(vectors, fake.encode(TEXTS))


def test_stdin_and_format_and_batch_size(use: Callable, fake: Any, tmp_path: Path) -> None:
    arguments = ("embed", "-", "-o", "vectors.dat", "--format", "npy", "--batch-size", "3")
    assert use(*arguments, input="one\r\ntwo").exit_code == 0
    with (tmp_path / "vectors.dat").open("rb") as stream:
        np.testing.assert_array_equal(np.load(stream), fake.encode(["one", "two"]))
    assert fake.batch_sizes[0] == 3


@pytest.mark.parametrize("name", ["none.npy", "none.jsonl"])
def test_no_lines_give_no_rows(use: Callable, fake: Any, tmp_path: Path, name: str) -> None:
    assert use("embed", "-", "-o", name, input="").exit_code == 0
    if name.endswith(".npy"):
        assert np.load(tmp_path / name).shape == (0, 8)
    else:
        assert (tmp_path / name).read_bytes() == b""


def test_existing_output_needs_overwrite(use: Callable, fake: Any, tmp_path: Path) -> None:
    (tmp_path / "vectors.npy").write_text("precious")
    result = use("embed", "-", "-o", "vectors.npy", input="one\n")
    assert result.exit_code == 1
    assert "--overwrite" in result.stderr
    assert (tmp_path / "vectors.npy").read_text() == "precious"
    assert use("embed", "-", "-o", "vectors.npy", "--overwrite", input="one\n").exit_code == 0
    assert np.load(tmp_path / "vectors.npy").shape == (1, 8)
    # Never the input, under any of its names.
    (tmp_path / "texts.txt").write_text("one\n")
    (tmp_path / "link.npy").symlink_to("texts.txt")
    refused = use("embed", "texts.txt", "-o", "link.npy", "--overwrite")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert "link.npy: expected another file than the input" in refused.stderr
    assert (tmp_path / "texts.txt").read_text() == "one\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("absent.txt", "-o", "v.npy"), 1, "found none"),
        (("-", "-o", "v.doc"), 2, "give --format"),
        (("-", "-o", ".", "--format", "npy", "--overwrite"), 1, "found something else"),
        (("-", "-o", "v.npy", "--model", "absent"), 1, "Expected a model, found none."),
        (("-", "--format", "npy"), 2, "jsonl only"),
    ],
)
def test_errors_are_one_line(
    use: Callable, fake: Any, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = use("embed", *arguments, input="one\n")
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert names(tmp_path) == []


def test_a_line_that_is_not_utf8_is_named_before_any_work(
    use: Callable, fake: Any, tmp_path: Path
) -> None:
    (tmp_path / "latin.txt").write_bytes(b"good\ncaf\xe9\n")
    result = use("embed", "latin.txt", "-o", "v.npy")
    assert result.exit_code == 1
    assert "latin.txt:2" in result.stderr
    assert "0xe9" in result.stderr
    assert fake.encoded == []


@pytest.mark.parametrize("output", [("-o", "v.jsonl"), ()])
def test_a_packed_file_is_unpacked(
    output: tuple[str, ...], use: Callable, fake: Any, tmp_path: Path
) -> None:
    packed = gzip.compress("é\ntwo\n".encode())
    (tmp_path / "a.txt.gz").write_bytes(packed)
    for result in (
        use("embed", "a.txt.gz", *output),
        use("embed", "-", *output, "--overwrite", input=packed),
    ):
        assert result.exit_code == 0, result.stderr
        lines = (tmp_path / "v.jsonl").read_text() if output else result.stdout
        assert [json.loads(line)["text"] for line in lines.splitlines()] == ["é", "two"]
    (tmp_path / "a.txt.gz").write_bytes(packed[:-9])
    damaged = use("embed", "a.txt.gz", *output, "--overwrite")
    assert "a.txt.gz: expected a complete gzip file, found damage" in damaged.stderr


def test_a_column_of_a_table_has_a_row_for_each_text(
    use: Callable, fake: Any, tmp_path: Path
) -> None:
    rows = [("1", "a, b"), ("2", ""), ("3", "c\nd"), ("4", "e")]
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "Body"), *rows])
    result = use("embed", "a.csv", "--column", "body", "-o", "v.npy")
    assert result.exit_code == 0, result.stderr
    assert "which a quote joins (first: lines 4 to 5): 1" in result.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), fake.encode([t for _, t in rows]))
    lines = [json.dumps({"id": number, "body": text}) for number, text in rows]
    write(tmp_path / "a.jsonl", lines)
    streamed = use("embed", "a.jsonl", "--column", "body").stdout
    assert [json.loads(line)["text"] for line in streamed.splitlines()] == [t for _, t in rows]
    write(tmp_path / "a.jsonl", [*lines, "{"])
    refused = use("embed", "a.jsonl", "--column", "body")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert "a.jsonl:5: invalid JSON" in refused.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("embed", "a.csv"),
        ("search", "a.txt", "--file", "a.csv"),
        ("bitext", "a.csv", "a.txt", "--to", "pairs.tsv"),
    ],
)
def test_the_lines_of_a_table_are_no_texts(
    command: tuple[str, ...], use: Callable, fake: Any, tmp_path: Path
) -> None:
    write(tmp_path / "a.csv", ["id,body", '1,"one, two"'])
    write(tmp_path / "a.txt", ["one", "two"])
    result = use(*command)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.stderr
    assert "give --column with the column of the texts, one of 'id', 'body'" in result.stderr
    assert fake.encoded == []
    wrong = use(*command, "--column", "text")
    assert wrong.exit_code == 1
    assert "text" in wrong.stderr


def test_a_pipe_is_copied_to_a_file_that_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard input can be read twice, and not even SIGKILL would leave a file behind."""
    reader, writer = os.pipe()
    os.write(writer, b"one\ntwo\n")
    os.close(writer)
    with os.fdopen(reader) as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        with open_input("-", beside=tmp_path / "v.npy") as stream:
            assert stream.read() == b"one\ntwo\n"
            assert names(tmp_path) == []


def test_a_link_is_followed(use: Callable, fake: Any, tmp_path: Path) -> None:
    write(tmp_path / "texts.txt", TEXTS)
    (tmp_path / "real.npy").write_bytes(b"old")
    (tmp_path / "v.npy").symlink_to("real.npy")
    assert use("embed", "texts.txt", "-o", "v.npy", "--overwrite").exit_code == 0
    assert (tmp_path / "v.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "real.npy"), fake.encode(TEXTS))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes with a path")
def test_a_pipe_is_read_by_its_path(use: Callable, fake: Any, tmp_path: Path) -> None:
    """Such pipes are `<(…)` of a shell, /dev/stdin, and a named pipe."""
    reader, writer = os.pipe()
    os.write(writer, b"one\ntwo\n")
    os.close(writer)
    assert use("embed", f"/dev/fd/{reader}", "-o", "a.npy").exit_code == 0
    os.close(reader)
    os.mkfifo(tmp_path / "fifo")
    with ThreadPoolExecutor() as threads:
        threads.submit((tmp_path / "fifo").write_text, "one\ntwo\n")
        assert use("embed", "fifo", "-o", "b.npy").exit_code == 0
    for name in ("a.npy", "b.npy"):
        np.testing.assert_array_equal(np.load(tmp_path / name), fake.encode(["one", "two"]))


@pytest.mark.parametrize("name", ["v.npy", "v.jsonl"])
def test_interrupted_work_is_continued(
    use: Callable, fake: Any, tmp_path: Path, small_chunks: None, name: str
) -> None:
    texts = [f"text {number}" for number in range(9)]
    write(tmp_path / "texts.txt", texts)
    fake.fails_after = 4
    first = use("embed", "texts.txt", "-o", name)
    assert first.exit_code == 130
    assert "interrupted: 4 of 9 rows" in first.stderr
    assert not (tmp_path / name).exists()
    # The remains of a process that was killed between its two writes.
    with (tmp_path / f"{name}.partial" / "data").open("ab") as data:
        data.write(b"half a row")

    fake.fails_after, fake.encoded = None, []
    second = use("embed", "texts.txt", "-o", name)
    assert second.exit_code == 0
    assert "continuing" in second.stderr
    assert fake.encoded == texts[4:]
    resumed = (tmp_path / name).read_bytes()
    assert use("embed", "texts.txt", "-o", f"whole{Path(name).suffix}").exit_code == 0
    assert resumed == (tmp_path / f"whole{Path(name).suffix}").read_bytes()
    assert not (tmp_path / f"{name}.partial").exists()


@pytest.mark.parametrize("interrupted", [False, True])
def test_texts_that_were_cut_are_counted(
    use: Callable, fake: Any, tmp_path: Path, small_chunks: None, interrupted: bool
) -> None:
    fake.max_length = 5
    write(tmp_path / "texts.txt", ["longer", "short", "", "longer still", "word", "longest"])
    if interrupted:
        fake.fails_after = 2
        assert use("embed", "texts.txt", "-o", "v.npy").exit_code == 130
        fake.fails_after = None
    said = "3 of 6 texts are longer than 5 tokens; the rest was not read\n"
    assert use("embed", "texts.txt", "-o", "v.npy").stderr.endswith(said)
    streamed = use("embed", "texts.txt")
    assert streamed.stderr == said
    assert len(streamed.stdout.splitlines()) == 6
    fake.max_length = 50
    assert "tokens" not in use("embed", "texts.txt", "-o", "w.npy").stderr


@pytest.mark.parametrize("change", ["text", "model", "format", "prompt"])
def test_work_of_another_description_is_not_continued(
    use: Callable, fake: Any, tmp_path: Path, small_chunks: None, change: str
) -> None:
    texts = ["a", "b", "c", "d", "e"]
    write(tmp_path / "texts.txt", texts)
    fake.fails_after = 2
    assert use("embed", "texts.txt", "-o", "v.npy").exit_code == 130
    fake.fails_after, fake.encoded = None, []
    options: tuple[str, ...] = ()
    if change == "text":
        texts[0] = "z"
        write(tmp_path / "texts.txt", texts)
    elif change == "model":
        fake.identity = "another"
    else:
        options = ("--format", "jsonl") if change == "format" else ("--prompt", "a")
    result = use("embed", "texts.txt", "-o", "v.npy", *options)
    assert result.exit_code == 0, result.stderr
    assert "starting again" in result.stderr
    assert fake.encoded == [f"a{text}" if change == "prompt" else text for text in texts]
    assert not (tmp_path / "v.npy.partial").exists()


@pytest.mark.parametrize("name", ["v.npy.partial/thesis.txt", "v.npy.partial"])
def test_a_partial_folder_of_the_user_is_refused_and_kept(
    use: Callable, fake: Any, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("years")
    result = use("embed", "-", "-o", "v.npy", input="one\n")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "v.npy.partial: " in result.stderr
    assert path.read_text() == "years"


@pytest.mark.parametrize("finished", [True, False])
def test_what_a_user_puts_into_a_partial_folder_stays(
    use: Callable, fake: Any, tmp_path: Path, small_chunks: None, finished: bool
) -> None:
    write(tmp_path / "texts.txt", ["a", "b", "c"])
    fake.fails_after = 2
    assert use("embed", "texts.txt", "-o", "v.npy").exit_code == 130
    fake.fails_after = None
    (tmp_path / "v.npy.partial" / "thesis.txt").write_text("years")
    if not finished:
        write(tmp_path / "texts.txt", ["d"])
    assert use("embed", "texts.txt", "-o", "v.npy").exit_code == 0
    assert names(tmp_path / "v.npy.partial") == ["thesis.txt"]


@pytest.mark.parametrize(
    ("arguments", "put"),
    [
        ((), "d: "),
        (("--prompt-name", "query"), "q: "),
        (("--prompt", ""), ""),
    ],
)
def test_a_prompt_is_put_before_each_text(
    arguments: tuple[str, ...], put: str, use: Callable, fake: Any, tmp_path: Path
) -> None:
    fake.prompts, fake.default_prompt_name = {"query": "q: ", "usual": "d: "}, "usual"
    result = use("embed", "-", "-o", "v.npy", *arguments, input="one\ntwo\n")
    assert result.exit_code == 0, result.stderr
    assert fake.encoded == [f"{put}one", f"{put}two"]
    streamed = use("embed", "-", *arguments, input="one\n")
    assert json.loads(streamed.stdout)["text"] == "one"
    assert fake.encoded[2:] == [f"{put}one"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of `embed_corpus`; its return value is under "answer"."""
    found: dict[str, Any] = {"answer": CorpusReport("m", "0", files=2, rows=1200)}

    def embed_corpus(pattern: str, folder: str, **options: Any) -> CorpusReport:
        found.update(options, pattern=pattern, folder=folder)
        return found["answer"]

    monkeypatch.setattr(corpus_module, "embed_corpus", embed_corpus)
    return found


def test_options_reach_the_runner(use: Callable, asked: dict[str, Any]) -> None:
    words = "embed gs://b/*.log -o gs://b/v --runner FlinkRunner --model my --text body --id key"
    words += " --input-format jsonl --batch-size 8 --prompt-name query --overwrite"
    words += " -- --parallelism 4 --streaming"
    result = use(*words.split())
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "gs://b/v: 1,200 rows by m, from 2 files\n"
    del asked["answer"]
    assert asked == {
        "pattern": "gs://b/*.log",
        "folder": "gs://b/v",
        "model": "my",
        "runner": "FlinkRunner",
        "options": ["--parallelism", "4", "--streaming"],
        "text_field": "body",
        "id_field": "key",
        "file_format": "jsonl",
        "batch_size": 8,
        "prompt": None,
        "prompt_name": "query",
        "overwrite": True,
    }


def test_bad_and_cut_rows_are_told(use: Callable, asked: dict[str, Any]) -> None:
    words = ("embed", "*.txt", "-o", "v", "--runner", "DirectRunner")
    asked["answer"] = CorpusReport("m", "0", files=1, rows=5, bad_rows=2, truncated=1)
    lines = use(*words).stderr.splitlines()
    assert lines[1] == "2 rows have no vector: v/bad-*.jsonl says why"
    assert lines[2].startswith("1 of 5 texts are longer than the model reads")
    asked["answer"] = CorpusReport("m", "0", files=1, rows=0, bad_rows=2)
    result = use(*words)
    assert result.exit_code == 1
    assert "no row has a text" in result.stderr


@pytest.mark.parametrize(
    ("words", "news"),
    [
        ("embed a.txt -o v --text body", "--text needs --runner"),
        ("embed a.txt b.txt -o v.npy", "b.txt needs --runner"),
        ("embed a.txt --runner DirectRunner", "needs a pattern of files and -o FOLDER"),
        ("embed a.txt -o v --runner DirectRunner --format npy", "and no --format"),
    ],
)
def test_what_does_not_fit_is_refused(
    use: Callable, asked: dict[str, Any], words: str, news: str
) -> None:
    result = use(*words.split())
    assert result.exit_code == 2
    assert news in " ".join(result.stderr.split())
    assert "pattern" not in asked


def test_the_whole_way_on_beam(use: Callable, tmp_path: Path) -> None:
    pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")
    import pyarrow.parquet as pq

    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{}\n')
    result = use("embed", "*.jsonl", "-o", "vectors", "--runner", "DirectRunner")
    assert result.exit_code == 0, result.stderr
    assert "vectors: 1 rows by use_dan_en, from 1 files" in result.stderr
    (path,) = (tmp_path / "vectors").glob("vectors-*.parquet")
    assert pq.read_table(path).column("id").to_pylist() == ["a.jsonl:1"]
    assert json.loads((tmp_path / "vectors" / "embeddings.json").read_text())["bad_rows"] == 1
