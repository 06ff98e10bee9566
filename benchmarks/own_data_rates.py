"""Development scores and forgetting by setting, to choose the defaults of `use-st5 train`.

    pip install "use_st5[data,evaluation,transfer]"
    python -m benchmarks.own_data_rates DATA OUT --models use_dan_en --rates 3e-5,3e-4,1e-3

The sets are those of `benchmarks.own_data`; their test parts are not read. Each model is trained on
each set once with each rate, each weight of the start's own similarities (`--keep`), and each of
the settings that `--variants` names in `VARIANTS`. The table gives the main measure of the set's
development part before and after training, the best step, and the mean over the development parts
of the other sets before and after, which shows what a setting costs. OUT keeps every result: the
same command continues after an interruption.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import use_st5
from benchmarks.own_data import kept, start_of, trained_scores
from benchmarks.own_data_sets import (
    OTHERS,
    SETS,
    Paths,
    files_of,
    main_score,
    measured,
    parser_of,
)

# Name → the options that differ from the usual settings.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "usual": {},
    "drawn": {"head_init": "random"},
    "angular": {"loss": {"similarity": "angular"}},
    "cosent": {"loss": {"objective": "cosent"}},
    "lora": {"lora_rank": 8},
}


def main() -> None:
    """Reads the arguments, trains what is not there yet, and prints the table."""
    parser = parser_of(__doc__, SETS)
    parser.add_argument("--models", default="use_dan_en,use_transformer_en")
    parser.add_argument("--rates", default="3e-5,1e-4,3e-4,1e-3")
    parser.add_argument("--keep", default="0")
    parser.add_argument("--variants", default="usual", help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    names, files = arguments.sets.split(","), files_of(arguments)
    rows = []
    for model in arguments.models.split(","):
        run = f"rates/{model}"
        start = kept(
            arguments.out, f"{run}/start", None, lambda: development_scores(model, files)  # noqa: B023
        )  # fmt: skip
        for name, variant, rate, keep in itertools.product(
            names,
            arguments.variants.split(","),
            arguments.rates.split(","),
            arguments.keep.split(","),
        ):
            suffix = "" if variant == "usual" else f"_{variant}"
            scores = kept(
                arguments.out, f"{run}/{name}_{rate}_{keep}{suffix}", arguments.seed,
                lambda: trained_scores(  # noqa: B023
                    model, name, arguments.seed, files, part="dev",  # noqa: B023
                    learning_rate=float(rate), keep=float(keep), **VARIANTS[variant],  # noqa: B023
                ),
            )  # fmt: skip
            rows.append(([model, name, variant, rate, keep], name, start, scores))
    print("\n".join(table(rows)))


def development_scores(model: str, files: Mapping[str, Paths]) -> dict[str, float]:
    """The main measure of an untrained encoder on the development part of each set."""
    encode = use_st5.TrainableEncoder.load(start_of(model)).encode
    return {f"{name}/dev": main_score(measured(name, files[name], "dev"), encode) for name in files}


def table(rows: Sequence[tuple[list[str], str, Any, Any]]) -> Iterator[str]:
    """The lines of the table, in Markdown."""
    yield (
        "| model | set | settings | rate | keep | dev before | after | best step | others before "
        "| after |"
    )
    yield "|---" * 10 + "|"
    for cells, name, start, result in rows:
        other_sets = [other for other in OTHERS if other != name]
        before, after = (
            float(np.mean([scores[f"{other}/dev"] for other in other_sets]))
            for scores in (start, result)
        )
        yield (
            f"| {' | '.join(cells)} | {start[f'{name}/dev']:.2f} | {result['dev']:.2f} "
            f"| {result['best_step']:.0f} of {result['steps']:.0f} | {before:.2f} | {after:.2f} |"
        )


if __name__ == "__main__":
    main()
