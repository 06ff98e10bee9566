"""Compares `few_shot=True` with SetFit's recipe: accuracy on test sets, time of a training.

    pip install "use_st5[data,evaluation]" sentence-transformers accelerate datasets
    python -m benchmarks.few_shot DATA OUT --sets banking77,emotion,sst2,trec --shots 8,64 --seeds 5

DATA has `english_search/eval_dev` and `senteval/downstream`. SetFit itself is not used: its
recipe (Tunstall et al. 2022, section 4, and `num_iterations=20` of its
`scripts/setfit/run_fewshot.py`) is written here with sentence-transformers' trainer: 20 pairs of
either kind for each text, drawn with repetition when there are fewer, squared error of the
cosine, one pass in batches of 16 at 2e-5, then scikit-learn's logistic regression. Both begin with
the same examples and run by turns in one process; the models of use_st5 have no peer. Seconds are
those of the processor, because other programs may run: from the model's folder to the fitted head,
for use_st5 with the graphs and the export. OUT keeps each result; the same command goes on.
"""

from __future__ import annotations

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
_ITERATIONS, _BATCH, _RATE = 20, 16, 2e-5
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

    import torch._dynamo  # noqa: F401  # before TensorFlow: their LLVMs refuse each other otherwise

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
    for who in ("use_st5", "recipe"):
        if values := [100 * run[f"{who}/accuracy"] for run in runs if f"{who}/accuracy" in run]:
            seconds = np.mean([run[f"{who}/seconds"] for run in runs])
            shown += [f"{np.mean(values):.1f} ± {np.std(values):.1f}", f"{seconds:.0f}"]
    return shown


def one_run(
    model: str, minilm: str | None, train: Rows, test: Rows, shots: int, seed: int
) -> dict[str, float]:
    """Accuracy and seconds of use_st5, and of the recipe if the model is MiniLM."""
    if model == "minilm":
        from experiments.minilm import minilm_folder

        model = str(minilm or minilm_folder())
    few, results = examples(train, shots, seed), {}
    texts, labels = [text for text, _ in test], np.array([label for _, label in test])
    trainers = {"use_st5": ours, **({"recipe": theirs} if Path(model).is_dir() else {})}
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
    """Trains by SetFit's recipe; returns a function from texts to labels."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.losses import CosineSimilarityLoss
    from sklearn.linear_model import LogisticRegression

    encoder = SentenceTransformer(model, device="cpu")
    texts, labels = zip(*few, strict=True)
    numbers = np.unique(labels, return_inverse=True)[1]
    random, count = np.random.default_rng(seed), _ITERATIONS * len(few)
    first, second = random.permutation(np.stack(np.triu_indices(len(few)), axis=1)).T
    alike = numbers[first] == numbers[second]
    chosen = np.concatenate([np.resize(np.flatnonzero(part), count) for part in (alike, ~alike)])
    columns = {
        "sentence1": [texts[place] for place in first[chosen]],
        "sentence2": [texts[place] for place in second[chosen]],
        "score": [float(each) for each in alike[chosen]],
    }
    settings = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        num_train_epochs=1,
        per_device_train_batch_size=_BATCH,
        learning_rate=_RATE,
        warmup_steps=2 * count // _BATCH // 10,
        seed=seed,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    SentenceTransformerTrainer(
        model=encoder,
        args=settings,
        train_dataset=Dataset.from_dict(columns),
        loss=CosineSimilarityLoss(encoder),
    ).train()
    head = LogisticRegression().fit(encoder.encode([*texts]), labels)
    return lambda asked: head.predict(encoder.encode(asked))


if __name__ == "__main__":
    main()
