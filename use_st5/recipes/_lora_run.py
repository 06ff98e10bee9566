"""What the multilingual recipes share: training adapters, merging, exporting, scoring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import keras
import numpy as np

from use_st5._files import atomic_path
from use_st5.encoder import SentenceEncoder
from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.registry import select_tasks
from use_st5.evaluation.report import markdown_tables
from use_st5.evaluation.runner import evaluate
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.models.lora import Targets, apply_lora, load_lora
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.array_data import ArrayData
from use_st5.training.linear_decay import LinearDecay
from use_st5.training.task import Task
from use_st5.training.trainer import Trainer

ADAPTERS, LISTING = "adapters.safetensors", "adapters.txt"
TASKS = "tatoeba,bucc,multilingual_sts"
_ROLES = ("anchor", "positive", "negative")
_CHUNK = 4096

# Gives the base in a dtype: the same weights at every call.
Base = Callable[[str], SentenceT5]


@dataclass(frozen=True, kw_only=True)
class LoRASettings:
    """How adapters are trained.

    Attributes:
        learning_rate: Of AdamW at the start; it falls in a line to 0.
        targets: As for `apply_lora`.
        rank: As for `apply_lora`.
        alpha: As for `apply_lora`.
        batch_size: Triplets of a step.
        temperature: Of the contrastive loss.
        max_tokens: Ids of a sentence in training; the encoder itself has no limit.
        dtype: Of the base in training; it is merged and exported in float32.
        pieces: In how many parts a batch is encoded, one after the other (`gradient_cache`).
    """

    learning_rate: float
    targets: Targets = "query_value"
    rank: int = 8
    alpha: float = 32.0
    batch_size: int = 128
    temperature: float = 0.05
    max_tokens: int = 64
    dtype: str = "float32"
    pieces: int = 1


def train_adapters(
    base: Base,
    vectorizer: SentencePieceVectorizer,
    examples: Iterable[Mapping[str, str]],
    output: Path,
    settings: LoRASettings,
    *,
    seed: int,
    steps: int | None,
) -> None:
    """Trains adapters for an epoch, or so many steps, and writes `adapters.safetensors`.

    `adapters.txt` lists the layers that have one.

    Args:
        base: Gives the model.
        vectorizer: Turns sentences into ids.
        examples: Triplets, "anchor", "positive" and "negative".
        output: Folder for the adapters and `checkpoints/`.
        settings: How to train.
        seed: Of the adapters' first values and of the shuffling.
        steps: Optimizer steps; an epoch's by default.
    """
    arrays = triplet_arrays(examples, vectorizer, settings.max_tokens)
    model = base(settings.dtype)
    keras.utils.set_random_seed(seed)
    adapters = apply_lora(
        model, targets=settings.targets, rank=settings.rank, alpha=settings.alpha, seed=seed
    )
    with atomic_path(output / LISTING) as listing:
        listing.write_text(f"{adapters}\n", encoding="utf-8")
    steps = steps or max(1, len(arrays["anchor"]) // settings.batch_size)
    schedule = LinearDecay(settings.learning_rate, steps, constant_share=0.0)
    loss = ContrastiveLoss(temperature=settings.temperature, hard_negatives=True)
    trainer = Trainer(
        model,
        [Task("triplets", loss, ArrayData(arrays), batch_size=settings.batch_size)],
        keras.optimizers.AdamW(schedule, weight_decay=0.0),
        folder=output / "checkpoints",
        seed=seed,
        steps_per_call=1,
        gradient_cache=settings.pieces,
        checkpoint_every=max(1, steps // 4),
        keep_checkpoints=1,
        tensorboard=True,
    )
    trainer.run(steps)
    adapters.save(output / ADAPTERS)


def triplet_arrays(
    examples: Iterable[Mapping[str, str]], vectorizer: SentencePieceVectorizer, max_tokens: int
) -> dict[str, np.ndarray]:
    """Ids of "anchor", "positive" and "negative", int32 `[examples, length]`, 0 = padding."""
    parts: dict[str, list[np.ndarray]] = {role: [] for role in _ROLES}
    stream = iter(examples)
    while chunk := [*islice(stream, _CHUNK)]:
        for role in _ROLES:
            texts = [each[role] for each in chunk]
            parts[role].append(vectorizer.padded(texts, max_tokens).numpy())
    return {role: _joined(arrays) for role, arrays in parts.items()}


def export_and_score(
    base: Base,
    vectorizer: SentencePieceVectorizer,
    data: Path,
    output: Path,
    *,
    name: str,
    facts: dict[str, Any],
    command: str,
) -> dict[str, float]:
    """Merges the adapters into the base, in float32, writes the SavedModel and evaluates it.

    Written are `model/`, `record.json` (what `use-st5 report` reads) and `table.md`. Sets that are
    not in the data folder are left out.

    Args:
        base: Gives the model.
        vectorizer: Turns sentences into ids.
        data: Folder with the evaluation sets.
        output: Folder with the adapters.
        name: The model's.
        facts: For `use_st5.json`.
        command: For the record.

    Returns:
        Main score of each evaluation set.
    """
    model = base("float32")
    load_lora(model, output / ADAPTERS).merge()
    TrainableEncoder(model, vectorizer, name=name, metadata=facts).export(output / "model")
    there = DataFolder(data)
    tasks = [task for task in select_tasks(TASKS) if all(map(there.has, task.sources))]
    record = evaluate(SentenceEncoder(output / "model"), tasks, data, command=command)
    record.write(output / "record.json")
    with atomic_path(output / "table.md") as temporary:
        temporary.write_text(markdown_tables([record]), encoding="utf-8")
    return {task: result["scores"][result["main"]] for task, result in record.tasks.items()}


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    """Rows of several widths in one array, padded to the widest."""
    joined = np.zeros((sum(map(len, arrays)), max(each.shape[1] for each in arrays)), np.int32)
    start = 0
    for each in arrays:
        joined[start : start + len(each), : each.shape[1]] = each
        start += len(each)
    return joined
