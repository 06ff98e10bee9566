"""Scores encoders before and after `use-st5 train` on real data, and measures forgetting.

    pip install "use_st5[data,evaluation,transfer]"
    python -m benchmarks.own_data DATA OUT --models use_dan_en,minilm --seeds 3

`use_st5.train` trains each model on each set with its usual settings, once for each seed. The
Markdown tables show the main measure of the set's test part before and after training (the
development part chooses the step), accuracy@k for retrieval sets, and the scores on the
development parts of the other tasks, which show forgetting. For a set with labels, "before" is a
ridge classifier on the vectors of the untrained encoder; the column "scikit-learn" is
scikit-learn's logistic regression on the same vectors. OUT/own_data.csv keeps every result: the
same command continues after an interruption. Test parts are read once, for the table.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import use_st5
from benchmarks.own_data_sets import (
    OTHERS,
    SETS,
    Paths,
    all_scores,
    files_of,
    main_score,
    measured,
    parser_of,
)
from experiments.minilm import minilm_folder
from use_st5.io.files import atomic_path
from use_st5.training.rows import read_file


def frozen_scores(
    encode: Callable[[list[str]], np.ndarray],
    files: Mapping[str, Paths],
    names: Iterable[str],
) -> dict[str, float]:
    """Test, forgetting and scikit-learn scores of an encoder before training."""
    scores: dict[str, float] = {}
    for name in names:
        scores |= all_scores(measured(name, files[name], "test"), encode, f"{name}/test")
    scores |= {
        f"{name}/dev": main_score(measured(name, files[name], "dev"), encode) for name in OTHERS
    }
    for name in names:
        dataset = measured(name, files[name], "test")
        if dataset.task.name == "labels":
            train_rows, test_rows = dataset.examples, dataset.rows
            classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
            vectors = [encode([row["text"] for row in rows]) for rows in (train_rows, test_rows)]
            classifier.fit(vectors[0], [row["label"] for row in train_rows])
            accuracy = classifier.score(vectors[1], [row["label"] for row in test_rows])
            scores[f"{name}/sklearn"] = 100 * accuracy
    return scores


def kept(
    folder: Path, run: str, seed: int | None, make: Callable[[], dict[str, float]]
) -> dict[str, float]:
    """The values of a run in `own_data.csv` of a folder; makes and adds them if it has none."""
    table = folder / "own_data.csv"
    key = [run, "" if seed is None else str(seed)]
    if not table.exists():
        folder.mkdir(parents=True, exist_ok=True)
        table.write_text("run,seed,name,value\n", encoding="utf-8")
    with table.open(encoding="utf-8", newline="") as stream:
        values = {name: float(value) for *of, name, value in csv.reader(stream) if of == key}
    if not values:
        values = make()
        with atomic_path(table) as temporary:
            shutil.copy(table, temporary)
            with temporary.open("a", encoding="utf-8", newline="") as stream:
                lines = ([*key, name, value] for name, value in values.items())
                csv.writer(stream, lineterminator="\n").writerows(lines)
    return values


def has(folder: Path, run: str, seed: int) -> bool:
    """Whether `own_data.csv` of a folder has the run."""
    table = folder / "own_data.csv"
    return table.exists() and f"\n{run},{seed}," in table.read_text(encoding="utf-8")


def start_of(model: str) -> str | Path:
    """The model that `use_st5.train` is given for a name of `--models`."""
    return minilm_folder() if model == "minilm" else model


def trained_scores(
    model: str,
    name: str,
    seed: int,
    files: Mapping[str, Paths],
    *,
    part: str = "test",
    **options: Any,
) -> dict[str, Any]:
    """Trains once, and scores the trained encoder on a part of the set and on other tasks."""
    folder = Path(tempfile.mkdtemp())
    try:
        result = use_st5.train(
            start_of(model), files[name]["train"], folder / "model", validation=files[name]["dev"],
            seed=seed, log=print, **options,
        )  # fmt: skip
        encode = use_st5.load(result.folder).encode
        scores = all_scores(measured(name, files[name], part), encode, part)
        scores |= {
            f"{other}/dev": main_score(measured(other, files[other], "dev"), encode)
            for other in OTHERS
        }
        return {**scores, "best_step": result.best_step, "steps": result.steps}
    finally:
        shutil.rmtree(folder)


Runs = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]


def tables(runs: Runs, frozen: Mapping[str, Any]) -> Iterator[str]:
    """All tables, in Markdown, of the runs of each model with each set."""
    yield from gains(runs, frozen)
    yield ""
    yield from accuracies_at_k(runs, frozen)
    yield ""
    yield from forgotten(runs, frozen)


def gains(runs: Runs, frozen: Mapping[str, Any]) -> Iterator[str]:
    """The main measure of the test parts, before and after."""
    yield "| model | set | measure | before | after | best step | scikit-learn |"
    yield "|---|---|---|---|---|---|---|"
    for (model, name), seeds in runs.items():
        after, steps = ([run[key] for run in seeds] for key in ("test", "best_step"))
        sklearn_score = frozen[model].get(f"{name}/sklearn")
        sklearn_cell = "" if sklearn_score is None else f"{sklearn_score:.2f}"
        yield (
            f"| {model} | {name} | {seeds[0]['measure']} | {frozen[model][f'{name}/test']:.2f} "
            f"| {spread_of(after)} | {', '.join(f'{step:.0f}' for step in steps)} of "
            f"{seeds[0]['steps']:.0f} | {sklearn_cell} |"
        )


def accuracies_at_k(runs: Runs, frozen: Mapping[str, Any]) -> Iterator[str]:
    """How often an answer of the test parts is found first, and among the first ten."""
    yield "| model | set | accuracy@1 before | after | accuracy@10 before | after |"
    yield "|---|---|---|---|---|---|"
    for (model, name), seeds in runs.items():
        if all("test/accuracy@1" in run for run in seeds):
            cells = []
            for measure in ("test/accuracy@1", "test/accuracy@10"):
                cells.append(f"{frozen[model][f'{name}/{measure}']:.2f}")
                cells.append(spread_of([run[measure] for run in seeds]))
            yield f"| {model} | {name} | {' | '.join(cells)} |"


def forgotten(runs: Runs, frozen: Mapping[str, Any]) -> Iterator[str]:
    """The main measures of all development parts, by the set that was trained on."""
    yield f"| model | trained on | {' | '.join(OTHERS)} |"
    yield "|---|---|" + "---|" * len(OTHERS)
    for model, start in frozen.items():
        cells = [f"{start[f'{other}/dev']:.2f}" for other in OTHERS]
        yield f"| {model} | nothing | {' | '.join(cells)} |"
        for (trained, name), seeds in runs.items():
            if trained == model:
                cells = [spread_of([run[f"{other}/dev"] for run in seeds]) for other in OTHERS]
                yield f"| {model} | {name} | {' | '.join(cells)} |"


def spread_of(values: Sequence[float]) -> str:
    """Mean and standard deviation over the seeds."""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"


def main() -> None:
    """Reads the arguments, trains what is not there yet, and prints the tables."""
    parser = parser_of(__doc__, SETS)
    parser.add_argument("--models", default="use_dan_en,use_transformer_en,minilm")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=float, default=None)
    parser.add_argument("--tables", action="store_true", help="print what is there, train nothing")
    arguments = parser.parse_args()
    models, names, files = (
        arguments.models.split(","),
        arguments.sets.split(","),
        files_of(arguments),
    )
    options = {} if arguments.epochs is None else {"epochs": arguments.epochs}
    frozen: dict[str, Any] = {}
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for model in models:
        encode = use_st5.TrainableEncoder.load(start_of(model)).encode
        frozen[model] = kept(
            arguments.out,
            f"{model}/frozen",
            None,
            lambda: frozen_scores(encode, files, SETS),  # noqa: B023
        )
    for seed in range(arguments.seeds):
        for model in models:
            for name in names:
                if arguments.tables and not has(arguments.out, f"{model}/{name}", seed):
                    continue
                scores = kept(
                    arguments.out,
                    f"{model}/{name}",
                    seed,
                    lambda: trained_scores(model, name, seed, files, **options),  # noqa: B023
                )
                task = read_file(files[name]["test"]).task
                run = scores | {"measure": task.metric.name}
                runs.setdefault((model, name), []).append(run)
    print("\n".join(tables(runs, frozen)))


if __name__ == "__main__":
    main()
