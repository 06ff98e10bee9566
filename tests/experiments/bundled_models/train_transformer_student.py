"""Trains a small Transformer under PyTorch: `test_transformer_student` runs this as a process."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import torch

from experiments.bundled_models.dan_student import Batch, Settings
from experiments.bundled_models.transformer_student import TransformerStudent
from use_st5.models import SentenceT5, USETransformer

SETTINGS = Settings(steps=60, short=(), table_rate=0.003, dense_rate=0.002)
RNG = np.random.default_rng(0)
TEXTS = [RNG.integers(3, 50, length).astype(np.int32) for length in RNG.integers(1, 30, 12)]
TEACHER = RNG.normal(size=(12, 4)).astype(np.float32)
TEACHER /= np.linalg.norm(TEACHER, axis=1, keepdims=True)


def model(name: str) -> keras.Model:
    keras.utils.set_random_seed(0)
    made: keras.Model
    if name == "sentence_t5":
        made = SentenceT5.from_preset(
            "t5_mini_en", vocabulary_size=50, num_layers=2, dtype="mixed_bfloat16"
        )
    else:
        made = USETransformer.from_preset(
            "use_transformer_en",
            num_embeddings=50,
            num_layers=2,
            early_output=1,
            dtype="mixed_bfloat16",
        )
    made.build()
    return made


def student(name: str) -> TransformerStudent:
    return TransformerStudent(model(name), teacher_widths=(4,), settings=SETTINGS)


def batches() -> Iterator[Batch]:
    rng = np.random.default_rng(0)
    while True:
        texts = rng.choice(12, 8, replace=False)
        read = np.append(texts, [0, 1])
        yield Batch(read, [(texts, TEACHER[texts])], np.full(1, 0.5, np.float32))


def main(name: str, folder: Path) -> None:
    ours = student(name)
    together = ours.vectors(TEXTS).detach()
    alone = torch.cat([ours.vectors([text]).detach() for text in TEXTS])
    losses = [
        ours.step(number, [TEXTS[text] for text in batch.texts], batch)
        for number, batch in enumerate(itertools.islice(batches(), SETTINGS.steps), start=1)
    ]
    whole, stopped = folder / "whole", folder / "stopped"
    student(name).train(batches(), TEXTS.__getitem__, whole)
    first = student(name)
    for number, batch in enumerate(itertools.islice(batches(), 20), start=1):
        first.step(number, [TEXTS[text] for text in batch.texts], batch)
    stopped.mkdir()
    first.save(stopped / "state.pt", 20)
    student(name).train(batches(), TEXTS.__getitem__, stopped)

    def last(run: Path) -> list[float]:
        with np.load(run / "weights.npz") as weights:
            return [float(np.abs(weights[each]).sum()) for each in weights.files]

    found = {
        "difference": float((together - alone).abs().max()),
        "losses": losses,
        "without": last(whole),
        "after_a_stop": last(stopped),
    }
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
