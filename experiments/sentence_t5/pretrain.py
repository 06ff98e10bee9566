"""Pre-trains a small T5 by span corruption, for `two_stage`.

    python -m experiments.sentence_t5.pretrain --data DATA --out runs/pretrain_t5

The objective is T5's own (Raffel et al. 2020, section 3.1.4: 15 % of the tokens, spans of 3 on
average), and so is the optimizer: Adafactor with the rate min(0.01, 1/√step), which here falls to
0, since the run is short. DATA holds the English corpora of `experiments.corpora`. The script
writes `checkpoints/`, `t5.keras` (the whole model, decoder included) and `scores.json`.

Measured with seed 0 on two cores of an EPYC (Zen 4), which gave it about half of one core's time;
it was stopped after 200 steps and continued by the same command: 30 minutes, 16 of CPU time, 2 GB
of memory. The validation loss is 4.90 and the accuracy 0.293 after 4.5 million tokens. That is a
beginning, not a language model: 8 of the 29 target tokens are given by the form of the task, and
one in forty of the others is right. Raffel et al.'s baseline saw 34 billion tokens (section 3.1.2).
The effect on sentences is in `two_stage --variant table_3`.

On a machine with an accelerator and JAX but no TensorFlow, the same script trains a larger model,
with the data that this machine prepared:

    python -m experiments.sentence_t5.pretrain --part prepare --data DATA --out runs/t5_small
    export KERAS_BACKEND=jax
    python -m experiments.sentence_t5.pretrain --part train --variant t5_small --out runs/t5_small

Each variant is a preset with T5's vocabulary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from experiments.command import main
from experiments.corpus_tasks import STEPS_PER_CALL
from experiments.run import Run, Scores
from experiments.sentence_t5.pretraining_text import open_tokens, pretraining_tokens
from experiments.sentence_t5.span_corruption import SpanCorruption
from experiments.sentence_t5.span_corruption_loss import SpanCorruptionLoss
from use_st5.io import atomic_path
from use_st5.models import T5, SentenceT5, T5Config
from use_st5.training import ArrayData, LinearDecay, Trainer, TrainingArguments

# Measured on two shared cores with AVX512-BF16: 10,300 tokens/s with these settings, 5,100 with XLA
# in addition; float32 has 6,400 with XLA and 6,100 without.
DTYPE, XLA = "mixed_bfloat16", False
MODEL_NAME = "t5.keras"
_EVALUATED = 32  # texts at a time


@dataclasses.dataclass(frozen=True, kw_only=True)
class T5Pretraining:
    """A T5, decoder included, trained to fill in spans.

    Attributes:
        config: Configuration of the model, with T5's vocabulary.
        batch_size: Texts of a step.
        steps: Optimizer steps.
        learning_rate: The rate for the first tenth of the steps; then it falls to 0.
        corruption: Cuts the spans.
        evaluate_every: Steps between measurements.
        validation_texts: The number of texts for validation, which are not trained on.
        dtype: The dtype policy of the model.
    """

    config: T5Config
    batch_size: int
    steps: int = 1_000
    learning_rate: float = 0.01
    corruption: SpanCorruption = SpanCorruption(141)  # inputs of 128 tokens, targets of 29
    evaluate_every: int = 200
    validation_texts: int = 256
    dtype: str = DTYPE

    def run(self, data: Path, output: Path, **options: Any) -> Scores:
        """Pre-trains and saves the model; there is no part "export".

        Returns:
            Loss and accuracy on texts that were not trained on; empty if nothing is trained.
        """
        run = Run(data, output, **options)
        path = run.prepared / "tokens.npy"
        with run.begun():
            if "prepare" in run.parts:
                self._prepare(run.data, path)
            if "train" not in run.parts:
                return {}
            return self._train(run, open_tokens(path, self.corruption.length))

    def _prepare(self, data: Path, path: Path) -> None:
        # Imported here, because this part needs TensorFlow and training does not.
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
        """The settings of the training."""
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
        return run.write("scores.json", scores)

    def optimizer(self, steps: int) -> keras.optimizers.Optimizer:
        """Adafactor, with which T5 was pre-trained."""
        return keras.optimizers.Adafactor(LinearDecay(self.learning_rate, steps))

    def _corrupted(self, tokens: np.ndarray, seed: int) -> tuple[dict[str, np.ndarray], ...]:
        """Inputs and targets for training and for validation, whose texts are from all sources."""
        validation_count = max(1, min(self.validation_texts, len(tokens) // 10))
        order = np.random.default_rng(0).permutation(len(tokens))  # the same for every seed
        corrupted = self.corruption(tokens, seed=seed)
        return tuple(
            {name: ids[np.sort(rows)] for name, ids in corrupted.items()}
            for rows in (order[validation_count:], order[:validation_count])
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


EXPERIMENT = T5Pretraining(config=SentenceT5.presets["t5_mini_en"], batch_size=32)
# Raffel et al.'s own batch (section 3.1.2).
VARIANTS = {
    preset: T5Pretraining(config=config, batch_size=128)
    for preset, config in SentenceT5.presets.items()
    if config.vocabulary_size == EXPERIMENT.config.vocabulary_size and config != EXPERIMENT.config
}


if __name__ == "__main__":
    main(EXPERIMENT, VARIANTS)
