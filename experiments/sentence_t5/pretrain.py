"""Pre-trains a small T5 by span corruption, for `two_stage`.

    python -m experiments.sentence_t5.pretrain --data DATA --out runs/pretrain_t5

T5's own objective (Raffel et al. 2020, section 3.1.4: 15 % of the tokens, spans of 3 on average)
and its optimizer: Adafactor with the rate min(0.01, 1/√step), which falls to 0 here, since the run
is short. DATA holds the English corpora of `experiments.corpora`. Written are `checkpoints/`,
`t5.keras` (the whole model, decoder included) and `scores.json`.

Measured with seed 0 on two cores of an EPYC (Zen 4), of which it had about half of one, stopped
after 200 steps and gone on with by the same command: 30 minutes, 16 of CPU time, 2 GB of memory.
Validation loss 4.90 and accuracy 0.293 after 4.5 million tokens. That is a beginning, not a
language model: of 29 target tokens 8 are given by the form of the task, and of the others one in
forty is right. Raffel et al.'s baseline saw 34 billion tokens (section 3.1.2). What follows for
sentences is in `two_stage --variant table_3`.

Where there is an accelerator with JAX and no TensorFlow, the same script trains a larger one, on
what this machine prepared:

    python -m experiments.sentence_t5.pretrain --part prepare --data DATA --out runs/t5_small
    export KERAS_BACKEND=jax
    python -m experiments.sentence_t5.pretrain --part train --variant t5_small --out runs/t5_small

Each variant is a preset with T5's vocabulary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

import keras
import numpy as np

from experiments.command import main
from experiments.corpus_tasks import STEPS_PER_CALL
from experiments.run import Options, Run, Scores
from experiments.sentence_t5.pretraining_text import open_tokens, pretraining_tokens
from experiments.sentence_t5.span_corruption import SpanCorruption
from experiments.sentence_t5.span_corruption_loss import SpanCorruptionLoss
from use_st5._files import atomic_path
from use_st5.models import T5, T5Config
from use_st5.models.t5.model import T5_PRESETS, T5_ROWS
from use_st5.training import ArrayData, LinearDecay, Trainer, TrainingArguments

# Measured on two shared cores with AVX512-BF16: 10,300 tokens/s so, 5,100 with XLA on top; float32
# 6,400 with XLA and 6,100 without.
DTYPE, XLA = "mixed_bfloat16", False
MODEL_NAME = "t5.keras"
_EVALUATED = 32  # texts at a time


@dataclasses.dataclass(frozen=True, kw_only=True)
class T5Pretraining:
    """A T5, decoder included, trained to fill in spans.

    Attributes:
        config: Of the model, with T5's vocabulary.
        batch_size: Texts of a step.
        steps: Optimizer steps.
        learning_rate: At the start; it stays for a tenth of the steps, then falls to 0.
        corruption: Cuts the spans.
        evaluate_every: Steps between measurements.
        validation_texts: How many texts are measured on, and not trained on.
        dtype: What the model computes in.
    """

    config: T5Config
    batch_size: int
    steps: int = 1_000
    learning_rate: float = 0.01
    corruption: SpanCorruption = SpanCorruption(141)  # inputs of 128 tokens, targets of 29
    evaluate_every: int = 200
    validation_texts: int = 256
    dtype: str = DTYPE

    def run(self, data: Path, output: Path, **options: Unpack[Options]) -> Scores:
        """Pre-trains and saves the model; there is no part "export".

        Returns:
            Loss and accuracy on texts that were not trained on; nothing where nothing is trained.
        """
        run = Run(data, output, parts=("prepare", "train"), **options)
        path = run.prepared / "tokens.npy"
        with run.begun():
            if run.does("prepare"):
                self._prepare(run.data, path)
            if not run.does("train"):
                return {}
            return self._train(run, open_tokens(path, self.corruption.length))

    def _prepare(self, data: Path, path: Path) -> None:
        # Imported here: TensorFlow's part, and the model trains without it.
        from experiments.held_out import held_out_sentences
        from use_st5.tokenizers import SentencePieceTokenizer

        pretraining_tokens(
            data,
            SentencePieceTokenizer(),
            self.corruption.length,
            path,
            held_out=lambda: held_out_sentences(data),
        )

    def arguments(self, run: Run) -> TrainingArguments:
        """How to train."""
        return TrainingArguments(
            optimizer=self.optimizer,
            batch_size=self.batch_size,
            steps=run.steps or self.steps,
            steps_per_execution=STEPS_PER_CALL,
            evaluation_steps=self.evaluate_every,
            jit_compile=XLA,
            seed=run.seed,
        )

    def _train(self, run: Run, tokens: np.ndarray) -> Scores:
        training, validation = self._corrupted(tokens, run.seed)
        keras.utils.set_random_seed(run.seed)
        with run.scope():
            model = T5(self.config, dtype=self.dtype)
            model.build()
        loss = SpanCorruptionLoss()
        evaluate = _evaluation(loss, validation)
        Trainer(
            model,
            {"span_corruption": (ArrayData(training), loss)},
            self.arguments(run),
            evaluate=evaluate,
            monitor="validation_loss",
            mode="min",
            restore_best=False,
            folder=run.checkpoints,
            strategy=run.strategy,
            batch_files=run.batch_files,
        ).train()
        scores = evaluate(model)
        if run.writes:
            with atomic_path(run.output / MODEL_NAME) as temporary:
                model.save(temporary)
        return run.write_scores(scores)

    def optimizer(self, steps: int) -> keras.optimizers.Optimizer:
        """Adafactor, as T5 was pre-trained with."""
        return keras.optimizers.Adafactor(LinearDecay(self.learning_rate, steps))

    def _corrupted(self, tokens: np.ndarray, seed: int) -> tuple[dict[str, np.ndarray], ...]:
        """Inputs and targets for training, and of texts drawn from all sources for validation."""
        held = max(1, min(self.validation_texts, len(tokens) // 10))
        order = np.random.default_rng(0).permutation(len(tokens))  # the same for every seed
        corrupted = self.corruption(tokens, seed=seed)
        return tuple(
            {name: ids[np.sort(rows)] for name, ids in corrupted.items()}
            for rows in (order[held:], order[:held])
        )


def _evaluation(
    loss: SpanCorruptionLoss, texts: dict[str, np.ndarray]
) -> Callable[[T5], dict[str, float]]:
    rows = len(texts["inputs"])

    def evaluate(model: T5) -> dict[str, float]:
        sums = np.zeros(2)
        for start in range(0, rows, _EVALUATED):
            batch = {name: ids[start : start + _EVALUATED] for name, ids in texts.items()}
            value, metrics = loss(model, batch)
            sums += len(batch["inputs"]) * np.array([float(value), float(metrics["accuracy"])])
        return dict(zip(("validation_loss", "validation_accuracy"), sums / rows, strict=True))

    return evaluate


EXPERIMENT = T5Pretraining(config=T5_PRESETS["t5_mini_en"], batch_size=32)
# Raffel et al.'s own batch (section 3.1.2).
VARIANTS = {
    preset: T5Pretraining(config=config, batch_size=128)
    for preset, config in T5_PRESETS.items()
    if config.vocabulary_size == T5_ROWS and config != EXPERIMENT.config
}


if __name__ == "__main__":
    main(EXPERIMENT, VARIANTS)
