"""A small T5 pre-trained by span corruption: what `sentence_t5` starts from.

    use-st5 train pretrain_t5 --data DATA --out runs/pretrain_t5

T5's own objective (Raffel et al. 2020, section 3.1.4: 15 % of the tokens, spans of 3 on average)
and its optimizer: Adafactor with the rate min(0.01, 1/√step), which falls to 0 here, since the run
is short. DATA holds the corpora of `_permissive_corpora.py`. Written are `checkpoints/`,
`t5.keras` (the whole model, decoder included) and `scores.json`.

Measured with seed 0 on two cores of an EPYC (Zen 4), of which it had about half of one, stopped
after 200 steps and gone on with by the same command: 30 minutes, 16 of CPU time, 2 GB of memory.
Validation loss 4.90 and accuracy 0.293 after 4.5 million tokens. That is a beginning, not a
language model: of 29 target tokens 8 are given by the form of the task, and of the others one in
forty is right. Raffel et al.'s baseline saw 34 billion tokens (section 3.1.2). What follows for
sentences is in `sentence_t5_ablation`.

Where there is an accelerator with JAX and no TensorFlow, the same recipe trains a larger one, on
what this machine prepared:

    use-st5 train pretrain_t5 --part prepare --data DATA --out runs/t5_small
    KERAS_BACKEND=jax use-st5 train pretrain_t5 --part train --preset t5_small --out runs/t5_small
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np

from use_st5._files import atomic_path
from use_st5.data.span_corruption import SpanCorruption
from use_st5.losses.span_corruption_loss import SpanCorruptionLoss
from use_st5.models.t5.config import T5_PRESETS, T5_ROWS, T5Config
from use_st5.models.t5.t5 import T5, t5_config
from use_st5.recipes._parts import Part, parts_to_run
from use_st5.recipes._pretraining_text import open_tokens, pretraining_tokens
from use_st5.recipes._run_folder import alone, checkpoints_folder, write_scores
from use_st5.training.array_data import ArrayData
from use_st5.training.backend_trainer import backend_trainer
from use_st5.training.linear_decay import LinearDecay
from use_st5.training.task import Task

PRESET = "t5_mini_en"
CORRUPTION = SpanCorruption(141)  # inputs of 128 tokens, targets of 29
STEPS, BATCH = 1_000, 32
# Of any other preset: Raffel et al.'s own (section 3.1.2).
LARGE_BATCH = 128
LEARNING_RATE = 0.01
EVALUATE_EVERY = 200
VALIDATION_TEXTS = 256
# Measured on two shared cores with AVX512-BF16: 10,300 tokens/s so, 5,100 with XLA on top; float32
# 6,400 with XLA and 6,100 without.
DTYPE, XLA = "mixed_bfloat16", False
MODEL_NAME = "t5.keras"


@alone
def run(
    data: Path,
    output: Path,
    *,
    seed: int = 0,
    steps: int | None = None,
    resume: bool = True,
    preset: str = PRESET,
    part: Part | None = None,
) -> dict[str, float]:
    """Pre-trains and saves the model.

    Args:
        data: Folder of the corpora.
        output: Folder for checkpoints, the model and the scores.
        seed: Of the initial weights, the spans and the shuffling.
        steps: Optimizer steps; the recipe's own by default.
        resume: Whether an interrupted run in `output` continues.
        preset: A key of `T5_PRESETS` whose vocabulary is T5's.
        part: "prepare" writes what is to be trained on into `output/prepared` and does no more;
            "train" does what is left, and needs neither `data` nor TensorFlow. None: both.

    Returns:
        Loss and accuracy on texts that were not trained on; nothing where nothing is trained.

    Raises:
        ValueError: The preset is unknown or of another vocabulary.
    """
    config = t5_config(preset)
    if config.vocabulary_size != T5_ROWS:
        raise ValueError(f"Expected a preset with T5's vocabulary. Received: {preset!r}")
    wanted = parts_to_run(part, ("prepare", "train"))
    checkpoints = checkpoints_folder(output, resume=resume)
    tokens_path = output / "prepared" / "tokens.npy"
    if "prepare" in wanted:
        from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

        pretraining_tokens(data, SentencePieceVectorizer(), CORRUPTION.length, tokens_path)
    if "train" not in wanted:
        return {}
    tokens = open_tokens(tokens_path, CORRUPTION.length)
    return _train(config, tokens, output, checkpoints, seed, steps or STEPS)


def _train(
    config: T5Config, tokens: np.ndarray, output: Path, checkpoints: Path, seed: int, steps: int
) -> dict[str, float]:
    batch_size = BATCH if config == T5_PRESETS[PRESET] else LARGE_BATCH
    training, validation = _corrupted(tokens, seed)
    keras.utils.set_random_seed(seed)
    model = T5(config, dtype=DTYPE)
    model.build()
    loss = SpanCorruptionLoss()
    evaluate = _evaluation(model, loss, validation)
    backend_trainer(
        model,
        [Task("span_corruption", loss, ArrayData(training), batch_size=batch_size)],
        keras.optimizers.Adafactor(LinearDecay(LEARNING_RATE, steps)),
        folder=checkpoints,
        seed=seed,
        jit_compile=XLA,
        evaluate=evaluate,
        evaluate_every=min(EVALUATE_EVERY, steps),
        checkpoint_every=min(EVALUATE_EVERY, steps),
        monitor="validation_loss",
        mode="min",
        tensorboard=True,
    ).run(steps)
    with atomic_path(output / MODEL_NAME) as temporary:
        model.save(temporary)
    scores = evaluate()
    write_scores(output, scores)
    return scores


def _corrupted(tokens: np.ndarray, seed: int) -> tuple[dict[str, np.ndarray], ...]:
    """Inputs and targets for training, and of texts drawn from all sources for validation."""
    held = max(1, min(VALIDATION_TEXTS, len(tokens) // 10))
    order = np.random.default_rng(0).permutation(len(tokens))  # the same for every seed
    corrupted = CORRUPTION(tokens, seed=seed)
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
        for start in range(0, rows, BATCH):
            batch = {name: ids[start : start + BATCH] for name, ids in texts.items()}
            value, metrics = loss(model, batch)
            sums += len(batch["inputs"]) * np.array([float(value), float(metrics["accuracy"])])
        return dict(zip(("validation_loss", "validation_accuracy"), sums / rows, strict=True))

    return evaluate
