"""What a training will do, and the lines that say so before the first step."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence

from use_st5.own_data.development import MEASURES, DevelopmentSet
from use_st5.own_data.learner import family_name, token_limit
from use_st5.own_data.pair_cycles import PairCycles, course_of
from use_st5.own_data.settings import Settings
from use_st5.own_data.survey import Survey
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.recipe import Recipe

# Texts that are encoded to guess the time; a step takes as long as three readings.
_TIMED, _READINGS = 128, 3


@dataclasses.dataclass(frozen=True)
class Course:
    """What a training will do.

    Attributes:
        start: The model as it was named.
        encoder: What learns.
        settings: How.
        surveys: What the files hold.
        sets: What is measured.
        held_out: Whether the sets are rows of the training files.
        monitor: The score that the best step is chosen by.
        rate: The learning rate.
        steps: Optimizer steps; of pairs without a score, cycles.
        texts: Texts that are read in training, each as often as it is.
        recipe: What is run.
    """

    start: str
    encoder: TrainableEncoder
    settings: Settings
    surveys: Sequence[Survey]
    sets: Sequence[DevelopmentSet]
    held_out: bool
    monitor: str
    rate: float
    steps: int
    texts: float
    recipe: Recipe | PairCycles

    def lines(self) -> Iterator[str]:
        """What is said before the first step."""
        limit = token_limit(self.encoder, self.settings)
        for found in self.surveys:
            yield from found.lines(limit)
        yield from self.measuring()
        parameters = sum(math.prod(v.shape) for v in self.encoder.model.trainable_variables)
        yield (
            f"model: {self.start}, a {family_name(self.encoder) or 'model'} of "
            f"{self.encoder.dimension} dimensions, {parameters:,} weights"
        )
        if self.settings.teacher:
            yield f"teacher: {self.settings.teacher}"
        yield self._training()
        yield f"expected time: about {_shown_time(self._seconds())} on this machine"

    def measuring(self) -> Iterator[str]:
        """What is measured on which rows."""
        if self.held_out:
            count = sum(len(each.rows) for each in self.sets)
            yield (
                f"no --dev: {count:,} of the training rows are held out to measure by; the scores "
                "say how it does on such rows, not on others"
            )
        for each in self.sets:
            name, what = MEASURES[each.kind.name]
            yield f"measured on {each.name}: {name}, {what}; {len(each.rows):,} rows"
        for found in self.surveys:
            if not self.held_out and (found.left_out or found.shared):
                yield (
                    f"{found.source.name}: {found.left_out:,} rows stand in the development file, "
                    f"too, and are left out; {found.shared:,} others share a text with it"
                )

    @property
    def unit(self) -> str:
        """What is counted, and what the best is chosen of: "step" or "cycle"."""
        return "cycle" if isinstance(self.recipe, PairCycles) else "step"

    def _training(self) -> str:
        if isinstance(self.recipe, PairCycles):
            course = course_of(self.settings)
            return (
                f"training: {course.cycles} cycles, in which the encoder's scores teach a "
                f"cross-encoder (learning rate {course.to_cross.learning_rate:.3g}) and its scores "
                f"the encoder ({course.to_bi.learning_rate:.3g}, {course.to_bi.epochs:g} passes)"
            )
        loss = ", ".join(f"{name} {value}" for name, value in self.settings.loss.items())
        return (
            f"training: {self.steps:,} steps of {self.settings.batch_size}, learning rate "
            f"{self.rate:.3g}" + (f", loss with {loss}" if loss else "")
        )

    def _seconds(self) -> float:
        """A guess at the time of the training, by that of reading some of its texts."""
        texts = [
            row[key]
            for found in self.surveys
            for row in found.first
            for key in found.source.kind.texts
            if key in row
        ]
        texts = (texts * _TIMED)[:_TIMED]
        self.encoder.encode(texts)  # The graph is made.
        began = time.monotonic()
        self.encoder.encode(texts)
        each = (time.monotonic() - began) / _TIMED
        measured = sum(len(one.texts()) for one in self.sets) * (self.settings.evaluations + 2)
        return each * (self.texts * _READINGS + measured)


def _shown_time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
