"""Pairs without a score: the encoder and a cross-encoder teach each other, as Trans-Encoder."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.family import family_of
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.device import Device
from use_st5.training.held_out import training_rows
from use_st5.training.history import History
from use_st5.training.model_loading import copy_of
from use_st5.training.pair_scores import PairIds
from use_st5.training.recipe import Scores, StrategyName
from use_st5.training.recipe_run import HISTORY, write_json
from use_st5.training.settings import Settings
from use_st5.training.sources import Row
from use_st5.training.survey import Survey
from use_st5.training.tasks import SCORED_PAIRS
from use_st5.training.teaching import teach
from use_st5.training.trans_encoder import BI_LENGTH, Learner, Taught, TransEncoder, best
from use_st5.training.validation import DevelopmentSet, test_scores

_NAME, _CROSS_ENCODER = "encoder", "cross_encoder"
# Settings that a course of Trans-Encoder has no place for.
_STRANGE = (
    *("micro_batch", "lora_rank", "freeze", "head", "matryoshka", "keep", "patience", "optimizer"),
    *("warmup_ratio", "schedule", "max_grad_norm", "loss"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairCycles:
    """A training by pairs without a score, run like a recipe.

    Attributes:
        encoder: What learns; its weights are those that every cycle begins with.
        below: The encoder that cross-encoders are made of, which reads two texts in a row.
        surveys: The pairs.
        development: Scored pairs, by which the best cycle is chosen.
        tests: What tests the encoder that is exported; may be none.
        settings: How.
        metadata: For `use_st5.json`.
        card: The model card, out of nothing and the scores of what is exported.
    """

    encoder: TrainableEncoder
    below: TrainableEncoder
    surveys: Sequence[Survey]
    development: DevelopmentSet
    tests: Sequence[DevelopmentSet]
    settings: Settings
    metadata: Mapping[str, Any]
    card: Callable[[Any, Scores], str] = lambda run, scores: ""

    def run(
        self,
        data: Path,
        output: Path,
        *,
        seed: int,
        exported: Path,
        strategy: StrategyName | None = None,
    ) -> Scores:
        """Trains, and exports the best encoder; the cross-encoder goes into `output`.

        Args:
            data: Nothing is read there.
            output: For checkpoints, history and scores; what was begun there goes on.
            seed: Of everything random.
            exported: The SavedModel's folder.
            strategy: Where to train, as in `Recipe.run`, on one machine.

        Returns:
            The scores of what is exported, of validation and test.
        """
        del data
        gold = np.array([row["score"] for row in self.development.rows])
        taught = teach(
            [self._learner()],
            gold,
            output / "checkpoints",
            course=course_of(self.settings),
            seed=seed,
            **{"jit_compile": False, **Device(strategy, None).options},
        )
        encoder = TrainableEncoder(
            copy_of(self.encoder.model),
            self.encoder.vectorizer,
            max_length=self.encoder.max_length,
            metadata=dict(self.metadata),
        )
        history = self._measured(taught, encoder)
        write_json(output / HISTORY, {"": dataclasses.asdict(history)})
        self._load(encoder, best(taught, _NAME, "bi"))
        # The measurements stand in the order of the cycles, from 0.
        _, *measured = history.evaluations[history.best_step or 0].items()
        scores = {name: float(value) for name, value in measured}
        scores |= test_scores(self.tests, encoder.encode)
        encoder.card = self.card(None, scores)
        self._cross_encoder(taught).export(output / _CROSS_ENCODER)
        encoder.export(exported, storage=self.settings.storage or self.encoder.stored)
        write_json(output / "scores.json", scores)
        return scores

    def _learner(self) -> Learner:
        rows = itertools.chain.from_iterable(
            training_rows(found, [self.development, *self.tests]) for found in self.surveys
        )
        return Learner(
            name=_NAME,
            bi=lambda: copy_of(self.encoder.model),
            cross=self._cross,
            pairs=self._ids([*rows]),
            development=self._ids(self.development.rows),
        )

    def _ids(self, rows: Sequence[Row]) -> PairIds:
        length = self.settings.max_tokens or BI_LENGTH
        return PairIds.of_texts(
            self.encoder.vectorizer,
            *([row[key] for row in rows] for key in ("sentence1", "sentence2")),
            max_tokens=length,
            max_pair_tokens=2 * length,
            pair_vectorizer=self.below.vectorizer,
        )

    def _cross(self) -> CrossEncoderModel:
        model = CrossEncoderModel(copy_of(self.below.model))
        model.build()
        return model

    def _cross_encoder(self, taught: Sequence[Taught]) -> TrainableEncoder:
        encoder = TrainableEncoder(self._cross(), self.below.vectorizer)
        self._load(encoder, best(taught, _NAME, "cross"))
        return encoder

    def _load(self, encoder: TrainableEncoder, taught: Taught) -> None:
        if taught.weights is not None:
            encoder.model.load_weights(taught.weights)

    def _measured(self, taught: Sequence[Taught], encoder: TrainableEncoder) -> History:
        """The encoder of each cycle by the development pairs; a step of the history is a cycle."""
        history = History(step=self.settings.cycles)
        for each in taught:
            if each.kind == "bi":
                self._load(encoder, each)
                scores = self.development.scores(encoder.encode)
                history.evaluations.append({"step": each.cycle, **scores})
        chosen = best(taught, _NAME, "bi")
        history.best_step, history.best_score = chosen.cycle, chosen.spearman
        return history


def course_of(settings: Settings) -> TransEncoder:
    """The course that settings ask for; what they do not say is the paper's (Table 16).

    Raises:
        ValueError: A setting has no place in it.
    """
    usual = Settings()
    if strange := [name for name in _STRANGE if getattr(settings, name) != getattr(usual, name)]:
        raise ValueError(
            f"Pairs without a score are learnt in cycles, which have no {', '.join(strange)}. "
            "With --teacher CROSS_ENCODER a trained one scores the pairs instead, and all settings "
            "are there."
        )
    paper = TransEncoder()
    both: dict[str, Any] = {"steps": settings.steps}
    if settings.learning_rate is not None:
        both["learning_rate"] = settings.learning_rate
    size = settings.batch_size
    return TransEncoder(
        cycles=settings.cycles,
        to_cross=dataclasses.replace(paper.to_cross, **both),
        to_bi=dataclasses.replace(paper.to_bi, epochs=settings.epochs, batch_size=size, **both),
    )


def pair_cycles(
    encoder: TrainableEncoder,
    teacher: Any,
    surveys: Sequence[Survey],
    sets: Sequence[DevelopmentSet],
    tests: Sequence[DevelopmentSet],
    settings: Settings,
    metadata: Mapping[str, Any],
) -> PairCycles:
    """The training of an encoder by pairs that nobody scored.

    Args:
        encoder: What learns.
        teacher: What its cross-encoder is made of; None: the encoder itself.
        surveys: The pairs.
        sets: What validates.
        tests: What tests.
        settings: How.
        metadata: For `use_st5.json`.

    Raises:
        ValueError: No cross-encoder can be made, or there are no scored pairs to choose by.
    """
    course_of(settings)
    if [each.kind for each in sets] != [SCORED_PAIRS]:
        raise ValueError(
            "Pairs without a score are learnt in cycles, of which scored pairs choose the best: "
            "give one --dev FILE with the columns sentence1, sentence2 and score."
        )
    base = encoder if teacher is None else teacher
    below = _reads_pairs(base)
    if below is None:
        raise ValueError(
            "Pairs without a score are learnt from a cross-encoder, which is made of a BERT or "
            f"RoBERTa: received a {type(getattr(base, 'model', base)).__name__}. Name one with "
            "--teacher FOLDER, or a trained cross-encoder. Where the two texts belong together, "
            "let them be --column anchor=… and positive=…."
        )
    return PairCycles(
        encoder=encoder,
        below=below,
        surveys=surveys,
        development=sets[0],
        tests=tests,
        settings=settings,
        metadata=metadata,
    )


def _reads_pairs(base: Any) -> TrainableEncoder | None:
    """What gives a vector for two texts in a row, if the encoder can."""
    if not isinstance(base, TrainableEncoder):
        return None
    model: keras.Model | None = family_of(base.model).pair_model(base.model)
    return None if model is None else TrainableEncoder(model, base.vectorizer)
