"""Tasks of mteb, built here: their data would be downloaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from use_st5.encode.similarity import cosine
from use_st5.evaluation import EvaluationRecord, evaluate, select_tasks
from use_st5.evaluation.retrieval import RetrievalSet, retrieval_scores, retrieve

mteb = pytest.importorskip("mteb", reason="the extra `integrations` is not installed")

CORPUS = {"1": "the red fox", "2": "a lazy dog", "3": "red barns and a red fox"}
QUERIES = {"q": "fox", "r": "dog and barns"}
JUDGED = {"q": {"1": 1, "3": 1}, "r": {"3": 1}}


class Prompted:
    """Gives each text a direction of its own, so that no two pairs have the same cosine."""

    name, identity = "prompted", "1"
    prompts = {"query": "find ", "document": "read "}  # noqa: RUF012

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        seeds = [[*text.encode()] for text in texts]
        return np.array([np.random.default_rng(seed).standard_normal(16) for seed in seeds])


def retrieval_task() -> Any:
    """A retrieval task of three documents."""
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval

    from tests.test_integrations import toy_sts

    def rows(texts: dict[str, str]) -> Dataset:
        return Dataset.from_dict({"id": [*texts], "text": [*texts.values()]})

    changes = {"name": "ToyFoxes", "type": "Retrieval", "main_score": "ndcg_at_10"}

    class ToyFoxes(AbsTaskRetrieval):
        metadata = toy_sts().metadata.model_copy(update=changes)

        def load_data(self, **_options: Any) -> None:
            split = {"corpus": rows(CORPUS), "queries": rows(QUERIES)}
            split |= {"relevant_docs": JUDGED, "top_ranked": None}
            self.dataset, self.data_loaded = {"default": {"test": split}}, True

    return ToyFoxes()


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mteb finds two tasks that need no download."""
    from tests.test_integrations import toy_sts

    find, made = mteb.get_task, {"ToySTS": toy_sts, "ToyFoxes": retrieval_task}
    monkeypatch.setattr(mteb, "get_task", lambda name: made.get(name, lambda: find(name))())
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_its_scores_stand_beside_ours(tmp_path: Path) -> None:
    from tests.test_integrations import FIRST, SECOND, spearman

    encoder = Prompted()
    tasks = select_tasks("mteb:ToySTS,minimal_pairs,mteb:ToyFoxes")
    assert [task.name for task in tasks] == ["minimal_pairs", "mteb:ToySTS", "mteb:ToyFoxes"]
    record = evaluate(encoder, tasks, cache=tmp_path / "cache")
    sts, foxes = record.tasks["mteb:ToySTS"], record.tasks["mteb:ToyFoxes"]
    expected = spearman(cosine(encoder.encode(FIRST), encoder.encode(SECOND)))
    assert sts["scores"] == {"cosine_spearman": pytest.approx(expected, abs=1e-6)}
    assert sts["options"] == {"revision": "1", "mteb": mteb.__version__}

    def prompted(prompt: str) -> Callable[[list[str]], np.ndarray]:
        return lambda texts: encoder.encode([prompt + text for text in texts])

    run = retrieve(RetrievalSet("s", CORPUS, QUERIES, {}), prompted("find "), prompted("read "))
    expected = retrieval_scores(JUDGED, run)["ndcg@10"]
    assert foxes["scores"] == {"ndcg_at_10": pytest.approx(expected, abs=1e-4)}
    assert foxes["details"]["parts"][0]["split"] == "test"
    record.write(tmp_path / "record.json")
    assert EvaluationRecord.read(tmp_path / "record.json") == record
    asked = len(encoder.asked)
    evaluate(encoder, tasks, cache=tmp_path / "cache")
    assert len(encoder.asked) == asked


def test_a_name_that_mteb_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="a task of mteb; .*Did you mean: 'SciFact'"):
        select_tasks("mteb:SciFakt")
