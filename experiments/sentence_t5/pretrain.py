"""A small T5 pre-trained by span corruption: what `two_stage` starts from.

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

Where there is an accelerator with JAX and no TensorFlow, the same recipe trains a larger one, on
what this machine prepared:

    python -m experiments.sentence_t5.pretrain --part prepare --data DATA --out runs/t5_small
    export KERAS_BACKEND=jax
    python -m experiments.sentence_t5.pretrain --part train --variant t5_small --out runs/t5_small

Each variant is a preset with T5's vocabulary.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np

from experiments.command import main
from experiments.sentence_t5.pretraining_text import open_tokens, pretraining_tokens
from experiments.sentence_t5.span_corruption import SpanCorruption
from use_st5._files import atomic_path, sole_writer
from use_st5._remote_files import cached_path
from use_st5.losses import SpanCorruptionLoss
from use_st5.models import T5, T5Config
from use_st5.models.t5.model import T5_PRESETS, T5_ROWS
from use_st5.training import ArrayData, LinearDecay, Task
from use_st5.training.backend_loop import backend_loop
from use_st5.training.device import Device
from use_st5.training.recipe import Part, Scores, StrategyName
from use_st5.training.recipe_run import checkpoints_folder, parts_to_run, write_json

# Measured on two shared cores with AVX512-BF16: 10,300 tokens/s so, 5,100 with XLA on top; float32
# 6,400 with XLA and 6,100 without.
DTYPE, XLA = "mixed_bfloat16", False
MODEL_NAME = "t5.keras"
_EVALUATED = 32  # texts at a time


@dataclasses.dataclass(frozen=True, kw_only=True)
class T5Pretraining:
    """A T5, decoder included, trained to fill in spans: no encoder, and so no `Recipe`.

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

    def run(
        self,
        data: Path,
        output: Path,
        *,
        seed: int = 0,
        steps: int | None = None,
        resume: bool = True,
        part: Part | None = None,
        strategy: StrategyName | None = None,
        batch_files: str | Path | None = None,
    ) -> Scores:
        """Pre-trains and saves the model.

        Args:
            data: Folder of the corpora.
            output: Folder for checkpoints, the model and the scores.
            seed: Of the initial weights, the spans and the shuffling.
            steps: Optimizer steps; the recipe's own by default.
            resume: Whether an interrupted run in `output` continues.
            part: "prepare" writes what is to be trained on into `output/prepared` and does no more;
                "train" does what is left, and needs neither `data` nor TensorFlow. None: both.
            strategy: As in `Recipe.run`.
            batch_files: As in `Recipe.run`.

        Returns:
            Loss and accuracy on texts that were not trained on; nothing where nothing is trained.
        """
        wanted = parts_to_run(part, ("prepare", "train"))
        data, device = cached_path(data), Device(strategy, part, batch_files)
        alone = sole_writer(output, inside=True, remote=True)
        with alone if device.writes else contextlib.nullcontext():
            checkpoints = checkpoints_folder(output, resume=resume)
            path = output / "prepared" / "tokens.npy"
            if "prepare" in wanted:
                self._prepare(data, path)
            if "train" not in wanted:
                return {}
            tokens = open_tokens(path, self.corruption.length)
            return self._train(tokens, output, checkpoints, seed, steps or self.steps, device)

    def _prepare(self, data: Path, path: Path) -> None:
        # Imported here: TensorFlow's part, and the model trains without it.
        from use_st5.evaluation.held_out import held_out_sentences
        from use_st5.tokenizers import SentencePieceTokenizer

        pretraining_tokens(
            data,
            SentencePieceTokenizer(),
            self.corruption.length,
            path,
            held_out=lambda: held_out_sentences(data),
        )

    def _train(
        self,
        tokens: np.ndarray,
        output: Path,
        checkpoints: Path,
        seed: int,
        steps: int,
        device: Device,
    ) -> Scores:
        training, validation = self._corrupted(tokens, seed)
        keras.utils.set_random_seed(seed)
        with device.scope():
            model = T5(self.config, dtype=self.dtype)
            model.build()
            optimizer = self.optimizer(steps)
        loss = SpanCorruptionLoss()
        evaluate = _evaluation(model, loss, validation)
        backend_loop(
            model,
            [Task("span_corruption", loss, ArrayData(training), batch_size=self.batch_size)],
            optimizer,
            folder=checkpoints,
            seed=seed,
            evaluate=evaluate,
            evaluate_every=min(self.evaluate_every, steps),
            checkpoint_every=min(self.evaluate_every, steps),
            monitor="validation_loss",
            mode="min",
            tensorboard=True,
            **{"jit_compile": XLA, **device.options},
        ).run(steps)
        scores = evaluate()
        if device.writes:
            with atomic_path(output / MODEL_NAME) as temporary:
                model.save(temporary)
            write_json(output / "scores.json", scores)
        return scores

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
    model: T5, loss: SpanCorruptionLoss, texts: dict[str, np.ndarray]
) -> Callable[[], dict[str, float]]:
    rows = len(texts["inputs"])

    def evaluate() -> dict[str, float]:
        sums = np.zeros(2)
        for start in range(0, rows, _EVALUATED):
            batch = {name: ids[start : start + _EVALUATED] for name, ids in texts.items()}
            value, metrics = loss(model, batch)
            sums += len(batch["inputs"]) * np.array([float(value), float(metrics["accuracy"])])
        return dict(zip(("validation_loss", "validation_accuracy"), sums / rows, strict=True))

    return evaluate


RECIPE = T5Pretraining(config=T5_PRESETS["t5_mini_en"], batch_size=32)
# Raffel et al.'s own batch (section 3.1.2).
VARIANTS = {
    preset: T5Pretraining(config=config, batch_size=128)
    for preset, config in T5_PRESETS.items()
    if config.vocabulary_size == T5_ROWS and config != RECIPE.config
}


if __name__ == "__main__":
    main(RECIPE, VARIANTS)
