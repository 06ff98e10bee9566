"""Compares SBERT, DefSent and their five combinations on STS, transfer and probing.

    python -m experiments.sbert_defsent.comparison --data DATA --out runs/comparison
    python -m experiments.sbert_defsent.comparison --pretrained FOLDER --model bert_base --data DATA

This is the experiment of Tsukagoshi, Sasano and Takeda (*SEM 2022) on one pre-trained model. Each
method of `sbert_defsent` is trained with three seeds; they and the model without fine-tuning are
scored. The scores are the correlations of STS12 to SICK-R (the paper's Table 3), also by the source
of the sentences (Figure 2) and by the words that the two sentences of a pair share (Figure 3), the
transfer tasks (Table 4) and the probing tasks (Figure 5), as far as their files are in DATA. The
transfer tasks use SentEval's quick settings (five folds, RMSProp, batches of 128), which its
authors recommend for prototypes. With `--classifier full` they use those of the paper (ten folds,
Adam, batches of 64, epoch size 4), as probing always does.

First all methods are trained and scored on STS with the first seed, then with the next ones. The
transfer and probing tasks, which take longer, follow in the same order. Complete runs are not
repeated, and the same command continues after an interruption. `tables.md` and the plots are
written after each method, with mean and standard deviation over the finished seeds.

`--seeds N` is the number of seeds, `--methods sbert,s_d` names some rows, and `--model` trains with
the paper's settings for a model instead of those for two cores. Training reads no test set.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from experiments.command import main
from experiments.run import Scores
from experiments.sbert_defsent.combination import Combination
from experiments.sbert_defsent.comparison_results import (
    NAMES,
    STS,
    TRANSFER,
    main_scores,
    records_of,
    write_results,
)
from experiments.sbert_defsent.sts_tasks import BY_SHARED_WORDS, BY_SOURCE
from experiments.sbert_defsent.train import METHODS, Method, Training, published
from use_st5 import SentenceEncoder
from use_st5.data import DataFolder
from use_st5.evaluation import (
    TRANSFER_DATASETS,
    EvaluationRecord,
    EvaluationTask,
    SentEvalClassifier,
    evaluate,
    select_tasks,
    transfer_task,
    with_data,
)
from use_st5.io import atomic_path, sole_writer

# SentEval's README gives the quick settings "for prototyping", and the usual ones, which the paper
# uses (section 3.3), for results that are comparable with the literature.
QUICK = SentEvalClassifier(folds=5, optimizer="rmsprop", batch_size=128, tenacity=3, epoch_size=2)
CLASSIFIERS = {"quick": QUICK, "full": SentEvalClassifier()}


def run(
    data: Path,
    output: Path,
    *,
    pretrained: Path | None = None,
    seeds: int = 3,
    methods: Sequence[str] = tuple(NAMES),
    model: Literal["bert_base", "bert_large", "roberta_base", "roberta_large"] | None = None,
    classifier: Literal["quick", "full"] = "quick",
    **options: Any,
) -> Scores:
    """Trains and scores every method with every seed.

    Args:
        data: Folder of the corpora and the evaluation sets.
        output: Folder of the runs, the tables and the plots.
        pretrained: As for `sbert_defsent`.
        seeds: The number of seeds.
        methods: Names of rows, in the order of training.
        model: The model whose settings in the paper are used; None: settings for two cores.
        classifier: SentEval's quick settings for the transfer tasks, or its usual ones.
        **options: `seed` is the first of the seeds. The others are as in `Run`, on one machine.

    Returns:
        Mean of the main scores by "row/task".
    """
    with sole_writer(output, inside=True):
        tasks = tasks_at_hand(data, CLASSIFIERS[classifier])
        all_methods = METHODS if model is None else published(model)
        seed = options.get("seed", 0)
        runs = [(name, run_seed) for run_seed in range(seed, seed + seeds) for name in methods]
        for name, run_seed in runs:
            folder = _folder(output, name, run_seed)
            if not (folder / "scores.json").exists():
                (folder / "evaluation.json").unlink(missing_ok=True)
                run_options = {**options, "pretrained": pretrained, "seed": run_seed}
                _train(name, all_methods[name], data, output, run_options)
            _evaluate(folder, [task for task in tasks if task.group == "sts"], data)
        for name, run_seed in runs:
            _evaluate(_folder(output, name, run_seed), tasks, data)
        write_results(output)
    return {
        f"{name}/{task}": float(np.mean([scores[task] for scores in runs]))
        for name, runs in main_scores(records_of(output)).items()
        for task in runs[0]
    }


def tasks_at_hand(data: Path, classifier: SentEvalClassifier = QUICK) -> list[EvaluationTask]:
    """The tasks of the comparison whose data is in a folder.

    Args:
        data: The folder.
        classifier: The classifier of the transfer tasks.
    """
    all_tasks = [
        *(*select_tasks(",".join(STS)), BY_SOURCE, BY_SHARED_WORDS),
        *select_tasks(",".join([*TRANSFER, "probing"])),
    ]
    ours = [transfer_task(dataset, classifier) for dataset in TRANSFER_DATASETS.values()]
    transfer = {task.name: task for task in ours}
    tasks = [transfer.get(task.name, task) for task in with_data(all_tasks, DataFolder(data))]
    if not tasks:
        raise FileNotFoundError(
            f"{data}: expected the STS sets or others to compare on, found none"
        )
    return tasks


def _evaluate(folder: Path, tasks: Sequence[EvaluationTask], data: Path) -> None:
    """Scores a run and writes the tables, unless its record has all tasks with these options."""
    record = folder / "evaluation.json"
    tasks_of_record = EvaluationRecord.read(record).tasks if record.exists() else {}
    record_options = {name: each["options"] for name, each in tasks_of_record.items()}
    if any(
        record_options.get(task.name) != json.loads(json.dumps(dict(task.options)))
        for task in tasks
    ):
        encoder, command = SentenceEncoder(folder / "model"), " ".join(sys.argv)
        evaluate(encoder, tasks, data, cache=folder / "cache", command=command).write(record)
        write_results(folder.parent)


def _folder(output: Path, name: str, seed: int) -> Path:
    # The untuned model depends on no seed.
    return output / (name if name == "untuned" else f"{name}_{seed}")


def _train(
    name: str,
    method: Method,
    data: Path,
    output: Path,
    options: Mapping[str, Any],
) -> None:
    seed = options["seed"]
    folder = _folder(output, name, seed)
    kwargs: dict[str, Any] = {**options, "prepared": output / "prepared"}
    singles = {each: _folder(output, each, seed) for each in ("sbert", "defsent")}
    if isinstance(method, Combination):
        method.run(data, folder, sbert=singles["sbert"], defsent=singles["defsent"], **kwargs)
        return
    _begin_with_singles(method, folder, singles)
    method.run(data, folder, **kwargs)


def _begin_with_singles(method: Training, folder: Path, singles: Mapping[str, Path]) -> None:
    """Copies the checkpoints of the first stage from a finished run, whose result is the same."""
    first = method.stages[0].name if len(method.stages) > 1 else ""
    source = singles.get(first, Path()) / "checkpoints" / first
    target = folder / "checkpoints" / first
    if first and source.is_dir() and not (folder / "checkpoints").exists():
        with atomic_path(target) as temporary:
            shutil.copytree(source, temporary, ignore=shutil.ignore_patterns("logs"))


if __name__ == "__main__":
    main(run)
