"""STS scores of exported encoders: Spearman and Pearson on every STS set of a folder.

    python benchmarks/sts_scores.py use_dan_en --data DATA

Correlations are over all pairs of a set at once ("all"), times 100; Spearman by cosine, Pearson by
cosine and by the angular similarity of Eq. 1. The last line averages Spearman over STS12, STS13,
STS15, STS-B test and SICK-R test. Test sets are for the table alone: nothing is to be chosen by
them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import use_st5
from use_st5.evaluation.sts import evaluate_sts, sts_suite

AVERAGED = ("STS12", "STS13", "STS15", "STS-B test", "SICK-R test")


def main() -> None:
    """Reads the arguments and prints one table per model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="+", help="names of bundled models, or folders")
    parser.add_argument("--data", type=Path, required=True, help="folder of the STS sets")
    parser.add_argument("--only", nargs="*", help="names of the sets to score; default: all")
    arguments = parser.parse_args()
    suite, missing = sts_suite(arguments.data)
    if unknown := sorted(set(arguments.only or ()) - set(suite)):
        parser.error(f"{arguments.data} has no {', '.join(unknown)}; it has {', '.join(suite)}")
    chosen = {
        name: data for name, data in suite.items() if not arguments.only or name in arguments.only
    }
    for name in arguments.models:
        print_table(name, use_st5.load(name), chosen)
    if missing and not arguments.only:
        print("not found: " + ", ".join(missing))


def print_table(name: str, encoder: use_st5.SentenceEncoder, suite: dict) -> None:
    """Prints one model's scores."""
    print(f"\n{name}\n| set | pairs | Spearman | Pearson, cosine | Pearson, angular |")
    print("|---|---|---|---|---|")
    averaged = []
    for set_name, data in suite.items():
        cosine, angular = evaluate_sts(encoder.encode, data, metrics=("cosine", "angular"))
        if set_name in AVERAGED:
            averaged.append(100 * cosine.spearman["all"])
        values = (cosine.spearman["all"], cosine.pearson["all"], angular.pearson["all"])
        cells = " | ".join(f"{100 * value:.2f}" for value in values)
        print(f"| {set_name} | {cosine.pairs} | {cells} |")
    if len(averaged) == len(AVERAGED):
        print(f"| average of {', '.join(AVERAGED)} | | {np.mean(averaged):.2f} | | |")


if __name__ == "__main__":
    main()
