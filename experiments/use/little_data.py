"""Accuracy on SST against the number of training examples, with a frozen encoder.

    python -m experiments.use.little_data use_dan_en --data DATA --out OUT

Universal Sentence Encoder (Cer et al. 2018), section 5 and Table 3: the training set is cut to
1,000, 2,000, … examples, classifiers are trained repeatedly, accuracies averaged. The paper trained
a network tuned for each case (`transfer_tables.py`); here it is SentEval's logistic regression.
OUT is a record as `use-st5 evaluate` writes it. `use-st5 report` shows it. With two cores it takes
some minutes.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import use_st5
from use_st5.evaluation import (
    TRANSFER_DATASETS,
    EvaluationTask,
    LabelledFeatures,
    LabelledTexts,
    SentEvalClassifier,
    TaskContext,
    TaskResult,
    evaluate,
)

SST2 = TRANSFER_DATASETS["SST-2"]
_SIZES = (1000, 2000, 4000, 8000, 16000, 32000)
_DRAWS = 5


def learning_curve(
    embed: Callable[[list[str]], np.ndarray],
    data: dict[str, LabelledTexts],
    *,
    sizes: Sequence[int],
    draws: int,
    classifier: SentEvalClassifier,
) -> list[dict[str, Any]]:
    """Trains classifiers on random subsets of the training sentences.

    All draws are independent of each other. Each has its own seed for the subset and for the
    classifier's initial weights, so that draws of the whole training set differ, too.

    Args:
        embed: Sentences → embeddings `[sentences, dim]`.
        data: Single sentences in three parts: the subsets are drawn from "train", the whole of
            "dev" chooses the regularisation, and the accuracies are those on "test".
        sizes: Numbers of training examples.
        draws: The number of subsets of each size.
        classifier: Its seed is that of the first draw.

    Returns:
        For each size, in their order, the "examples", the mean "accuracy" in 0 … 1, its sample
        standard deviation "std" and the "draws".
    """
    most = len(data["train"])
    if bad := [size for size in sizes if not 1 <= size <= most]:
        raise ValueError(f"sizes: expected 1 to {most} training examples, received {bad}.")
    train, dev, test = (
        LabelledFeatures(embed(data[part].columns[0]), data[part].labels)
        for part in ("train", "dev", "test")
    )
    points = []
    for size in sizes:
        accuracies = []
        for draw in range(draws):
            seed = classifier.seed + draw
            rows = np.random.default_rng((seed, size)).permutation(len(train))[:size]
            result = dataclasses.replace(classifier, seed=seed).split(
                train=LabelledFeatures(train.read(rows), train.labels[rows]),
                dev=dev,
                test=test,
            )
            accuracies.append(result.test_accuracy)
        mean, std = statistics.fmean(accuracies), statistics.stdev(accuracies)
        points.append({"examples": size, "accuracy": mean, "std": std, "draws": draws})
    return points


def little_data_task(sizes: tuple[int, ...] = _SIZES, *, draws: int = _DRAWS) -> EvaluationTask:
    """The task of binary SST with 1,000 to all training phrases (USE paper, table 3).

    Args:
        sizes: Numbers of training phrases; all of them come last.
        draws: Random subsets of each size.
    """

    def score(context: TaskContext, data: dict[str, LabelledTexts]) -> TaskResult:
        curve = learning_curve(
            context.embed,
            data,
            sizes=(*sizes, len(data["train"])),
            draws=draws,
            classifier=SentEvalClassifier(seed=context.seed),
        )
        names = [f"accuracy_{name}" for name in (*sizes, "all")]
        scores = {name: point["accuracy"] for name, point in zip(names, curve, strict=True)}
        counts = {part: len(texts) for part, texts in data.items()}
        return TaskResult(names[0], scores, counts, {"curve": curve})

    return EvaluationTask(
        "little_data_sst",
        "little_data",
        "SST from little data",
        "accuracy on the test sentences of binary SST against the number of training phrases, "
        f"mean of {draws} random subsets; SentEval's logistic regression on frozen "
        "embeddings, the dev sentences choose the L2 factor and when to stop (the experiment "
        "of the USE paper's table 3, which trained a DNN tuned for each case)",
        score=score,
        reader=SST2.read,
        sources=SST2.sources,
        options={"sizes": [*sizes], "draws": draws, **SentEvalClassifier().settings()},
    )


def run(model: str, data: Path, output: Path, seed: int) -> None:
    """Measures a model and writes the record."""
    command = " ".join(sys.argv)
    record = evaluate(use_st5.load(model), [little_data_task()], data, seed=seed, command=command)
    record.write(output)
    for name, accuracy in record.tasks["little_data_sst"]["scores"].items():
        print(f"{name}: {100 * accuracy:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a bundled model's name or a folder")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("-o", "--out", dest="output", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=0)
    run(**vars(parser.parse_args()))
