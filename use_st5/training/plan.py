"""The plan of a training on files: tasks, validation and test rows, steps."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.encode.sentences import mostly_not_english, not_english_message
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.task_loss import TaskLoss, VectorLoss
from use_st5.losses.teacher_loss import TeacherLoss
from use_st5.models.family import known_family
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import FileArguments, completed
from use_st5.training.model_loading import FRESH
from use_st5.training.pair_cycles import check_cycles, settings_of_cycles
from use_st5.training.rows import (
    DatasetStats,
    dataset_stats,
    loss_keys,
    loss_rows,
    short_names,
    teacher_rows,
    teacher_texts,
    validation_and_test_sets,
    without_held_out,
)
from use_st5.training.run_folder import Result
from use_st5.training.sources import Row, Source
from use_st5.training.tasks import NEIGHBOURS, TEXTS, UNSCORED_PAIRS, TaskSpec, argument_names
from use_st5.training.teachers import Teacher, VectorFile, open_teacher
from use_st5.training.validation import ValidationSet, main_score

# The first rows of a file, whose language is judged.
_ROWS_OF_LANGUAGE = 1000
_FROZEN = {
    "embedding": "the token table",
    "all_embeddings": "the tables of tokens, positions and token types with their norm",
    "encoder": "all but the token table",
    "head": "the head",
}
# Loss weights for the start model's own similarities, and for a teacher, as for `use_dan_en`.
_OWN_WEIGHTS = {"vector_weight": 0.0, "similarity_weight": 1.0}
_TEACHER_WEIGHTS = {"similarity_weight": 10.0, "ranking_weight": 1.0, "temperature": 0.1}
# Functions that make the rows, whose keys are the features of the loss, and the loss.
PlannedTask = tuple[Callable[..., Iterator[Row]], Callable[[], TaskLoss]]
_HEADS = {"linear-probe": "starts as a linear probe", "random": "starts at random"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """The plan of a training on files.

    Attributes:
        start: The model as it was named.
        encoder: The encoder to train.
        arguments: The arguments, with learning rate, frozen parts and precision set.
        stats: The statistics of the files.
        sets: The validation rows: the best step is chosen by them.
        tests: The test rows, which are evaluated once, at the end; may be none.
        validation: The files of the validation rows; empty: they are rows of the training files.
        test: The files of the test rows; empty: any test rows are rows of the training files.
        teacher: The teacher, if there is one in addition to the files.
        in_cycles: Whether the encoder and a cross-encoder teach each other (`pair_cycles`).
        tasks: Name → rows and loss; none in cycles.
        weights: Name → the task's weight in the draw of tasks; empty: the numbers of rows.
        steps: Number of optimizer steps, or of cycles.
        learning_rate_note: Says how the learning rate was chosen, if there were several.
    """

    start: str
    encoder: TrainableEncoder
    arguments: FileArguments
    stats: Sequence[DatasetStats]
    sets: Sequence[ValidationSet]
    tests: Sequence[ValidationSet]
    validation: Sequence[Source]
    test: Sequence[Source]
    teacher: Teacher | None
    in_cycles: bool
    tasks: Mapping[str, PlannedTask] = dataclasses.field(default_factory=dict)
    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    steps: int = 0
    learning_rate_note: str = ""

    @cached_property
    def files(self) -> dict[str, DatasetStats]:
        """Short name → the statistics of a file."""
        names = short_names([file_stats.source for file_stats in self.stats])
        return dict(zip(names, self.stats, strict=True))

    @property
    def width(self) -> int:
        """The number of tokens of the longest text, as far as training reads it."""
        longest = max(2, *(int(file_stats.lengths.max()) for file_stats in self.stats))
        return min(self.arguments.text_length(self.encoder.max_length), longest)

    @property
    def held(self) -> list[ValidationSet]:
        """All rows that are not trained on."""
        return [*self.sets, *self.tests]

    @cached_property
    def monitor(self) -> str:
        """The score that the best step is chosen by."""
        return main_score(self.sets)

    @property
    def unit(self) -> str:
        """The unit that is counted, and of which the best one is chosen: "step" or "cycle"."""
        return "cycle" if self.in_cycles else "step"

    @property
    def metadata(self) -> dict[str, Any]:
        """Facts for `use_st5.json`."""
        shared_names = {"languages", "license"} & set(self.encoder.metadata)
        facts = {name: self.encoder.metadata[name] for name in sorted(shared_names)}
        facts["trained_from"] = self.start
        if not self.in_cycles:
            facts |= {"seed": self.arguments.seed, "tasks": [*self.tasks]}
        return facts

    def lines(self) -> Iterator[str]:
        """The log lines before the first step."""
        limit, most = self.arguments.text_length(self.encoder.max_length), self.encoder.max_length
        for file_stats in self.stats:
            yield from file_stats.lines(limit, longer=most is None or most > limit)
        yield from self.evaluation_lines()
        family = known_family(self.encoder.model)
        weights = sum(math.prod(each.shape) for each in self.encoder.model.trainable_variables)
        yield (
            f"model: {self.start}, a {family.name if family else 'model'} of "
            f"{self.encoder.dimension} dimensions, {weights:,} weights, a vocabulary of "
            f"{self.encoder.tokenizer.vocabulary.size:,}"
        )
        if self.encoder.metadata.get("languages") == ["en"]:
            columns = (
                stats.source.table[key][:_ROWS_OF_LANGUAGE].to_pylist()
                for stats in self.stats
                for key in stats.source.hashes
            )
            if any(mostly_not_english([*filter(None, column)]) for column in columns):
                yield not_english_message(self.start)
        if self.arguments.teacher:
            yield f"teacher: {self.arguments.teacher}"
        yield self._cycles_line() if self.in_cycles else self._steps_line()

    def evaluation_lines(self) -> Iterator[str]:
        """The log lines that say which rows are evaluated with which metric."""
        if not self.validation:
            yield f"No --validation: {_count(self.sets)} rows are held out for validation."
        if self.tests and not self.test:
            yield f"No --test: {_count(self.tests)} rows are held out for the test."
        for use, sets in (("validation", self.sets), ("test", self.tests)):
            for eval_set in sets:
                metric, distinct = eval_set.metric, eval_set.questions()
                note = f", {distinct:,} of them different" if distinct < len(eval_set.rows) else ""
                yield (
                    f"{use} on {eval_set.name}: {metric.name}, {metric.description}; "
                    f"{len(eval_set.rows):,} rows{note}"
                )
        if not self.tests:
            evaluations = self.steps if self.in_cycles else self.arguments.evaluations
            yield (
                "No test rows: the final scores are optimistic, because they are the best of up to "
                f"{evaluations + 1} evaluations on the same rows. Give other rows with --test."
            )
        for stats in self.stats:
            if (self.validation or self.test) and (stats.left_out or stats.shared):
                yield (
                    f"{stats.source.name}: {stats.left_out:,} rows are not trained on, because "
                    f"they are validation or test rows; {stats.shared:,} others share a text with "
                    "these"
                )

    def result_lines(self, result: Result) -> Iterator[str]:
        """The log lines at the end: the best step, and its scores."""
        if result.best_step == 0:
            yield (
                f"no {self.unit} was better than the start by {self.monitor}: the start is exported"
            )
        else:
            yield (
                f"the best {self.unit} was {result.best_step} of {result.steps}: "
                f"{_change(self.monitor, result.validation)} (validation)"
            )
        if self.tests:
            yield f"test: {_change(main_score(self.tests), result.test)}"

    def _cycles_line(self) -> str:
        cycles = settings_of_cycles(self.arguments)
        return (
            f"training: {cycles.cycles} cycles: a cross-encoder is trained on the encoder's scores "
            f"(learning rate {cycles.to_cross.learning_rate:.3g}), the encoder on its scores "
            f"(learning rate {cycles.to_bi.learning_rate:.3g}, {cycles.to_bi.epochs:g} epochs)"
        )

    def _steps_line(self) -> str:
        arguments = self.arguments
        loss = type(arguments.loss).__name__
        if isinstance(arguments.loss, Mapping):
            loss = ", ".join(f"{name} {value}" for name, value in arguments.loss.items())
        has_labels = any(found.source.kind.label for found in self.stats)
        weights = self.weights or {name: stats.kept for name, stats in self.files.items()}
        total = sum(weights.values())
        shares = ", ".join(f"{name} {weight / total:.0%}" for name, weight in weights.items())
        return (
            f"training: {self.steps:,} steps of {arguments.batch_size}, learning rate "
            f"{arguments.learning_rate:.3g}{self.learning_rate_note}"
            + (f", loss with {loss}" if loss else "")
            + "".join(f", frozen: {_FROZEN[part]}" for part in arguments.frozen)
            + (f", the classifier {_HEADS[arguments.head_init]}" if has_labels else "")
            + f", of {shares}" * (len(self.tasks) > 1)
        )


def make_plan(
    model: str | os.PathLike[str] | TrainableEncoder,
    encoder: TrainableEncoder,
    sources: Sequence[Source],
    validation: Sequence[Source],
    test: Sequence[Source],
    arguments: FileArguments,
) -> TrainingPlan:
    """Reads the files, and decides what the arguments leave open.

    A ValueError says that a file teaches nothing, or that an argument does not fit the encoder or
    the tasks.
    """
    scores = arguments.score_range
    stats = [dataset_stats(source, encoder.tokenizer, scores=scores) for source in sources]
    sets, tests = validation_and_test_sets(stats, validation, test)
    stats = [without_held_out(found, [*sets, *tests]) for found in stats]
    start = (model.name or "an encoder") if isinstance(model, TrainableEncoder) else str(model)
    teacher = open_teacher(arguments.teacher) if arguments.teacher else None
    family = known_family(encoder.model)
    precisions = family.precisions if family else ("float32",)
    if (precision := arguments.precision or encoder.stored) not in precisions:
        raise ValueError(
            f"precision: expected {' or '.join(precisions)} for this model, received {precision}."
        )
    has_unscored = any(source.kind.stands_in_for(UNSCORED_PAIRS) for source in sources)
    if isinstance(teacher, CrossEncoder) and not has_unscored:
        raise ValueError(
            "teacher: expected a file with sentence1 and sentence2 but without a score, because "
            "the teacher is a cross-encoder, found none. Give such pairs, or an encoder as the "
            "teacher."
        )
    plan = TrainingPlan(
        start=start,
        encoder=encoder,
        arguments=dataclasses.replace(arguments, precision=precision),
        stats=stats,
        sets=sets,
        tests=tests,
        validation=validation,
        test=test,
        teacher=teacher,
        in_cycles=has_unscored and not isinstance(teacher, CrossEncoder),
    )
    if plan.in_cycles:
        check_cycles(plan)
        return dataclasses.replace(plan, steps=arguments.cycles)
    return _with_tasks(plan)


def _with_tasks(plan: TrainingPlan) -> TrainingPlan:
    """The plan with its tasks, learning rate and steps."""
    stats, teacher, encoder = plan.stats, plan.teacher, plan.encoder
    scorer = teacher if isinstance(teacher, CrossEncoder) else None
    vectors = None if isinstance(teacher, CrossEncoder) else teacher
    arguments = completed(
        plan.arguments,
        known_family(encoder.model),
        [file_stats.source.kind for file_stats in stats],
        fresh=plan.start.startswith(FRESH),
        from_teacher=teacher is not None,
    )
    total = sum(file_stats.kept for file_stats in stats)
    tasks: dict[str, PlannedTask] = {}
    weights: dict[str, float] = {}
    for name, file_stats in plan.files.items():
        if vectors is not None and any(
            map(file_stats.source.kind.stands_in_for, (TEXTS, NEIGHBOURS))
        ):
            continue  # For these tasks the teacher's vectors say more than the losses.
        _check_scores(file_stats, arguments)
        loss = partial(_file_loss, file_stats, encoder, arguments)
        loss_keys(file_stats, loss(), scored=scorer is not None)  # Fails before the training.
        rows = partial(loss_rows, file_stats, plan.held, encoder, scorer)
        tasks[name] = rows, loss
        weights[name] = file_stats.source.mixing_weight or len(stats) * file_stats.kept / total
    teachers: list[tuple[str, TrainableEncoder | VectorFile | None, float]] = [
        ("start", encoder if arguments.keep else None, arguments.keep),
        ("teacher", vectors, 1.0),
    ]
    for name, vector_source, weight in teachers:
        if vector_source is not None:
            options = _OWN_WEIGHTS if vector_source is encoder else _TEACHER_WEIGHTS
            loss = partial(_teacher_loss, vector_source.dimension, arguments, options)
            texts = teacher_texts(vector_source, encoder, stats, plan.held)
            tasks[name] = partial(teacher_rows, vector_source, texts), loss
            weights[name] = weight * len(stats)
    check_dimensions([loss() for _, loss in tasks.values()], encoder, arguments)
    is_mixed = arguments.keep or vectors is not None or any(s.source.mixing_weight for s in stats)
    # A file with fewer rows than a batch is read in one step.
    examples = sum(max(file_stats.kept, arguments.batch_size) for file_stats in stats)
    return dataclasses.replace(
        plan,
        arguments=arguments,
        tasks=tasks,
        weights=weights if is_mixed else {},
        steps=arguments.steps_of(examples * (1 + arguments.keep)),
        learning_rate_note=" (the smallest of the tasks')"
        if plan.arguments.learning_rate is None and len(stats) > 1
        else "",
    )


def _file_loss(
    found: DatasetStats, encoder: TrainableEncoder, arguments: FileArguments
) -> TaskLoss:
    return _with_dimensions(found.source.kind.make_loss(found, encoder, arguments.loss), arguments)


def _teacher_loss(dimension: int, arguments: FileArguments, weights: Mapping[str, Any]) -> TaskLoss:
    return _with_dimensions(TeacherLoss(teacher_dim=dimension, **weights), arguments)


def _with_dimensions(loss: TaskLoss, arguments: FileArguments) -> TaskLoss:
    if arguments.matryoshka_dimensions and isinstance(loss, VectorLoss):
        return MatryoshkaLoss(loss, dimensions=arguments.matryoshka_dimensions)
    return loss


def check_loss_arguments(kinds: Sequence[TaskSpec], arguments: FileArguments) -> None:
    """Refuses an argument that no task's loss takes."""
    if isinstance(arguments.loss, TaskLoss):
        return
    valid_names = {name for kind in kinds for name in argument_names(kind.loss)}
    if unknown_names := set(arguments.loss) - valid_names:
        raise ValueError(
            f"loss: expected arguments among {', '.join(sorted(valid_names))}, received "
            f"{', '.join(sorted(unknown_names))}."
        )


def check_dimensions(
    losses: Sequence[TaskLoss], encoder: TrainableEncoder, arguments: FileArguments
) -> None:
    """Refuses `matryoshka_dimensions` that have no effect, or are larger than the vectors."""
    dimensions = arguments.matryoshka_dimensions
    if dimensions and max(dimensions) > encoder.dimension:
        raise ValueError(
            f"matryoshka_dimensions: expected numbers up to {encoder.dimension}, the dimension of "
            f"the encoder, received {dimensions}."
        )
    if dimensions and not any(isinstance(loss, MatryoshkaLoss) for loss in losses):
        raise ValueError(
            "matryoshka_dimensions: expected a task whose loss needs only vectors, received "
            f"{', '.join(type(loss).__name__ for loss in losses)}. Leave it out, or choose another "
            "task."
        )


def _check_scores(found: DatasetStats, arguments: FileArguments) -> None:
    """Refuses scores below 0 if the loss does not take them."""
    if found.scores is None or isinstance(arguments.loss, TaskLoss):
        return
    for name, word in (("objective", "bce"), ("similarity", "angular")):
        if arguments.loss.get(name) == word and found.scores.target(found.lowest) < 0:
            raise ValueError(
                f"{found.source.name}: expected scores from 0 to 1 for the loss with {name}={word},"
                f" found {found.lowest:g}. Give --score-range -1,1 to scale -1 … 1 to 0 … 1."
            )


def _change(name: str, scores: Mapping[str, Mapping[str, float]]) -> str:
    return f"{name} {scores['before'][name]:.4f} before, {scores['after'][name]:.4f} after"


def _count(sets: Sequence[ValidationSet]) -> str:
    return f"{sum(len(each.rows) for each in sets):,}"
