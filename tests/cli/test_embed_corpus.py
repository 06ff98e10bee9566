"""`use-st5 embed --runner`: refusals, messages, and a whole run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from use_st5.beam import corpus as corpus_module
from use_st5.beam.corpus import CorpusReport


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
        "options": ("--parallelism", "4", "--streaming"),
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
    assert "expected rows with a text, found none" in result.stderr


@pytest.mark.parametrize(
    ("words", "news"),
    [
        ("embed a.txt -o v --text body", "--text needs --runner"),
        ("embed a.txt -o v.npy --id key", "--id needs --runner"),
        ("embed a.txt -o v.npy --input-format text", "--input-format needs --runner"),
        ("embed a.txt b.txt -o v.npy", "b.txt needs --runner"),
        ("embed a.txt -o v.npy -- --streaming", "--streaming needs --runner"),
        ("embed a.txt --runner DirectRunner", "expected a pattern of files and -o FOLDER"),
        ("embed - -o v --runner DirectRunner", "expected a pattern of files and -o FOLDER"),
        ("embed a.txt -o v --runner DirectRunner --format npy", "it writes Parquet"),
    ],
)
def test_what_does_not_fit_is_refused(
    use: Callable, asked: dict[str, Any], words: str, news: str
) -> None:
    result = use(*words.split())
    assert result.exit_code == 2
    assert news in " ".join(result.stderr.split())
    assert "pattern" not in asked


def test_the_whole_way(use: Callable, tmp_path: Path) -> None:
    pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")
    import pyarrow.parquet as pq

    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{}\n')
    result = use("embed", "*.jsonl", "-o", "vectors", "--runner", "DirectRunner")
    assert result.exit_code == 0, result.stderr
    assert "vectors: 1 rows by use_dan_en, from 1 files" in result.stderr
    (path,) = (tmp_path / "vectors").glob("vectors-*.parquet")
    assert pq.read_table(path).column("id").to_pylist() == ["a.jsonl:1"]
    assert json.loads((tmp_path / "vectors" / "embeddings.json").read_text())["bad_rows"] == 1
    words = ("embed", "*.jsonl", "-o", "vectors", "--runner", "DirectRunner")
    refused = use(*words)
    assert refused.exit_code == 1
    assert refused.stderr.count("\n") == 1
    assert "--overwrite" in refused.stderr
    unknown = use(*words, "--overwrite", "--", "--direct_num_worker", "2")
    assert unknown.exit_code == 1
    assert "received --direct_num_worker 2" in unknown.stderr
