"""What a folder of documents without questions gives an encoder: pairs, mined negatives, training.

    pip install "use_st5[documents,search]"
    python -m benchmarks.documents_to_model DATA OUT --models use_dan_en --seeds 3

For two sources of `english_search`, of two domains, the passages become Markdown files, with the
headings that are questions and their passages left out. `use-st5 pairs`, `mine` and `train` make a
model of them. It is measured on the questions that were left out: each should find its passage
among all passages of the source. Nothing chooses by these questions: `train` holds out pairs of its
own. OUT keeps files and models; delete it to measure again.
"""

from __future__ import annotations

import argparse
import json
import lzma
import statistics
from collections import defaultdict
from pathlib import Path

import use_st5
from use_st5.data.documents import document_pairs
from use_st5.evaluation.retrieval import RetrievalSet, bm25, fused, retrieval_scores, retrieve
from use_st5.search import mine_hard_negatives

SOURCES = {"digital_gov": "government", "ms_business_central": "business and finance"}


def documents_and_questions(data: Path, source: str, folder: Path) -> RetrievalSet:
    """Writes the documents of a source to `folder`, and returns the questions about them."""
    root = data / "english_search"
    corpus: dict[str, None] = {}
    documents: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    with lzma.open(root / "passages" / f"{source}.jsonl.xz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            corpus[text := " ".join(row["text"].split())] = None
            title, _, heading = row.get("title", "").partition(": ")
            if title and not row["title"].endswith("?"):
                documents[title][heading or title].append(text)
    judgements: dict[str, dict[str, int]] = defaultdict(dict)
    with lzma.open(root / "pairs" / f"{source}.tsv.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            query, passage = (" ".join(field.split()) for field in line.split("\t"))
            corpus[passage] = None
            if query.endswith("?"):
                judgements[query][passage] = 1
    answers = {passage for grades in judgements.values() for passage in grades}
    folder.mkdir(parents=True, exist_ok=True)
    for number, (title, sections) in enumerate(documents.items()):
        parts = [f"# {title}"]
        for heading, texts in sections.items():
            parts += [f"## {heading}", *(text for text in texts if text not in answers)]
        (folder / f"{number}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return RetrievalSet(
        source, {text: text for text in corpus}, {query: query for query in judgements}, judgements
    )


def ndcg(model: use_st5.SentenceEncoder, dataset: RetrievalSet) -> dict[str, float]:
    """nDCG@10 x 100 of the vectors, of BM25, and of both."""
    run, words = retrieve(dataset, model.encode, model.encode), bm25(dataset)
    runs = {"vectors": run, "BM25": words, "both": fused(run, words)}
    return {
        name: 100 * retrieval_scores(dataset.judgements, each)["ndcg@10"]
        for name, each in runs.items()
    }


def main() -> None:
    """Trains and measures, and prints a Markdown table."""
    parser = argparse.ArgumentParser(description="Measures training on documents.")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", default="use_dan_en")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("| model | documents | pairs | questions | before | pairs alone | mined | mined + BM25 "
          "| BM25 |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name in options.models.split(","):
        encoder = use_st5.load(name)
        for source, domain in SOURCES.items():
            out = options.out / name / source
            dataset = documents_and_questions(options.data, source, out / "documents")
            pairs = [*document_pairs(out / "documents")]
            rows = {"pairs": pairs, "mined": mine_hard_negatives(encoder.encode, pairs)}
            scores: dict[str, list[dict[str, float]]] = defaultdict(list)
            for way, examples in rows.items():
                columns = ("anchor", "positive", "negative")
                table = [dict(zip(columns, row, strict=False)) for row in examples]
                for seed in range(options.seeds):
                    to = out / f"{way}_{seed}"
                    if not (to / "use_st5.json").exists():
                        use_st5.train(name, table, to=to, seed=seed)
                    scores[way].append(ndcg(use_st5.load(to), dataset))
            before = ndcg(encoder, dataset)
            cells = [
                _cell([each["vectors"] for each in scores["pairs"]]),
                _cell([each["vectors"] for each in scores["mined"]]),
                _cell([each["both"] for each in scores["mined"]]),
            ]
            print(
                f"| {name} | {domain} | {len(pairs):,} | {len(dataset.queries)} | "
                f"{before['vectors']:.1f} | {' | '.join(cells)} | {before['BM25']:.1f} |"
            )


def _cell(values: list[float]) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {spread:.1f}"


if __name__ == "__main__":
    main()
