"""Compares `use-st5 train` with sentence-transformers' trainer: quality, processor time of a step.

    pip install "use_st5[data,evaluation,peers]" sentence-transformers accelerate datasets
    python -m benchmarks.own_data_peer DATA OUT --sets stsb,nli --seeds 3

Both begin with all-MiniLM-L6-v2 and take the same files, loss, batch, number of steps, learning
rate and schedule (Adam, a warm-up over a tenth of the steps and a linear decay, gradients clipped
at norm 1), with the checkpoint's own dropout. The loss is the squared error of the cosine for
STS-B's scores, and the in-batch softmax with hard negatives and τ = 0.05 for triplets. Both export
the model before or after training, whichever is better on the development part. They run by turns
in one process, with one thread each.

The time of a step is the difference between a run of all steps and a run of a quarter of them,
divided by the number of steps between. So it does not include graphs, measuring and export, which
"whole" includes. OUT keeps each result.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.own_data import kept, spread_of
from benchmarks.own_data_sets import Paths, files_of, main_score, measured, parser_of

_BATCH, _RATE, _TAU = 64, 2e-5, 0.05
# Columns in the order of sentence-transformers, our options of the loss, and its loss.
_LESSONS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any], Callable[[Any], Any]]] = {
    "stsb": (
        ("sentence1", "sentence2", "score"),
        {"objective": "mse"},
        lambda model: _losses().CosineSimilarityLoss(model),
    ),
    "nli": (
        ("anchor", "positive", "negative"),
        {"temperature": _TAU},
        lambda model: _losses().MultipleNegativesRankingLoss(model, scale=1 / _TAU),
    ),
}

Measure = Callable[[Callable[[list[str]], np.ndarray]], float]


def main() -> None:
    """Reads the arguments, trains what is not there yet, and prints the table."""
    parser = parser_of(__doc__, _LESSONS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=88)
    arguments = parser.parse_args()

    import torch._dynamo  # before TensorFlow: their LLVMs refuse each other otherwise

    torch.set_num_threads(1)
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    runs: dict[str, list[dict[str, Any]]] = {}
    files = files_of(arguments, arguments.sets.split(","))
    for seed in range(arguments.seeds):
        for name, paths in files.items():
            run = kept(
                arguments.out, f"peer/{name}_{arguments.steps}", seed,
                lambda: side_by_side(name, paths, seed, arguments.steps),  # noqa: B023
            )  # fmt: skip
            runs.setdefault(name, []).append(run)
    print("\n".join(table(runs, arguments.steps)))


def side_by_side(name: str, paths: Paths, seed: int, steps: int) -> dict[str, Any]:
    """Scores and seconds of both trainers, each with all steps and with a quarter of them."""
    dev, test = (measured(name, paths, part) for part in ("dev", "test"))
    measures: dict[str, Measure] = {
        "dev": lambda encode: main_score(dev, encode),
        "test": lambda encode: main_score(test, encode),
    }
    results: dict[str, Any] = {}
    for label, train in (("use_st5", ours), ("sentence_transformers", theirs)):
        for part, count in (("whole", steps), ("quarter", steps // 4)):
            folder = Path(tempfile.mkdtemp())
            try:
                start = time.process_time()
                encode = train(name, paths, folder / "model", seed, count, measures["dev"])
                results[f"{label}/{part}"] = time.process_time() - start
                if part == "whole":
                    results |= {f"{label}/{k}": score(encode) for k, score in measures.items()}
            finally:
                shutil.rmtree(folder)
    return results


def ours(
    name: str, paths: Paths, folder: Path, seed: int, steps: int, _dev: Measure
) -> Callable[[list[str]], np.ndarray]:
    """Trains by `use_st5.train`; returns the `encode` of its SavedModel."""
    import use_st5
    from experiments.minilm import minilm_folder

    use_st5.train(
        minilm_folder(), paths["train"], folder, validation=paths["dev"], seed=seed, steps=steps,
        batch_size=_BATCH, learning_rate=_RATE, loss=dict(_LESSONS[name][1]), evaluations=1,
    )  # fmt: skip
    return use_st5.load(folder).encode


def theirs(
    name: str, paths: Paths, folder: Path, seed: int, steps: int, dev: Measure
) -> Callable[[list[str]], np.ndarray]:
    """Trains by sentence-transformers' trainer; returns the `encode` of its folder's model."""
    from datasets import load_dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )

    from experiments.minilm import minilm_folder

    columns, _, make_loss = _LESSONS[name]
    model = SentenceTransformer(str(minilm_folder()), device="cpu")
    before = dev(model.encode)
    rows = load_dataset("csv", data_files=str(paths["train"]), split="train")
    rows = rows.select_columns([*columns])
    if "score" in columns:
        highest = max(rows["score"])
        rows = rows.map(lambda row: {"score": row["score"] / highest})
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder.with_name("checkpoints")),
        max_steps=steps,
        per_device_train_batch_size=_BATCH,
        learning_rate=_RATE,
        warmup_steps=steps // 10,
        lr_scheduler_type="linear",
        weight_decay=0.0,
        max_grad_norm=1.0,
        seed=seed,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=rows, loss=make_loss(model)
    )
    trainer.train()
    if dev(model.encode) < before:
        model = SentenceTransformer(str(minilm_folder()), device="cpu")
    model.save_pretrained(str(folder))
    return SentenceTransformer(str(folder), device="cpu").encode


def table(found: Mapping[str, Sequence[Mapping[str, float]]], steps: int) -> Iterator[str]:
    """Scores with their spread, and the ratios of the times, in Markdown."""
    yield f"{steps} steps of {_BATCH}"
    yield ""
    yield "| set | trainer | dev | test | whole, s | a step, s |"
    yield "|---|---|---|---|---|---|"
    for name, runs in found.items():
        for label in ("use_st5", "sentence_transformers"):
            dev, test = ([run[f"{label}/{part}"] for run in runs] for part in ("dev", "test"))
            whole = np.median([run[f"{label}/whole"] for run in runs])
            step = np.median([_step(run, label, steps) for run in runs])
            yield (
                f"| {name} | {label} | {spread_of(dev)} | {spread_of(test)} | {whole:.0f} "
                f"| {step:.2f} |"
            )
    yield ""
    for name, runs in found.items():
        whole = [run["sentence_transformers/whole"] / run["use_st5/whole"] for run in runs]
        step_ratios = [
            _step(run, "sentence_transformers", steps) / _step(run, "use_st5", steps)
            for run in runs
        ]
        yield (
            f"{name}: ratio of the whole {np.median(whole):.2f}, of a step "
            f"{np.median(step_ratios):.2f}"
        )


def _step(run: Mapping[str, float], label: str, steps: int) -> float:
    return (run[f"{label}/whole"] - run[f"{label}/quarter"]) / (steps - steps // 4)


def _losses() -> Any:
    from sentence_transformers.sentence_transformer import losses

    return losses


if __name__ == "__main__":
    main()
