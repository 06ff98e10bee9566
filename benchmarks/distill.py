"""Compares `use_st5.distill` with model2vec's `distill`: time, STS and retrieval, from one encoder.

    pip install "use_st5[text,onnx,evaluation]" "model2vec[distill]" torch
    python -m benchmarks.distill DATA ENCODER [--texts FILE]

ENCODER is a folder of sentence-transformers, such as all-MiniLM-L6-v2. DATA has the development
sets of STS-B and SICK, and `english_search/eval_dev`. Both libraries distil in a process of their
own, from the import to the written folder; the seconds are those of the clock and, because other
programs may run, of the processor. Both models are read by use_st5 and scored alike: Spearman
correlation on STS-B dev and SICK trial, nDCG@10 on five retrieval sets. With --texts, use_st5
distils a third time, with its second step on these texts.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

_SETS = ("med", "time", "dbpedia_sub5k", "msmarco_sub5k", "wikiqa_test")
_OURS = """
import sys, use_st5
from use_st5.cli.main import main
sys.argv = ["use-st5", "distill", ENCODER, "--to", TO, *MORE]
main()
"""
_THEIRS = """
from model2vec.distill import distill
distill(ENCODER).save_pretrained(TO)
"""


def main() -> None:
    """Reads the arguments, distils and prints a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("encoder", type=Path)
    parser.add_argument("--texts", type=Path)
    arguments = parser.parse_args()
    encoder = str(arguments.encoder.resolve())
    with tempfile.TemporaryDirectory() as folder:
        programs = {"model2vec": (_THEIRS, []), "use_st5": (_OURS, [])}
        if arguments.texts:
            texts = ["--texts", str(arguments.texts.resolve())]
            programs["use_st5 --texts"] = (_OURS, texts)
        for name, (program, more) in programs.items():
            to = str(Path(folder, name))
            names = f"ENCODER, TO, MORE = {encoder!r}, {to!r}, {more!r}"
            numbers = [*seconds(names + program), *scores(arguments.data, to)]
            print(f"| {name} | {' | '.join(f'{each:.1f}' for each in numbers)} |", flush=True)


def seconds(program: str) -> tuple[float, float]:
    """Runs a program of Python; the seconds of the clock and of the processor that it took."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def scores(data: Path, model: str) -> list[float]:
    """STS-B dev, SICK trial, their mean; the retrieval sets, their mean; in percent."""
    import use_st5
    from use_st5.data import DataFolder
    from use_st5.evaluation import STS_SOURCES, evaluate_sts, read_sts
    from use_st5.evaluation.retrieval import read_retrieval_set, retrieval_scores, retrieve
    from use_st5.evaluation.sts import read_sick

    encoder = use_st5.load(model, backend="onnx")

    def encode(texts: list[str]) -> Any:
        return encoder.encode(texts, on_truncation="ignore")

    sick = read_sick(data / "sick2014" / "SICK_trial.txt")
    sts = [
        evaluate_sts(encode, pairs)[0].spearman["all"]
        for pairs in (read_sts(DataFolder(data), STS_SOURCES["STS-B dev"]).pairs, sick.pairs)
    ]
    found = []
    for name in _SETS:
        questions = read_retrieval_set(data / "english_search" / "eval_dev" / name)
        ranked = retrieve(questions, encode, encode)
        found.append(retrieval_scores(questions.judgements, ranked)["ndcg@10"])
    return [100 * each for each in (*sts, np.mean(sts), *found, np.mean(found))]


if __name__ == "__main__":
    main()
