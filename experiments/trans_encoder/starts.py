"""The first weights of Trans-Encoder's models: given encoders, or SimCSE and Mirror-BERT."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Literal

import keras
import numpy as np

from experiments.run import Run
from use_st5.io import atomic_path
from use_st5.losses import SimCSELoss
from use_st5.models import CrossEncoderModel, SentenceBert
from use_st5.training import (
    ArrayData,
    LinearWarmup,
    PairIds,
    Student,
    Trainer,
    TrainingArguments,
    adamw,
)

if TYPE_CHECKING:  # It needs TensorFlow, and training under JAX does not.
    from use_st5 import TrainableEncoder

Kind = Literal["bi", "cross"]
Pairs = Sequence[tuple[str, str]]
# Tokens of a text and of a pair, as in the paper's code.
BI_LENGTH, CROSS_LENGTH = 32, 64
Base = Literal["pretrained", "second"]
# Base → the name of the plain language model behind it, of which its cross-encoder is made.
_LANGUAGE_MODELS: Mapping[Base, str] = {
    "pretrained": "language_model",
    "second": "second_language_model",
}
_BI, _CROSS, _POOLER, _WEIGHTS = "bi.keras", "cross.keras", "pooler.npz", "model.weights.h5"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unsupervised:
    """A training without labels before the cycles: SimCSE's, or Mirror-BERT's.

    Attributes:
        steps: Optimizer steps over the sentences of the pairs.
        learning_rate: The rate of AdamW, without a warm-up.
        decay: Whether the rate falls linearly to 0.
        weight_decay: As in `adamw`.
        max_grad_norm: The norm that gradients are clipped to; None: no clipping.
        batch_size: Sentences of a step.
        temperature: As in `SimCSELoss`.
        all_views: As in `SimCSELoss`; used by Mirror-BERT.
        masked_span: As in `SimCSELoss`; Mirror-BERT uses more than 0.
    """

    steps: int
    learning_rate: float = 3e-5
    decay: bool = True
    weight_decay: float = 0.0
    max_grad_norm: float | None = 1.0
    batch_size: int = 64
    temperature: float = 0.05
    all_views: bool = False
    masked_span: int = 0

    def arguments(self, seed: int, steps_per_execution: int) -> TrainingArguments:
        """The settings of the training."""
        return TrainingArguments(
            optimizer=lambda steps: self.optimizer(),
            batch_size=self.batch_size,
            steps=self.steps,
            steps_per_execution=steps_per_execution,
            evaluation_steps=100,
            jit_compile=False,
            seed=seed,
        )

    def optimizer(self) -> keras.optimizers.Optimizer:
        """AdamW with its schedule."""
        rate = LinearWarmup(self.learning_rate, self.steps, warmup_share=0.0, decay=self.decay)
        return adamw(rate, weight_decay=self.weight_decay, global_clipnorm=self.max_grad_norm)

    def loss(self, mask_id: int | None, seed: int) -> SimCSELoss:
        """The loss, with the id that stands for masked tokens."""
        return SimCSELoss(
            temperature=self.temperature,
            all_views=self.all_views,
            masked_span=self.masked_span,
            mask_id=mask_id,
            seed=seed,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start:
    """The start of one student: its bi-encoder and its cross-encoder.

    Attributes:
        name: Short name in files and tables.
        base: The pre-trained BERT among those of the run: "pretrained" or "second".
        bi: A bundled model or a folder; None: that BERT.
        cross: Whether the student has a cross-encoder, made of that BERT; if not, its bi-encoder
            learns from those of others.
        pooling: The pooling if a checkpoint does not name one; None: the family's usual one.
        unsupervised: The training of the bi-encoder before the cycles, if any.
        bi_learning_rate_factor: As in `Student`.
    """

    name: str
    base: Base = "pretrained"
    bi: str | None = None
    cross: bool = True
    pooling: str | None = None
    unsupervised: Unsupervised | None = None
    bi_learning_rate_factor: float = 1.0


@dataclasses.dataclass(frozen=True)
class Opened:
    """A start with its weights and tokenizers.

    Attributes:
        start: The settings of the start.
        bi: The bi-encoder.
        cross: The encoder below a cross-encoder's head, with the tokenizer of pairs; None if the
            student has no cross-encoder.
    """

    start: Start
    bi: TrainableEncoder
    cross: TrainableEncoder | None

    @classmethod
    def of(cls, start: Start, folders: Mapping[str, Path | None]) -> Opened:
        """Loads the encoders that a start names.

        Args:
            start: The settings of the start.
            folders: Base → the folder of a BERT or RoBERTa; None: MiniLM's. "language_model" and
                "second_language_model" → the folder of the plain language model of which the
                base's cross-encoder is made; None: the base.
        """
        from experiments.minilm import minilm_folder
        from use_st5 import TrainableEncoder
        from use_st5.convert import open_checkpoint

        bi = None if start.bi is None else TrainableEncoder.load(start.bi)
        if bi is not None and not start.cross:
            return cls(start, bi, None)
        folder = minilm_folder(folders[start.base])
        checkpoint = open_checkpoint(folder)
        pooling = start.pooling if checkpoint.modules is None else None
        base = TrainableEncoder.of_checkpoint(checkpoint, pooling=pooling)
        if not start.cross:
            return cls(start, base, None)
        plain = folders.get(_LANGUAGE_MODELS[start.base])
        return cls(start, bi or base, _below(plain or folder, None if plain else base))

    def begin(self, checkpoints: Path) -> None:
        """Loads the weights with which the bi-encoder began the cycles."""
        if self.start.unsupervised is not None:
            self.bi.model.load_weights(_begun(checkpoints, self.start) / _WEIGHTS)

    def trained(self, kind: Kind, weights: Path | None) -> TrainableEncoder:
        """The encoder of a kind with other weights; None: its present weights."""
        from use_st5 import TrainableEncoder

        encoder = self.bi
        if kind == "cross":
            assert self.cross is not None
            model = CrossEncoderModel(self.cross.model)
            encoder = TrainableEncoder(model, self.cross.tokenizer, metadata=dict(self.bi.metadata))
        if weights is not None:
            encoder.model.load_weights(weights)
        return encoder


def _below(folder: Path, opened: TrainableEncoder | None) -> TrainableEncoder:
    """The encoder below a cross-encoder's head: `opened`, or else the BERT of the folder."""
    from use_st5 import TrainableEncoder
    from use_st5.convert import open_checkpoint

    base = opened or TrainableEncoder.of_checkpoint(open_checkpoint(folder))
    if not isinstance(base.model, SentenceBert):
        raise ValueError(
            f"{folder}: expected a BERT or RoBERTa, of which a cross-encoder can be made, "
            f"found a {type(base.model).__name__}."
        )
    return TrainableEncoder(base.model.pooled("cls"), base.tokenizer)


def write_start(folder: Path, opened: Opened, pairs: Pairs, validation: Pairs) -> None:
    """Writes models and ids, so that training needs neither text nor TensorFlow."""
    folder.mkdir()
    opened.bi.model.save(folder / _BI)
    if opened.cross is not None:
        opened.cross.model.save(folder / _CROSS)
    pooler = None if opened.cross is None else opened.cross.model.pooler
    if pooler is not None:
        np.savez(folder / _POOLER, kernel=pooler.kernel, bias=pooler.bias)
    for name, texts in (("pairs", pairs), ("validation", validation)):
        first, second = (list(each) for each in zip(*texts, strict=True))
        ids = PairIds.of_texts(
            opened.bi.tokenizer,
            first,
            second,
            max_tokens=BI_LENGTH,
            max_pair_tokens=CROSS_LENGTH,
            pair_tokenizer=None if opened.cross is None else opened.cross.tokenizer,
        )
        fields = (each.name for each in dataclasses.fields(ids))
        np.savez(folder / f"{name}.npz", **{each: getattr(ids, each) for each in fields})
    mask = getattr(opened.bi.tokenizer, "mask", None)
    np.save(folder / "mask_id.npy", -1 if mask is None else mask)


def student_of(run: Run, start: Start, seed: int, steps_per_execution: int) -> Student:
    """The student of the files of `write_start`, first trained without labels if the start says so.

    Args:
        run: The run, with its folders and its strategy.
        start: The start of the student.
        seed: Seed of the training without labels.
        steps_per_execution: Steps in one call from the host in that training.
    """
    prepared_folder, checkpoints = run.prepared / start.name, run.checkpoints
    pairs, validation = (
        PairIds(**np.load(prepared_folder / f"{name}.npz")) for name in ("pairs", "validation")
    )
    weights = None
    if start.unsupervised is not None:
        weights = _begun(checkpoints, start) / _WEIGHTS
        if not weights.exists():
            _train_unsupervised(run, start, pairs, seed, steps_per_execution)
    return Student(
        name=start.name,
        bi=functools.partial(_bi, prepared_folder, weights),
        cross=functools.partial(_cross, prepared_folder) if start.cross else None,
        pairs=pairs,
        validation=validation,
        bi_learning_rate_factor=start.bi_learning_rate_factor,
    )


def _begun(checkpoints: Path, start: Start) -> Path:
    return checkpoints / "starts" / start.name


def _bi(prepared: Path, weights: Path | None) -> keras.Model:
    model = keras.saving.load_model(prepared / _BI, compile=False)
    if weights is not None:
        model.load_weights(weights)
    return model


def _cross(prepared: Path) -> CrossEncoderModel:
    encoder = keras.saving.load_model(prepared / _CROSS, compile=False)
    if (prepared / _POOLER).exists():
        encoder.pooler = SimpleNamespace(**np.load(prepared / _POOLER))
    model = CrossEncoderModel(encoder)
    model.build()
    return model


def _train_unsupervised(
    run: Run, start: Start, pairs: PairIds, seed: int, steps_per_execution: int
) -> None:
    settings, prepared_folder = start.unsupervised, run.prepared / start.name
    assert settings is not None
    keras.utils.set_random_seed(seed)
    with run.scope():
        model = _bi(prepared_folder, None)
    mask = int(np.load(prepared_folder / "mask_id.npy"))
    loss = settings.loss(None if mask < 0 else mask, seed)
    sentences = np.unique(np.concatenate([pairs.first, pairs.second]), axis=0)
    home = _begun(run.checkpoints, start)
    Trainer(
        model,
        {"simcse": (ArrayData({"sentence": sentences}), loss)},
        settings.arguments(seed, steps_per_execution),
        folder=home.with_name(f"{home.name}_checkpoints"),
        strategy=run.strategy,
    ).train()
    with atomic_path(home) as temporary:
        temporary.mkdir()
        model.save_weights(temporary / _WEIGHTS)
