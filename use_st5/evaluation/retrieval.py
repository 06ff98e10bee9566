"""Retrieval: finds the passages that answer a question, in sets of BEIR's layout.

A set is a folder with `corpus.jsonl` and `queries.jsonl` (`_id`, `text`, perhaps `title`) and
`qrels/SPLIT.tsv` (query, document, grade), as Thakur et al. 2021 (BEIR, arXiv 2104.08663) publish
them. The scores are those of trec_eval, which BEIR uses.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from use_st5.data.data_folder import DEPTHS, DataFolder, DataSource, MissingDataError
from use_st5.encode.similarity import unit_rows
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult
from use_st5.io.lines import read_text
from use_st5.search import exact_search
from use_st5.search.words import WordIndex, reciprocal_ranks

# Query → document → score, higher is better.
Run = Mapping[str, Mapping[str, float]]
# Query → document → grade; grades of 0 and below are not relevant.
Judgements = Mapping[str, Mapping[str, int]]

DEPTH = 100
CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"
# The split that is scored, the first that a set has.
_SPLITS = ("test.tsv", "dev.tsv", "*.tsv")


class RetrievalSet(NamedTuple):
    """Documents, queries, and which documents answer which query."""

    name: str
    corpus: Mapping[str, str]  # id → document, a title first if it has one; "007" stays
    queries: Mapping[str, str]  # id → query
    judgements: Judgements


def read_retrieval_set(folder: Path, *, splits: Sequence[str] = _SPLITS) -> RetrievalSet:
    """Reads a set in BEIR's layout: the test split, else the dev split, else the first."""
    files = [path for split in splits for path in sorted((folder / QRELS).glob(split))]
    if not files:
        raise FileNotFoundError(f"{folder / QRELS}: expected a file such as test.tsv, found none.")
    judgements: dict[str, dict[str, int]] = {}
    for number, line in read_text(files[0]):
        if number > 1 or not line.startswith("query-id\t"):
            try:
                query, document, grade = line.rstrip("\n").split("\t")
                judgements.setdefault(query, {})[document] = int(grade)
            except ValueError as error:
                expected = "expected query, document and a whole number between tabs"
                place = f"{files[0]}:{number}"
                raise ValueError(f"{place}: {expected}, received {line[:80]!r}.") from error
    corpus, queries = (dict(_texts(folder / name)) for name in (CORPUS, QUERIES))
    return RetrievalSet(folder.name, corpus, queries, judgements)


def _texts(path: Path) -> Iterable[tuple[str, str]]:
    for number, line in read_text(path):
        try:
            row = json.loads(line)
            yield str(row["_id"]), f"{row.get('title') or ''} {row['text'] or ''}".strip()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            expected = "expected an object with `_id` and `text`"
            raise ValueError(f"{path}:{number}: {expected}, received {line[:80]!r}.") from error


def retrieve(
    dataset: RetrievalSet,
    encode_queries: Callable[[list[str]], np.ndarray],
    encode_documents: Callable[[list[str]], np.ndarray],
) -> dict[str, dict[str, float]]:
    """Finds the nearest documents of each query by the cosine, among all of them.

    Equal scores are ordered by the documents' ids. Returns query → document → similarity, best
    first, for all queries of the set.
    """
    ids, queries = sorted(dataset.corpus), list(dataset.queries)
    if not ids or not queries:
        return {query: {} for query in queries}
    documents = unit_rows(encode_documents([dataset.corpus[id] for id in ids]))
    vectors = unit_rows(encode_queries([dataset.queries[query] for query in queries]))
    scores, rows = exact_search(vectors, documents, k=min(DEPTH, len(ids)))
    return {
        query: {ids[row]: float(score) for row, score in zip(found, of_query, strict=True)}
        for query, found, of_query in zip(queries, rows, scores, strict=True)
    }


def bm25(dataset: RetrievalSet) -> dict[str, dict[str, float]]:
    """Finds documents by their words (`WordIndex`).

    Documents that share no word with a query are not found.
    """
    ids = sorted(dataset.corpus)
    index = WordIndex(dataset.corpus[id] for id in ids)
    run: dict[str, dict[str, float]] = {}
    for query, text in dataset.queries.items():
        scores, rows = index.search(text, k=DEPTH)
        run[query] = {ids[row]: float(score) for row, score in zip(rows, scores, strict=True)}
    return run


def fused(*runs: Run) -> dict[str, dict[str, float]]:
    """Joins rankings by reciprocal rank fusion (Cormack et al. 2009): Σ 1 / (60 + rank).

    A document that a ranking lacks gets nothing from it.
    """
    joined: dict[str, dict[str, float]] = {}
    for query in dict.fromkeys(query for run in runs for query in run):
        scores = reciprocal_ranks(*(_ranked(run.get(query, {})) for run in runs))
        joined[query] = {document: scores[document] for document in _ranked(scores)[:DEPTH]}
    return joined


def retrieval_scores(judgements: Judgements, run: Run) -> dict[str, float]:
    """Scores rankings as trec_eval does; means over the judged queries.

    A judged query that found nothing counts as 0; queries without judgements are left out. Equal
    scores are ordered by the documents' ids. The gain of nDCG is the grade, and the ideal list is
    cut at 10; MAP is over all relevant documents. NaN without a judged query.
    """
    totals = dict.fromkeys(("ndcg@10", "map@100", "mrr@10", "recall@10", "recall@100"), 0.0)
    for query, grades in judgements.items():
        ranking = _ranked(run.get(query, {}))
        gains = [max(0, grades.get(document, 0)) for document in ranking[:10]]
        ideal = sorted((max(0, grade) for grade in grades.values()), reverse=True)[:10]
        relevant = {document for document, grade in grades.items() if grade >= 1}
        places = [place for place, one in enumerate(ranking[:100], start=1) if one in relevant]
        precisions = [hits / place for hits, place in enumerate(places, start=1)]
        count = max(1, len(relevant))
        totals["ndcg@10"] += _discounted(gains) / (_discounted(ideal) or 1)
        totals["map@100"] += sum(precisions) / count
        totals["mrr@10"] += 1 / places[0] if places and places[0] <= 10 else 0
        totals["recall@10"] += sum(place <= 10 for place in places) / count
        totals["recall@100"] += len(places) / count
    return {name: total / (len(judgements) or math.nan) for name, total in totals.items()}


def _ranked(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda document: (-scores[document], document))


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1))


def _score(context: TaskContext, datasets: Sequence[RetrievalSet]) -> TaskResult:
    """The means over the sets, of the encoder, of BM25 and of both, and the scores of each set."""

    def encode(texts: Sequence[str], side: str) -> np.ndarray:
        return context.embed([context.prompts.get(side, "") + text for text in texts])

    rows: list[dict[str, Any]] = []
    for dataset in datasets:
        judgements = dataset.judgements
        run = retrieve(
            dataset, lambda texts: encode(texts, "query"), lambda texts: encode(texts, "document")
        )
        scores = retrieval_scores(judgements, run)
        if importlib.util.find_spec("bm25s"):
            words = bm25(dataset)
            scores["bm25_ndcg@10"] = retrieval_scores(judgements, words)["ndcg@10"]
            scores["fused_ndcg@10"] = retrieval_scores(judgements, fused(run, words))["ndcg@10"]
        unknown = {id for grades in judgements.values() for id in grades} - {*dataset.corpus}
        counts = {"documents": len(dataset.corpus), "queries": len(dataset.queries)}
        counts |= {"judged_queries": len(judgements), "unknown_documents": len(unknown)}
        rows.append({"set": dataset.name, **scores, **counts})
    names = [name for name in rows[0] if isinstance(rows[0][name], float)]
    return TaskResult(
        main="ndcg@10",
        scores={name: float(np.mean([row[name] for row in rows])) for name in names},
        counts={"sets": len(rows), "queries": sum(row["judged_queries"] for row in rows)},
        details={"sets": rows},
    )


def _folders(data: DataFolder) -> list[Path]:
    """The folders of sets, in the data folder or up to two folders deeper."""
    paths = (path for depth in DEPTHS for path in data.path.glob(depth + QRELS))
    return sorted(path.parent for path in paths if (path.parent / CORPUS).exists())


def _read(data: DataFolder) -> list[RetrievalSet]:
    if not (folders := _folders(data)):
        raise MissingDataError(f"{data.path}: expected {QRELS}/ next to {CORPUS}, found none.")
    return [read_retrieval_set(folder) for folder in folders]


def _files(data: DataFolder) -> tuple[DataSource, ...]:
    return tuple(
        DataSource(folder.name, ((folder.relative_to(data.path) / name).as_posix(),), _ORIGIN)
        for folder in _folders(data)
        for name in (CORPUS, QUERIES, f"{QRELS}/*.tsv")
    )


_ORIGIN = "BEIR: https://github.com/beir-cellar/beir, or files of your own in its layout"

TASKS = (
    EvaluationTask(
        "retrieval",
        "retrieval",
        "Retrieval",
        "nDCG@10 of all documents by their cosine with the query, the mean of the sets in BEIR's "
        "layout in the data folder; beside it BM25 and the fusion of both rankings (bm25s)",
        score=_score,
        reader=_read,
        sources=(DataSource("BEIR", (CORPUS,), _ORIGIN),),
        options={"depth": DEPTH},
        read_files=_files,
    ),
)
