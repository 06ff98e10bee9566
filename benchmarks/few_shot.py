"""Compares `few_shot=True` with SetFit: accuracy on test sets, time of a training.

    pip install "use_st5[data,evaluation]" setfit==1.2.0 datasets
    python -m benchmarks.few_shot DATA OUT --sets banking77,emotion,sst2,trec --shots 8,64 --seeds 5

DATA has `english_search/eval_dev` and `senteval/downstream`. SetFit has its defaults (squared error
of the cosine, one pass in batches of 16 at 2e-5, logistic regression) but for `num_iterations=20`,
as in its paper (Tunstall et al. 2022, section 4): 20 pairs of either kind for each text. Both begin
with the same examples and run by turns in one process; the models of use_st5 have no peer. Seconds
are those of the processor, because other programs may run: from the model's folder to the fitted
head, for use_st5 with the graphs and the export, without imports. OUT keeps each result; the same
command goes on.
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.own_data import kept
from benchmarks.own_data_sets import parser_of

Rows = list[tuple[str, str]]
_ITERATIONS = 20
_DEV = "english_search/eval_dev"
_SST, _TREC = "senteval/downstream/SST/binary/sentiment-", "senteval/downstream/TREC/"
_SETS: Mapping[str, tuple[str, str]] = {
    "banking77": (f"{_DEV}/banking77/train.tsv", f"{_DEV}/banking77/test.tsv"),
    "emotion": (f"{_DEV}/tweeteval_emotion/train.tsv", f"{_DEV}/tweeteval_emotion/test.tsv"),
    "sst2": (f"{_SST}train", f"{_SST}test"),
    "trec": (f"{_TREC}train_5500.label", f"{_TREC}TREC_10.label"),
}


def main() -> None:
    """Reads the arguments, trains what is not there yet, and prints the table."""
    parser = parser_of(__doc__, _SETS)
    parser.add_argument("--models", default="minilm,use_dan_en,use_transformer_en")
    parser.add_argument("--minilm", help="the folder of MiniLM; default: that of its package")
    parser.add_argument("--shots", default="8,64", help="examples of each class")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tested", type=int, default=100_000, help="test rows at most")
    arguments = parser.parse_args()

    # Imports are not measured. torch is before TensorFlow: their LLVMs refuse each other otherwise.
    for module in ("torch._dynamo", "setfit", "tensorflow"):
        importlib.import_module(module)

    for name in arguments.sets.split(","):
        train, test = (read(arguments.data / path) for path in _SETS[name])
        test = test[:: max(1, len(test) // arguments.tested)]
        for shots in map(int, arguments.shots.split(",")):
            for model in arguments.models.split(","):
                runs = [
                    kept(
                        arguments.out,
                        f"few_shot/{name}/{shots}/{model}/{len(test)}",
                        seed,
                        partial(one_run, model, arguments.minilm, train, test, shots, seed),
                    )
                    for seed in range(arguments.seeds)
                ]
                print(f"| {name} | {shots} | {model} | {' | '.join(cells(runs))} |", flush=True)


def read(path: Path) -> Rows:
    """The texts and labels of a file: `text<TAB>label`, or `LABEL:detail text` of TREC."""
    encoding = "latin-1" if path.suffix == ".label" else "utf-8"
    rows = []
    for line in path.read_text(encoding=encoding).splitlines():
        if path.suffix == ".label":
            label, text = line.split(" ", 1)
            rows.append((text, label.partition(":")[0]))
        elif "\t" in line:
            text, label = line.rsplit("\t", 1)
            rows.append((text.strip(), label.strip()))
    return rows


def examples(rows: Rows, shots: int, seed: int) -> Rows:
    """At most so many rows of each label: a small class takes no rows from later ones."""
    random, chosen = np.random.default_rng(seed), []
    for label in sorted({label for _, label in rows}):
        own = [row for row in rows if row[1] == label]
        if len(own) < shots:
            print(f"{label}: {len(own)} examples")
        chosen += [own[place] for place in random.permutation(len(own))[:shots]]
    return chosen


def cells(runs: Sequence[Mapping[str, float]]) -> list[str]:
    """Mean accuracy with its deviation over the seeds, and seconds, of both."""
    shown = []
    for who in ("use_st5", "setfit"):
        if values := [100 * run[f"{who}/accuracy"] for run in runs if f"{who}/accuracy" in run]:
            seconds = np.mean([run[f"{who}/seconds"] for run in runs])
            shown += [f"{np.mean(values):.1f} ± {np.std(values):.1f}", f"{seconds:.0f}"]
    return shown


def one_run(
    model: str, minilm: str | None, train: Rows, test: Rows, shots: int, seed: int
) -> dict[str, float]:
    """Accuracy and seconds of use_st5, and of SetFit if the model is MiniLM."""
    if model == "minilm":
        from experiments.minilm import minilm_folder

        model = str(minilm or minilm_folder())
    few, results = examples(train, shots, seed), {}
    texts, labels = [text for text, _ in test], np.array([label for _, label in test])
    trainers = {"use_st5": ours, **({"setfit": theirs} if Path(model).is_dir() else {})}
    for who, trainer in trainers.items():
        folder = Path(tempfile.mkdtemp())
        try:
            start = time.process_time()
            predict = trainer(model, few, folder / "model", seed)
            results[f"{who}/seconds"] = time.process_time() - start
            results[f"{who}/accuracy"] = float(np.mean(np.array(predict(texts)) == labels))
        finally:
            shutil.rmtree(folder)
    return results


def ours(model: str, few: Rows, folder: Path, seed: int) -> Callable[[list[str]], Any]:
    """Trains by `use_st5.train`; returns the classifier's `predict`."""
    import use_st5

    rows = [{"text": text, "label": label} for text, label in few]
    (classifier,) = use_st5.train(model, rows, folder, few_shot=True, seed=seed).classifiers
    return classifier.predict


def theirs(model: str, few: Rows, folder: Path, seed: int) -> Callable[[list[str]], Any]:
    """Trains by SetFit, with its defaults and `num_iterations`; returns its `predict`."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    texts, labels = zip(*few, strict=True)
    names, numbers = np.unique(labels, return_inverse=True)
    peer = SetFitModel.from_pretrained(model, device="cpu")
    settings = TrainingArguments(
        output_dir=str(folder),
        num_iterations=_ITERATIONS,
        seed=seed,
        save_strategy="no",
        report_to="none",
        show_progress_bar=False,
    )
    rows = Dataset.from_dict({"text": [*texts], "label": numbers.tolist()})
    Trainer(model=peer, args=settings, train_dataset=rows).train()
    return lambda asked: names[np.asarray(peer.predict(asked), int)]


if __name__ == "__main__":
    main()
