"""The settings of a training on one's own data: defaults, and those of the papers by name."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args, get_type_hints

import keras

from use_st5.models.family import Family
from use_st5.training.argument_checks import checked_settings
from use_st5.training.frozen_parts import ModelPart
from use_st5.training.linear_decay import LinearDecay
from use_st5.training.linear_warmup import LinearWarmup
from use_st5.training.tasks import TaskSpec

Optimizer = Literal["adam", "adafactor"]
Head = Literal["fitted", "drawn"]
Schedule = Literal["linear", "constant"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How to train.

    Attributes:
        epochs: Passes over the examples.
        steps: Optimizer steps, instead of epochs.
        batch_size: Examples of a step.
        micro_batch: Examples that are encoded at once: the memory of a small batch, the loss of
            the large one (GradCache).
        learning_rate: The peak; None: as measured for the family and the task.
        optimizer: "adam", or "adafactor" with Sentence-T5's schedule and nothing clipped.
        warmup_ratio: Share of the steps in which the learning rate of Adam rises to its peak.
        schedule: What follows of Adam's: "linear" falls in a line to 0, "constant" stays.
        max_grad_norm: The norm that Adam's gradients are clipped to; 0: they are not.
        loss: Arguments of the tasks' losses by name.
        matryoshka: Lengths of vectors that shall be good by themselves.
        lora_rank: Rank of adapters that learn instead of the weights; None: none.
        freeze: What of the model stays as it is; None: nothing, but for a fresh USE-DAN.
        head: How the layers that name classes begin: "fitted" to the vectors of the start, or as
            they are "drawn", which makes the encoder forget more (docs/own_data_results.md).
        dropout: Of the encoder in training; None: the model's own, but for single texts, which
            need some, 0.1.
        words: Of a fresh model's vocabulary, at most: the most frequent ones of the files.
        bigrams: Of a fresh USE-DAN's vocabulary, at most; none is better on files of a usual size
            (docs/own_data_results.md has the measurement).
        max_tokens: Tokens of a text that training reads; None: what the encoder reads, or 128.
        score_range: The lowest and the highest score that there can be in the files of scored
            pairs, which become 0 and 1; None: the narrowest usual range that holds a file's scores.
        cycles: Of pairs without a score: how often the encoder and its cross-encoder teach each
            other; `epochs`, `steps`, `batch_size` and `learning_rate` are of one such lesson.
        evaluations: Measurements on the way.
        patience: Measurements in a row without a better one that end the training; None: none do.
        keep: Weight of the start model's own similarities, beside 1 for each file.
        teacher: An encoder whose vectors of the training texts are learnt as well; of texts
            without anything else, they alone. A bundled name, a folder or a checkpoint.
        storage: Of the export, "float32" or "int8"; None: that of the start.
        seed: Of everything random.
    """

    epochs: float = 3.0
    steps: int | None = None
    batch_size: int = 64
    micro_batch: int | None = None
    learning_rate: float | None = None
    optimizer: Optimizer = "adam"
    warmup_ratio: float = 0.1
    schedule: Schedule = "linear"
    max_grad_norm: float = 1.0
    loss: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    matryoshka: tuple[int, ...] = ()
    lora_rank: int | None = None
    freeze: tuple[ModelPart, ...] | None = None
    head: Head = "fitted"
    dropout: float | None = None
    words: int = 40_000
    bigrams: int = 0
    max_tokens: int | None = None
    score_range: tuple[float, float] | None = None
    cycles: int = 2
    evaluations: int = 10
    patience: int | None = None
    keep: float = 0.0
    teacher: str | None = None
    storage: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        positive = {
            name: getattr(self, name)
            for name in ("epochs", "steps", "batch_size", "micro_batch", "learning_rate")
        }
        positive |= {
            name: getattr(self, name)
            for name in ("words", "max_tokens", "cycles", "evaluations", "patience")
        }
        for name, value in positive.items():
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name}: expected a number above 0, received {value}.")
        for name, kind in {"optimizer": Optimizer, "head": Head, "schedule": Schedule}.items():
            if (word := getattr(self, name)) not in (words := get_args(kind)):
                raise ValueError(f"{name}: expected {' or '.join(words)}, received {word!r}.")
        for name in ("keep", "bigrams", "max_grad_norm"):
            if not 0 <= (number := getattr(self, name)) < float("inf"):
                raise ValueError(f"{name}: expected a number of 0 or more, received {number}.")
        if not 0 <= self.warmup_ratio < 1:
            raise ValueError(
                "warmup_ratio: expected a share of the steps, from 0 to less than 1, received "
                f"{self.warmup_ratio}."
            )
        _check_score_range(self.score_range)
        if self.micro_batch and self.batch_size % self.micro_batch:
            raise ValueError(
                f"micro_batch: expected a number that divides the batch size, {self.batch_size}, "
                f"received {self.micro_batch}."
            )

    def make_optimizer(self) -> Callable[[int], keras.optimizers.Optimizer]:
        """Number of steps → the optimizer with its schedule.

        Raises:
            ValueError: The learning rate is not said.
        """
        if (rate := self.learning_rate) is None:
            raise ValueError("learning_rate: expected a number, received None.")
        if self.optimizer == "adafactor":
            return lambda steps: keras.optimizers.Adafactor(
                LinearDecay(rate, steps), beta_2_decay=-0.8
            )
        return lambda steps: keras.optimizers.Adam(
            LinearWarmup(
                rate,
                steps,
                warmup_share=self.warmup_ratio,
                decay=self.schedule == "linear",
            ),
            epsilon=1e-8,
            global_clipnorm=self.max_grad_norm or None,
        )


# The papers' own, as far as they are settings of a training; what their corpora and their numbers
# of steps were, the recipes know (`experiments/`).
NAMED_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    # Ni et al. 2021, section 4.3: stage two, on triplets.
    "sentence_t5": {
        "batch_size": 512,
        "learning_rate": 1e-3,
        "optimizer": "adafactor",
        "loss": {"temperature": 0.01, "bidirectional": True},
    },
    # Reimers and Gurevych 2019, section 3.1; the rate falls to 0 by their code (`WarmupLinear`).
    "sbert": {
        "epochs": 1.0,
        "batch_size": 16,
        "learning_rate": 2e-5,
        "head": "drawn",
        "loss": {"parts": ("u", "v", "difference"), "hidden_dims": ()},
    },
    # Gao et al. 2021, table A.1: unsupervised, BERT-base. Its code trains by the defaults of
    # transformers: no warm-up, a linear decay, gradients clipped to the norm 1.
    "simcse": {
        "epochs": 1.0,
        "batch_size": 64,
        "learning_rate": 3e-5,
        "warmup_ratio": 0.0,
        "dropout": 0.1,
        "loss": {"temperature": 0.05},
    },
    # Tsukagoshi et al. 2021, section 4.2: BERT-base, mean pooling; Tsukagoshi et al. 2022,
    # appendix A: the warm-up. Its code goes on with the peak, clips nothing, and freezes all of
    # `bert.embeddings` and the head.
    "defsent": {
        "epochs": 1.0,
        "batch_size": 16,
        "learning_rate": 2**3.5 * 1e-6,
        "schedule": "constant",
        "max_grad_norm": 0.0,
        "freeze": ("all_embeddings", "head"),
    },
    # Liu et al. 2022, Table 16, whose learning rates are those of the lessons.
    "trans_encoder": {"epochs": 10.0, "batch_size": 128, "cycles": 3},
    # Cer et al. 2018, "Encoders": its three tasks, with the response's own network.
    "use": {"learning_rate": 1e-3, "head": "drawn", "loss": {"hidden_dims": (512, 512)}},
}


def _check_score_range(ends: tuple[float, ...] | None) -> None:
    if ends is not None and not (len(ends) == 2 and -math.inf < ends[0] < ends[1] < math.inf):
        raise ValueError(
            "score_range: expected the lowest and the highest score, such as (0, 5), received "
            f"{ends}."
        )


def make_settings(name: str | None = None, **changes: Any) -> Settings:
    """Settings by name, and what differs from them.

    Args:
        name: A key of `NAMED_SETTINGS`; None: the defaults.
        **changes: Attributes of `Settings`; arguments of the loss are added to the named ones.

    Raises:
        TypeError: A value is of another type.
        ValueError: There are no such settings, or a value is out of its range.
    """
    if name is not None and name not in NAMED_SETTINGS:
        known = ", ".join(NAMED_SETTINGS)
        raise ValueError(f"settings: expected one of {known}, received {name!r}.")
    named = dict(NAMED_SETTINGS[name]) if name else {}
    changes = checked_settings(changes, get_type_hints(Settings))
    loss = {**named.pop("loss", {}), **changes.pop("loss", {})}
    return Settings(**{**named, **changes, "loss": loss})


def completed(
    settings: Settings,
    family: Family | None,
    tasks: Sequence[TaskSpec],
    *,
    fresh: bool,
    taught: bool,
) -> Settings:
    """The settings with the usual learning rate and frozen parts where the user states none.

    Args:
        settings: What the user states.
        family: Of the encoder, if it is known.
        tasks: What it learns: of several tasks the smallest of their learning rates is taken, since
            a rate that one of them does not bear makes the encoder forget.
        fresh: Whether the encoder starts with initial weights.
        taught: Whether it learns a teacher's vectors, which needs all of its parts.
    """
    given = {
        "lora": settings.lora_rank is not None,
        "fresh": fresh,
        "random_head": settings.head == "drawn",
    }
    usual = min(task.usual_learning_rate(family, **given) for task in tasks)
    freeze: tuple[ModelPart, ...] | None = None
    if family is not None and fresh and not taught:
        freeze = family.frozen_when_fresh or None
    return dataclasses.replace(
        settings,
        learning_rate=settings.learning_rate or usual,
        freeze=freeze if settings.freeze is None else settings.freeze,
    )
