"""Benchmarks that train on real data: their data is written as a user's files and measured."""

from __future__ import annotations

from pathlib import Path

import use_st5
from benchmarks import languages
from benchmarks.engines import table
from benchmarks.own_data import frozen_scores
from benchmarks.own_data_sets import SETS, files_of, parser_of
from use_st5.evaluation import EvaluationRecord


def test_a_table_of_a_model_that_no_engine_runs() -> None:
    header, line = table("minilm", {})
    assert (header.split()[1], header.count("|")) == ("minilm", line.count("|"))


def test_the_sets_of_own_data(data_dir: Path, tmp_path: Path) -> None:
    arguments = [str(data_dir), str(tmp_path), "--most", "200,60,60"]
    files = files_of(parser_of(None, SETS).parse_args(arguments))
    scores = frozen_scores(use_st5.load("use_dan_en", backend="onnx").encode, files, SETS)
    assert {name.partition("/")[0] for name in scores} == {*SETS}
    # Chance is 0 for Spearman, and a sixth for the classes of questions.
    assert scores["stsb/test"] > 60
    assert scores["trec/test"] > 40


def test_the_page_prints_the_scores_by_language_of_the_records(repository: Path) -> None:
    page = (repository / "docs/evaluation.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("<!-- tables of benchmarks/languages.py -->")
    printed, end, _ = rest.partition("<!-- end -->")
    paths = sorted((repository / "results").glob("*.json"))
    records = {record.model["name"]: record for record in map(EvaluationRecord.read, paths)}
    names = printed.split("\n")[2].strip("| ").split(" | ")[1:]
    assert end
    assert printed == "\n" + languages.tables([records[name] for name in names])
