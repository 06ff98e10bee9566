"""Retrieval: the scores of trec_eval, and rankings that do not depend on the order of a file."""

from __future__ import annotations

import json
import math
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from use_st5.evaluation import evaluate, select_tasks
from use_st5.evaluation.retrieval import (
    RetrievalSet,
    bm25,
    fused,
    read_retrieval_set,
    retrieval_scores,
    retrieve,
)


def letters(texts: list[str]) -> np.ndarray:
    """Counts of letters."""
    return np.array([[text.count(letter) for letter in "abcdef"] for text in texts], np.float32)


def test_scores_computed_by_hand() -> None:
    judgements = {"q": {"a": 2, "b": 1, "c": 0, "d": 1}, "nothing": {"a": 1}}
    run = {"q": {"b": 0.9, "x": 0.8, "a": 0.7}, "unjudged": {"a": 1.0}}
    ideal = 2 + 1 / math.log2(3) + 1 / math.log2(4)
    assert retrieval_scores(judgements, run) == pytest.approx(
        {
            "ndcg@10": (1 + 2 / math.log2(4)) / ideal / 2,
            "map@100": (1 + 2 / 3) / 3 / 2,
            "mrr@10": 0.5,
            "recall@10": 2 / 3 / 2,
            "recall@100": 2 / 3 / 2,
        }
    )
    assert math.isnan(retrieval_scores({}, run)["ndcg@10"])


def test_scores_of_trec_eval_on_random_rankings() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="the extra `peers` is not installed")
    draw = random.Random(0)
    documents = [f"d{number}" for number in range(150)]
    judgements = {
        f"q{number}": {
            document: draw.choice([-1, 0, 0, 1, 2, 3])
            for document in draw.sample(documents, draw.randint(1, 60))
        }
        for number in range(1000)
    }
    run = {
        query: {
            document: draw.random() for document in draw.sample(documents, draw.randint(1, 150))
        }
        for query in judgements
    }
    top = {
        query: dict(sorted(scores.items(), key=lambda pair: -pair[1])[:10])
        for query, scores in run.items()
    }
    names = {"ndcg_cut_10", "map_cut_100", "recall_10", "recall_100"}
    theirs = pytrec_eval.RelevanceEvaluator(judgements, names).evaluate(run)
    first = pytrec_eval.RelevanceEvaluator(judgements, {"recip_rank"}).evaluate(top)
    expected = {
        "ndcg@10": [row["ndcg_cut_10"] for row in theirs.values()],
        "map@100": [row["map_cut_100"] for row in theirs.values()],
        "mrr@10": [row["recip_rank"] for row in first.values()],
        "recall@10": [row["recall_10"] for row in theirs.values()],
        "recall@100": [row["recall_100"] for row in theirs.values()],
    }
    ours = retrieval_scores(judgements, run)
    assert ours == pytest.approx({name: np.mean(rows) for name, rows in expected.items()}, abs=1e-9)


def test_equal_scores_are_ordered_by_id() -> None:
    corpus = {"9": "a", "10": "a", "1": "a", "2": "b"}
    for ids in (sorted(corpus), sorted(corpus, reverse=True)):
        dataset = RetrievalSet("s", {id: corpus[id] for id in ids}, {"q": "a"}, {})
        assert list(retrieve(dataset, letters, letters)["q"]) == ["1", "10", "9", "2"]
    scores = retrieval_scores({"q": {"10": 1}}, {"q": {"9": 1.0, "10": 1.0, "1": 1.0}})
    assert scores["mrr@10"] == 0.5


def test_more_than_there_is_and_empty_texts() -> None:
    dataset = RetrievalSet("s", {"1": "", "2": "a"}, {"q": "a", "empty": ""}, {"q": {"2": 1}})
    run = retrieve(dataset, letters, letters)
    assert list(run["q"]) == ["2", "1"]
    assert retrieval_scores(dataset.judgements, run)["ndcg@10"] == 1
    nothing = RetrievalSet("s", {}, {"q": "a"}, {"q": {"1": 1}})
    assert (
        retrieval_scores(nothing.judgements, retrieve(nothing, letters, letters))["recall@100"] == 0
    )


def test_words_and_fusion() -> None:
    pytest.importorskip("bm25s", reason="the extra `search` is not installed")
    corpus = {"1": "red fox", "2": "a lazy dog", "3": "the red red barn", "4": ""}
    dataset = RetrievalSet("s", corpus, {"q": "red fox", "none": "zebra", "empty": ""}, {})
    run = bm25(dataset)
    assert list(run["q"]) == ["1", "3"]
    assert run["none"] == run["empty"] == {}
    assert bm25(RetrievalSet("s", {"1": ""}, {"q": "a"}, {})) == {"q": {}}
    other = {"q": {"2": 0.9, "1": 0.1}, "none": {"4": 0.5}}
    joined = fused(run, other)
    assert joined["q"] == pytest.approx({"1": 1 / 61 + 1 / 62, "2": 1 / 61, "3": 1 / 62})
    assert list(joined["q"]) == ["1", "2", "3"]
    assert joined["none"] == {"4": 1 / 61}


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """A set in BEIR's layout."""
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": "007", "title": "Spies", "text": "abc"}, {"_id": "2", "text": "def"}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "a"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t007\t1\n")
    return folder


def test_a_set_is_read(beir: Path) -> None:
    dataset = read_retrieval_set(beir)
    assert dataset == RetrievalSet(
        "tiny", {"007": "Spies abc", "2": "def"}, {"q": "a"}, {"q": {"007": 1}}
    )


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("qrels/test.tsv", "q\t007\n", r"test.tsv:1: expected query, document"),
        ("queries.jsonl", '{"text": "a"}\n', r"queries.jsonl:1: expected an object"),
        ("corpus.jsonl", '{"_id": "1", "text": "a"}\nnot json\n', r"corpus.jsonl:2: expected"),
    ],
)
def test_a_bad_line_is_named(beir: Path, file: str, content: str, message: str) -> None:
    (beir / file).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_retrieval_set(beir)


def test_the_task_scores_every_set_of_a_folder(beir: Path) -> None:
    other = beir.with_name("other")
    shutil.copytree(beir, other)
    (other / "qrels" / "test.tsv").write_text("q\t2\t1\nq\tabsent\t1\n")
    record = evaluate(letters, select_tasks("retrieval"), beir.parent, name="letters")
    result = record.tasks["retrieval"]
    second, first = result["details"]["sets"]
    assert (first["set"], first["ndcg@10"]) == ("tiny", 1)
    assert second["ndcg@10"] == pytest.approx(1 / math.log2(3) / (1 + 1 / math.log2(3)))
    assert second["unknown_documents"] == 1
    assert result["scores"]["ndcg@10"] == (first["ndcg@10"] + second["ndcg@10"]) / 2
    assert {*result["data"]} >= {"tiny/corpus.jsonl", "other/queries.jsonl", "other/qrels/test.tsv"}


def test_the_prompts_of_a_model_are_used(beir: Path) -> None:
    seen = []

    class Prompted:
        name = "prompted"
        prompts = {"query": "q: ", "passage": "p: "}  # noqa: RUF012

        def encode(self, texts: list[str]) -> np.ndarray:
            seen.extend(texts)
            return letters(texts)

    evaluate(Prompted(), select_tasks("retrieval"), beir)
    assert sorted(seen) == ["p: Spies abc", "p: def", "q: a"]
