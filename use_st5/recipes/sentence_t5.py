"""Sentence-T5 in its two stages, answered questions and then inference triplets.

    use-st5 train pretrain_t5 --data DATA --out runs/pretrain_t5
    use-st5 train sentence_t5 --data DATA --out runs/sentence_t5

The recipe of Ni et al. 2021 (section 4.3) on the T5 that `pretrain_t5` left beside the output
folder: Adafactor with decay rate 0.8 and a rate that falls in a line to 0 after a tenth of the
steps, temperature 0.01, each batch from one data set. DATA holds the corpora of
`_permissive_corpora.py` and, for the scores, the STS Benchmark (its development split alone).
Written are `checkpoints/`, `encoder.keras` and `training.json` (how it was trained), `model/` (the
SavedModel) and `scores.json`.

Measured on two shared cores of an EPYC (Zen 4), three seeds: 3 minutes of CPU time (5 of wall
time), Spearman's correlation on STS-B's development split 57.79 ± 0.55, no more than triplets alone
give; `sentence_t5_ablation` has the table and says what is missing. `run(…, settings=PUBLISHED)`
has the paper's batches and rate; a larger T5 is any folder with a `t5.keras`. The stages run under
JAX too, where there is no TensorFlow, between what a machine with TensorFlow does:

    use-st5 train sentence_t5 --part prepare --data DATA --out runs/sentence_t5
    KERAS_BACKEND=jax use-st5 train sentence_t5 --part train --out runs/sentence_t5
    use-st5 train sentence_t5 --part export --data DATA --out runs/sentence_t5
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from use_st5._files import atomic_path
from use_st5._records import read_record
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.models.t5.sentence_t5 import PROJECTION_DIM, Pooling, SentenceT5
from use_st5.recipes._parts import Part, parts_to_run
from use_st5.recipes._run_folder import alone, checkpoints_folder, write_scores
from use_st5.recipes._sentence_t5_data import Arrays, open_stage, prepare_stage
from use_st5.recipes._student import in_float32
from use_st5.recipes.pretrain_t5 import DTYPE, MODEL_NAME, XLA
from use_st5.training.array_data import ArrayData
from use_st5.training.backend_trainer import backend_trainer
from use_st5.training.linear_decay import LinearDecay
from use_st5.training.task import Task

# Stage: (steps, batch size, pieces that it is encoded in, learning rate).
Settings = Mapping[str, tuple[int, int, int, float]]
# The paper's batches and rate. It does not tell its numbers of steps: here one pass over its 2
# billion pairs, and three over its 275,601 triplets.
PUBLISHED: Settings = {"qa": (976_560, 2048, 16, 1e-3), "nli": (1_610, 512, 4, 1e-3)}
# Those of minutes on two cores. With so few steps the paper's rate hardly moves the weights: after
# 50 steps of 64 triplets, on a T5 of 400 steps, Spearman's correlation was 40.9 with 0.01, 50.4
# with 0.03 and 39.0 with 0.1; on one of 200 steps, 32.4 with 0.001 and 36.4 with 0.01.
TWO_CORES: Settings = {"qa": (100, 128, 1, 3e-2), "nli": (150, 64, 1, 3e-2)}
NAME = "sentence_t5_mini_en"
ENCODER_NAME = "encoder.keras"
TRAINING_NAME = "training.json"
TEMPERATURE = 0.01
CHECKPOINT_EVERY = 500


@alone
def run(
    data: Path,
    output: Path,
    *,
    seed: int = 0,
    steps: int | None = None,
    resume: bool = True,
    stages: Sequence[str] = ("qa", "nli"),
    pooling: Pooling = "mean",
    settings: Settings = TWO_CORES,
    pretrained: Path | None = None,
    part: Part | None = None,
) -> dict[str, float]:
    """Trains through the stages, exports and scores on the development split.

    Args:
        data: Folder of the corpora.
        output: Folder for checkpoints, the SavedModel and the scores.
        seed: Of the projection's initial weights, the draw of data sets and the shuffling.
        steps: Optimizer steps of each stage; those of the settings by default.
        resume: Whether an interrupted run in `output` continues.
        stages: Which to train through, in order; with none the T5's own outputs are the vectors,
            without a projection (the paper's section 6.1).
        pooling: As in `SentenceT5`.
        settings: Of each stage.
        pretrained: Folder that `pretrain_t5` wrote; `pretrain_t5` beside `output` by default.
        part: "prepare" writes the stages' ids into `output/prepared`; "train" makes the encoder out
            of them and needs neither `data` nor TensorFlow; "export" does what is left, whatever
            the settings given to it: those of the training count. None: all.

    Returns:
        Development scores by name; nothing where nothing is exported.
    """
    wanted = parts_to_run(part, ("prepare", "train", "export"))
    checkpoints = checkpoints_folder(output, resume=resume)
    if unknown := set(stages) - set(settings):
        raise ValueError(f"Expected stages among {list(settings)}. Received: {sorted(unknown)}")
    pretrained = pretrained or output.parent / "pretrain_t5"
    if "train" in wanted:
        _check_pretrained(pretrained)
    if "prepare" in wanted:
        _prepare(data, output, stages)
    if "train" in wanted:
        keras.utils.set_random_seed(seed)
        dimension = PROJECTION_DIM if stages else None
        model = sentence_encoder(pretrained, pooling, dimension)
        for stage in stages:
            of_stage, *how = settings[stage]
            arrays = open_stage(output / "prepared", stage)
            _train(model, arrays, checkpoints / stage, steps or of_stage, *how, seed=seed)
        with atomic_path(output / ENCODER_NAME) as temporary:
            model.save(temporary)
        training = {"seed": seed, "stages": [*stages], "pooling": pooling}
        with atomic_path(output / TRAINING_NAME) as temporary:
            temporary.write_text(json.dumps(training) + "\n", encoding="utf-8")
    if "export" not in wanted:
        return {}
    return _export(data, output)


def _prepare(data: Path, output: Path, stages: Sequence[str]) -> None:
    from use_st5.recipes._stsb_dev import read_stsb_dev
    from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

    read_stsb_dev(data)  # The export needs it: what is missing is better said now.
    vectorizer = SentencePieceVectorizer()
    for stage in stages:
        prepare_stage(data, stage, vectorizer, output / "prepared")


def _train(
    model: SentenceT5,
    data_sets: Mapping[str, Arrays],
    checkpoints: Path,
    steps: int,
    batch_size: int,
    pieces: int,
    learning_rate: float,
    *,
    seed: int,
) -> None:
    backend_trainer(
        model,
        _tasks(data_sets, batch_size),
        keras.optimizers.Adafactor(LinearDecay(learning_rate, steps), beta_2_decay=-0.8),
        folder=checkpoints,
        seed=seed,
        gradient_cache=pieces,
        jit_compile=XLA,
        checkpoint_every=CHECKPOINT_EVERY,
        tensorboard=True,
    ).run(steps)


def _export(data: Path, output: Path) -> dict[str, float]:
    training = _read_training(output / TRAINING_NAME)
    # Imported here: TensorFlow's part, and the stages train without it.
    from use_st5.recipes._stsb_dev import padded_encoder, read_stsb_dev, stsb_dev_scores
    from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer
    from use_st5.trainable_encoder import TrainableEncoder

    development, vectorizer = read_stsb_dev(data), SentencePieceVectorizer()
    model = in_float32(keras.saving.load_model(output / ENCODER_NAME, compile=False))
    facts = {"languages": ["en"], "license": "Apache-2.0", **training}
    TrainableEncoder(model, vectorizer, name=NAME, metadata=facts).export(output / "model")
    scores = stsb_dev_scores(padded_encoder(model, vectorizer), development)
    write_scores(output, scores)
    return scores


def _read_training(path: Path) -> dict[str, Any]:
    """The seed, stages and pooling of the encoder beside it."""
    if not path.exists():
        raise FileNotFoundError(
            f"Expected {path}, which the training writes beside {ENCODER_NAME} when it is done. "
            f"Run: use-st5 train sentence_t5 --part train --out {path.parent}"
        )
    return read_record(path, dict[str, Any], remedy="Train the encoder again.")


def sentence_encoder(folder: Path, pooling: Pooling, projection_dim: int | None) -> SentenceT5:
    """A Sentence-T5 with the weights of a pre-trained T5; a projection is new.

    Args:
        folder: What `pretrain_t5` wrote.
        pooling: As in `SentenceT5`.
        projection_dim: As in `SentenceT5`.

    Raises:
        FileNotFoundError: There is no model in the folder.
    """
    _check_pretrained(folder)
    t5 = keras.saving.load_model(folder / MODEL_NAME, compile=False)
    model = SentenceT5(t5.config, pooling=pooling, projection_dim=projection_dim, dtype=DTYPE)
    model.build()
    for name in ("embedding", "encoder", "decoder"):
        if (part := getattr(model, name)) is not None:
            part.set_weights(getattr(t5, name).get_weights())
    return model


def _check_pretrained(folder: Path) -> None:
    path = folder / MODEL_NAME
    if not path.exists():
        raise FileNotFoundError(
            f"Expected a pre-trained T5, {path}. Make one: use-st5 train pretrain_t5 --data DATA "
            f"--out {folder}"
        )


def _tasks(data_sets: Mapping[str, Arrays], batch_size: int) -> list[Task]:
    """One task for each data set, drawn by its size: a batch is of one data set."""
    losses = {
        negatives: ContrastiveLoss(
            temperature=TEMPERATURE, bidirectional=True, hard_negatives=negatives
        )
        for negatives in (False, True)
    }
    return [
        Task(
            name,
            losses["negative" in arrays],
            ArrayData(arrays),
            rate=len(arrays["anchor"]),
            batch_size=min(batch_size, len(arrays["anchor"])),
        )
        for name, arrays in data_sets.items()
    ]
