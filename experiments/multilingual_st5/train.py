"""m-ST5: mT5's encoder, LoRA, and inference triplets with sentences in different languages.

    python -m experiments.multilingual_st5.train --data DATA --out runs/multilingual_st5
    python -m experiments.multilingual_st5.train --variant large_en_nli --data DATA --out OUT

This is the training of Yano et al. 2024 (arXiv 2403.17528) in its three sizes: mean pooling over
the encoder's outputs, without projection and normalisation; adapters of rank 8 (or `--rank`) on
query and value (in the variants `…_all_linear` on all linear layers); batch 128, one epoch;
learning rate 5e-5 on XNLI and 5e-4 on English NLI (Table 5). The paper's scores, with adapters on
query and value unless the table says otherwise:

| size | base | training | XSTS ar-ar | ar-en | es-es | es-en | tr-en | Tatoeba-14 | -36 | BUCC |
|---|---|---|---|---|---|---|---|---|---|---|
| large | mT5-large, 564M | xnli | 62.0 | 58.2 | 77.6 | 56.8 | 53.8 | | | |
| | | en_nli | 68.8 | 49.1 | 82.1 | 59.5 | 48.8 | | | |
| xl | mT5-xl, 1.7B | xnli | 71.8 | 71.7 | 81.7 | 68.0 | 66.3 | | | |
| | | en_nli | 78.2 | 73.9 | 87.3 | 76.8 | 72.1 | | | |
| xxl | mT5-xxl, 5.7B | xnli | 76.2 | 78.6 | 84.4 | 76.2 | 75.1 | 96.3 | 94.7 | 97.6 |
| | | en_nli | 83.2 | 79.5 | 87.7 | 84.9 | 79.2 | 93.9 | 92.9 | 96.6 |
| xxl, all linear | | xnli | 77.3 | 77.8 | 85.0 | 77.7 | 75.0 | 96.5 | 94.8 | 97.7 |
| | | en_nli | 84.5 | 82.9 | 89.2 | 86.3 | 79.7 | 94.0 | 93.1 | 96.7 |

DATA holds, in any folder, `mt5-SIZE/` (Hugging Face's google/mt5-SIZE: config.json, safetensors
files, spiece.model), and either XNLI-MT 1.0's `multinli.train.XX.tsv` (15 languages; 1,963,485
triplets) or SimCSE's `nli_for_simcse.csv` (275,601); for the scores, the evaluation sets. The base
is frozen in bfloat16, and a batch is encoded in 16 pieces. The merged model is exported in float32.

These settings are not in the available text of the paper, and were chosen here: alpha 32 (PEFT's
example for mT0), the temperature 0.05 (mSimCSE's), 64 tokens, AdamW without weight decay, and a
rate that falls linearly to 0. The experiment has not been run: neither the weights nor the training
sets were available.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import keras

from experiments.command import main
from experiments.corpora import SIMCSE_NLI, XNLI_MT, xnli_mt
from experiments.corpus_tasks import (
    CorpusTask,
    Examples,
    Material,
    Stage,
    open_tasks,
    prepare_tasks,
    train_stages,
)
from experiments.held_out import held_out_sentences
from experiments.published_corpus import Example
from experiments.run import Run, Scores, read_json
from use_st5 import TrainableEncoder
from use_st5.convert import open_checkpoint
from use_st5.data import DataFolder, PreparedColumn
from use_st5.evaluation import evaluate, select_tasks, with_data, write_report
from use_st5.io import atomic_path
from use_st5.losses import ContrastiveLoss
from use_st5.models import SentenceT5, apply_lora, family_named, load_lora
from use_st5.tokenizers import SentencePieceTokenizer
from use_st5.training import LinearDecay, TrainingArguments

Targets = Literal["query_value", "all_linear"]
ADAPTERS, LISTING = "adapters.safetensors", "adapters.txt"
EVALUATED = "tatoeba,bucc,multilingual_sts"
IDS = PreparedColumn("token_ids", max_tokens=64)  # in training; the encoder itself has no limit
# Data folder and seed → triplets.
Read = Callable[[Path, int], Iterable[Example]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultilingualST5:
    """m-ST5 of one size, trained on one set of triplets.

    Attributes:
        name: The name of the exported encoder.
        base: Data folder, dtype and seed → the base, with the same weights at every call.
        tokenizer: Data folder → the tokenizer.
        required: Raises an error if the data folder lacks a file.
        triplets: Data folder and seed → triplets.
        learning_rate: The rate at the start; it falls linearly to 0.
        targets: As for `apply_lora`; rank and alpha are also as there.
        dtype: The dtype of the base in training; it is merged and exported in float32.
        micro_batch_size: Examples that are encoded at once.
        metadata: Facts for `use_st5.json`.
    """

    name: str
    base: Callable[[Path, str, int], SentenceT5]
    tokenizer: Callable[[Path], SentencePieceTokenizer]
    required: Callable[[Path], object]
    triplets: Read
    learning_rate: float
    targets: Targets
    rank: int = 8
    alpha: float = 32.0
    dtype: str = "bfloat16"
    batch_size: int = 128
    micro_batch_size: int = 8
    metadata: dict[str, Any]

    def task(self, seed: int) -> CorpusTask:
        """The triplets, drawn with a seed, and their loss."""
        return CorpusTask(
            name="triplets",
            loss=partial(ContrastiveLoss, temperature=0.05, hard_negatives=True),
            data=Examples(
                lambda data: self.triplets(data, seed),
                dict.fromkeys(("anchor", "positive", "negative"), IDS),
            ),
            batch_size=self.batch_size,
        )

    def arguments(self, steps: int) -> TrainingArguments:
        """The settings of a training of `steps` steps."""
        return TrainingArguments(
            optimizer=adamw(self.learning_rate),
            batch_size=self.batch_size,
            micro_batch_size=self.micro_batch_size,
            steps=steps,
            steps_per_execution=1,
            evaluation_steps=1_000,
        )

    def run(self, data: Path, output: Path, *, rank: int | None = None, **options: Any) -> Scores:
        """Prepares the triplets, trains adapters, merges, exports and scores.

        Args:
            data: As in `Run`.
            output: As in `Run`.
            rank: Rank of the adapters; None: 8, the paper's.
            **options: As in `Run`.
        """
        if rank is not None:
            return dataclasses.replace(self, rank=rank).run(data, output, **options)
        run = Run(data, output, **options)
        tasks = [self.task(run.seed)]
        with run.begun():
            self.required(run.data)
            if "prepare" in run.parts:
                material = Material(run.data, held_out_sentences(run.data, required=False))
                prepare_tasks(run, tasks, self.tokenizer(run.data), material)
            if "train" in run.parts:
                self._train(run, tasks)
            return self._export(run) if "export" in run.parts else {}

    def _train(self, run: Run, tasks: list[CorpusTask]) -> None:
        """Writes `adapters.safetensors`, and `adapters.txt`, which lists the adapted layers."""
        arrays = open_tasks(run, tasks)
        keras.utils.set_random_seed(run.seed)
        with run.scope():
            model = self.base(run.data, self.dtype, run.seed)
            adapters = apply_lora(
                model, targets=self.targets, rank=self.rank, alpha=self.alpha, seed=run.seed
            )
        (triplets,) = arrays[tasks[0].name].values()
        args = self.arguments(max(1, len(triplets) // self.batch_size))
        train_stages(run, model, [Stage(tasks=tasks, args=args)], [arrays])
        if run.writes:
            with atomic_path(run.output / LISTING) as listing:
                listing.write_text(f"{adapters}\n", encoding="utf-8")
            adapters.save(run.output / ADAPTERS)
        facts = {**self.metadata, "seed": run.seed, "tasks": [task.name for task in tasks]}
        run.write("training.json", facts)

    def _export(self, run: Run) -> Scores:
        """Exports the base in float32 with the adapters in it."""
        facts = read_json(run.output / "training.json")
        model = self.base(run.data, "float32", run.seed)
        load_lora(model, run.output / ADAPTERS).merge()
        tokenizer = self.tokenizer(run.data)
        encoder = TrainableEncoder(model, tokenizer, name=self.name, metadata=facts)
        scores = multilingual_scores(encoder, run.data, run.output)
        encoder.export(run.output / "model")
        return run.write("scores.json", scores)


def adamw(learning_rate: float) -> Callable[[int], keras.optimizers.Optimizer]:
    """Number of steps → AdamW without weight decay, whose rate falls linearly to 0."""
    return lambda steps: keras.optimizers.AdamW(
        LinearDecay(learning_rate, steps, constant_share=0.0), weight_decay=0.0
    )


def multilingual_scores(encoder: TrainableEncoder, data: Path, output: Path) -> Scores:
    """The main score of each evaluation set that is in the data folder.

    Writes `record.json`, which `use-st5 report` reads, and `report.md`.
    """
    tasks = with_data(select_tasks(EVALUATED), DataFolder(data))
    command = " ".join(sys.argv)
    record = evaluate(encoder.encode, tasks, data, name=encoder.name, command=command)
    record.write(output / "record.json")
    write_report([record], output)
    return {task: result["scores"][result["main"]] for task, result in record.tasks.items()}


def base_folder(data: Path, size: str) -> Path:
    """The folder of Google's mT5 of a size, anywhere in the data folder."""
    folders = sorted(data.rglob(f"mt5-{size}"))
    if not folders:
        raise FileNotFoundError(
            f"Expected mt5-{size} below {data}, the folder of google/mt5-{size}. Found none."
        )
    return folders[0]


def xnli_triplets(data: Path, seed: int) -> Iterable[Example]:
    """Triplets of three different languages."""
    return xnli_mt(XNLI_MT.files(data)).examples(seed=seed)


def english_triplets(data: Path, seed: int) -> Iterable[Example]:
    """English triplets; the seed is not used."""
    del seed
    return SIMCSE_NLI.examples(data)


# Name → corpus, its triplets, and the learning rate of the paper's Table 5.
TRAININGS: dict[str, tuple[Any, Read, float]] = {
    "xnli": (XNLI_MT, xnli_triplets, 5e-5),
    "en_nli": (SIMCSE_NLI, english_triplets, 5e-4),
}


def experiment(size: str, training: str, targets: Targets) -> MultilingualST5:
    """The paper's training for a size of mT5, a training set and the layers with adapters."""
    corpus, triplets, learning_rate = TRAININGS[training]
    return MultilingualST5(
        name=f"multilingual_st5_{size}",
        base=lambda data, dtype, seed: family_named("t5").read(
            open_checkpoint(base_folder(data, size)), dtype=dtype
        )[0],
        tokenizer=lambda data: SentencePieceTokenizer(base_folder(data, size) / "spiece.model"),
        required=lambda data: (base_folder(data, size), corpus.files(data)),
        triplets=triplets,
        learning_rate=learning_rate,
        targets=targets,
        metadata={"base": f"mt5-{size}", "training": training, "targets": targets},
    )


EXPERIMENT = experiment("xxl", "xnli", "query_value")
VARIANTS = {
    f"{size}_{name}{suffix}": experiment(size, name, targets)
    for size, name, (suffix, targets) in product(
        ("large", "xl", "xxl"), TRAININGS, (("", "query_value"), ("_all_linear", "all_linear"))
    )
}


if __name__ == "__main__":
    main(EXPERIMENT, VARIANTS)
