"""What a training will do, and the lines that say so before the first step."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.finished_run import Result
from use_st5.training.fitted_loss import FITTED_ROWS
from use_st5.training.model_loading import family_name, token_limit
from use_st5.training.pair_cycles import PairCycles, course_of
from use_st5.training.recipe import Recipe
from use_st5.training.settings import Settings
from use_st5.training.sources import Source
from use_st5.training.survey import Survey
from use_st5.training.tasks import LABELS
from use_st5.training.validation import DevelopmentSet, measure

# Texts that are encoded to guess the time; a step takes as long as three readings, and goes over
# weights, gradients and Adam's moments so many times, as does the writing of a checkpoint; seconds
# in which graphs are made and the model is exported.
_TIMED, _READINGS, _PASSES, _KEPT, _GRAPHS = 128, 3, 8, 20, 30
# Of a float; and checkpoints at a time: the best, the newest, and the one that is written.
_BYTES, _CHECKPOINTS = 4, 3


_FROZEN = {
    "embedding": "the table of tokens",
    "all_embeddings": "the tables of tokens, positions and types with their norm",
    "encoder": "all but the table of tokens",
    "head": "the head",
}


@dataclasses.dataclass(frozen=True)
class Brief:
    """What a training begins with: a start, what to do with it, and what the files hold.

    Attributes:
        start: The model as it was named.
        encoder: What learns.
        settings: How.
        surveys: What the files hold.
        sets: What validates: the best step is chosen by it.
        tests: What tests, once, at the end; may be none.
        dev: The files whose rows validate; none: they are rows of the training files.
        test: The files whose rows test; none: they are rows of the training files, too.
    """

    start: str
    encoder: TrainableEncoder
    settings: Settings
    surveys: Sequence[Survey]
    sets: Sequence[DevelopmentSet]
    tests: Sequence[DevelopmentSet]
    dev: Sequence[Source]
    test: Sequence[Source]

    @property
    def held(self) -> list[DevelopmentSet]:
        """All rows that do not train."""
        return [*self.sets, *self.tests]


@dataclasses.dataclass(frozen=True)
class Course(Brief):
    """What a training will do: the brief, and what was decided.

    Attributes:
        monitor: The score that the best step is chosen by.
        steps: Optimizer steps; of pairs without a score, cycles.
        texts: Texts that are read in training, each as often as it is.
        recipe: What is run.
    """

    monitor: str
    steps: int
    texts: float
    recipe: Recipe | PairCycles

    def lines(self) -> Iterator[str]:
        """What is said before the first step."""
        limit, most = token_limit(self.encoder, self.settings), self.encoder.max_length
        for found in self.surveys:
            yield from found.lines(limit, longer=most is None or most > limit)
        yield from self.measuring()
        yield (
            f"model: {self.start}, a {family_name(self.encoder) or 'model'} of "
            f"{self.encoder.dimension} dimensions, {self._weights:,} weights, a vocabulary of "
            f"{self.encoder.vectorizer.vocabulary.size:,}"
        )
        if self.settings.teacher:
            yield f"teacher: {self.settings.teacher}"
        yield self._training()
        yield from self._disk()
        yield f"expected time: about {shown_time(self._seconds())} on this machine"

    def measuring(self) -> Iterator[str]:
        """What is measured on which rows."""
        if not self.dev:
            yield f"No --dev: {_count(self.sets)} rows were set aside for validation."
        if self.tests and not self.test:
            yield f"No --test: {_count(self.tests)} rows were set aside for the test."
        for use, sets in (("validation", self.sets), ("test", self.tests)):
            for each in sets:
                metric = each.metric
                asked = each.questions()
                differ = f", {asked:,} of them different" if asked < len(each.rows) else ""
                yield (
                    f"{use} on {each.name}: {metric.name}, {metric.description}; "
                    f"{len(each.rows):,} rows{differ}"
                )
        if not self.tests:
            yield self.optimistic()
        for found in self.surveys:
            if (self.dev or self.test) and (found.left_out or found.shared):
                yield (
                    f"{found.source.name}: {found.left_out:,} rows do not train, since they "
                    f"validate or test; {found.shared:,} others share a text with those"
                )

    def results(self, result: Result) -> Iterator[str]:
        """What is said at the end: the best step, and what it brought."""
        if result.best_step == 0:
            yield (
                f"no {self.unit} was better than the start by {self.monitor}: the start itself is "
                "exported"
            )
        else:
            yield (
                f"the best {self.unit} was {result.best_step} of {result.steps}: "
                f"{_change(self.monitor, result.validation)} (validation)"
            )
        if self.tests:
            yield f"test: {_change(measure(self.tests)[1], result.test)}"

    def optimistic(self) -> str:
        """What the scores are where nothing tests."""
        looks = self.steps if self.unit == "cycle" else self.settings.evaluations
        return (
            f"No test rows: the scores at the end are optimistic, the best of up to {looks + 1} "
            "measurements on the rows that chose it. Give rows that choose nothing with --test."
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
            f"{self.settings.learning_rate:.3g}"
            + (f", loss with {loss}" if loss else "")
            + "".join(f", {_FROZEN[part]} stays as it is" for part in self.settings.freeze or ())
            + self._head()
            + self._shares(self.recipe)
        )

    def _disk(self) -> Iterator[str]:
        """The room that the run and the model take."""
        sizes = [math.prod(variable.shape) for variable in self.encoder.model.variables]
        # Adam keeps two numbers of each weight that learns; Adafactor next to none, adapters few.
        moments = 2 * self._weights if self.settings.optimizer == "adam" else 0
        moments = 0 if self.settings.lora_rank is not None else moments
        # What each cycle taught stays until the end: an encoder and a cross-encoder.
        others = 1 if self.unit == "step" else 2 * self.settings.cycles + 1
        run = _CHECKPOINTS * (sum(sizes) + moments) + others * sum(sizes) + self._numbers()
        whole = self.settings.storage != "int8"
        model = _BYTES * sum(sizes) - (0 if whole else (_BYTES - 1) * max(sizes))
        kept = "as the start is" if self.settings.storage == self.encoder.stored else "as is asked"
        yield (
            f"disk: up to {_megabytes(_BYTES * run)} in the folder of the run until it ends, about "
            f"{_megabytes(model)} for the model, stored in {self.settings.storage} {kept}"
        )

    def _numbers(self) -> int:
        """Numbers of the arrays of all training texts, at their widest."""
        limit = token_limit(self.encoder, self.settings)
        return sum(
            found.kept * len(found.source.columns) * min(limit, int(found.lengths.max()))
            for found in self.surveys
        )

    def _head(self) -> str:
        """How what names classes begins, where anything does."""
        labelled = any(found.source.kind.label for found in self.surveys)
        begun = {"fitted": "fitted to the vectors as they are", "drawn": "drawn"}
        return f", the classifier begins {begun[self.settings.head]}" if labelled else ""

    def _shares(self, recipe: Recipe) -> str:
        """How many of the steps each of several tasks has."""
        tasks = recipe.stages[0].tasks
        if len(tasks) < 2:
            return ""
        weights = [task.rate or 0.0 for task in tasks]
        if not any(weights):  # By their sizes.
            weights = [float(found.kept) for found in self.surveys]
        shares = zip(tasks, weights, strict=True)
        return ", of " + ", ".join(
            f"{task.name} {weight / sum(weights):.0%}" for task, weight in shares
        )

    def _seconds(self) -> float:
        """A guess at the time of the training: reading, updates, what is kept, and graphs."""
        evaluations = self.settings.evaluations + 2
        measured = sum(len(one.texts()) for one in self.sets) * evaluations + self._fitted_texts()
        measured += 2 * sum(len(one.texts()) for one in self.tests)
        updates = self.texts / (texts_of_row(self.surveys) * self.settings.batch_size)
        passes = _PASSES * updates + _KEPT * evaluations
        # Micro-batches are read once more, without a gradient (GradCache).
        readings = _READINGS + (self.settings.micro_batch is not None)
        reading = self._seconds_of_text() * (self.texts * readings + measured)
        return _GRAPHS + reading + passes * self._weights * _seconds_of_float()

    def _fitted_texts(self) -> int:
        """Texts that classifiers are fitted to, before the first step and at the end."""
        texts = 0
        for found in self.surveys:
            kind = found.source.kind
            if kind.label is not None and self.settings.head == "fitted":
                texts += min(found.kept, FITTED_ROWS) * len(kind.texts)
            if kind is LABELS:
                texts += found.kept
        return texts

    def _seconds_of_text(self) -> float:
        """How long the encoder takes to read a text of the files' average length."""
        limit = token_limit(self.encoder, self.settings)
        first = [
            row[key]
            for found in self.surveys
            for row in found.first
            for key in found.source.kind.texts
            if key in row
        ]
        texts = (first * _TIMED)[:_TIMED]
        self.encoder.encode(texts)  # The graph is made.
        began = time.monotonic()
        self.encoder.encode(texts)
        seconds = (time.monotonic() - began) / _TIMED
        lengths = np.concatenate([found.lengths for found in self.surveys])
        counts = np.asarray(self.encoder.vectorizer.token_counts(texts))
        return seconds * np.minimum(lengths, limit).mean() / np.minimum(counts, limit).mean()

    @property
    def _weights(self) -> int:
        return sum(math.prod(v.shape) for v in self.encoder.model.trainable_variables)


def _megabytes(count: float) -> str:
    return f"{max(1, round(count / 1e6)):,} MB"


def _change(name: str, scores: Mapping[str, Mapping[str, float]]) -> str:
    return f"{name} {scores['before'][name]:.4f} before, {scores['after'][name]:.4f} after"


def _count(sets: Sequence[DevelopmentSet]) -> str:
    return f"{sum(len(each.rows) for each in sets):,}"


def texts_of_row(surveys: Sequence[Survey]) -> int:
    """Texts of an example, of further negatives none."""
    return min(3, max(len(found.source.kind.texts) for found in surveys))


def _seconds_of_float() -> float:
    """How long this machine takes to read two numbers of an array and to write one."""
    array = np.ones(4_000_000, np.float32)
    result = array * array
    began = time.monotonic()
    np.multiply(array, array, out=result)
    return (time.monotonic() - began) / array.size


def shown_time(seconds: float) -> str:
    """As one says it: seconds, from 90 of them minutes, from 90 of these hours."""
    if seconds < 90:
        whole = max(1, round(seconds))
        return f"{whole} second{'s' * (whole > 1)}"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
