"""The plan of a training on files: tasks, validation and test rows, steps."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.encode.sentences import mostly_not_english, not_english_message
from use_st5.models.family import known_family
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import FileArguments, completed
from use_st5.training.dataset_stats import DatasetStats, dataset_stats
from use_st5.training.file_tasks import FileTask, check_dimensions, file_task, teacher_task
from use_st5.training.held_out import without_held_out
from use_st5.training.model_loading import FRESH
from use_st5.training.pair_cycles import check_cycles, settings_of_cycles
from use_st5.training.run_folder import Result
from use_st5.training.sources import Source
from use_st5.training.tasks import NEIGHBOURS, TEXTS, UNSCORED_PAIRS
from use_st5.training.teachers import Teacher, VectorFile, open_teacher
from use_st5.training.validation import ValidationSet, main_score
from use_st5.training.validation_sets import short_names, validation_and_test_sets

# The first rows of a file, whose language is judged.
_ROWS_OF_LANGUAGE = 1000
# Bytes of a float; and checkpoints on disk: the best, the newest, and the one being written.
_BYTES, _CHECKPOINTS = 4, 3
_FROZEN = {
    "embedding": "the token table",
    "all_embeddings": "the tables of tokens, positions and token types with their norm",
    "encoder": "all but the token table",
    "head": "the head",
}
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
        tasks: The tasks; none in cycles.
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
    tasks: Sequence[FileTask] = ()
    steps: int = 0
    learning_rate_note: str = ""

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
            facts |= {"seed": self.arguments.seed, "tasks": [task.name for task in self.tasks]}
        return facts

    def _is_not_english(self) -> bool:
        """Whether a model for English is trained on first rows of other languages."""
        if self.encoder.metadata.get("languages") != ["en"]:
            return False
        columns = (
            found.source.table[key][:_ROWS_OF_LANGUAGE].to_pylist()
            for found in self.stats
            for key in found.source.kind.texts
            if key in found.source.columns
        )
        return any(mostly_not_english([*filter(None, column)]) for column in columns)

    def lines(self) -> Iterator[str]:
        """The log lines before the first step."""
        limit, most = self.arguments.text_length(self.encoder.max_length), self.encoder.max_length
        for file_stats in self.stats:
            yield from file_stats.lines(limit, longer=most is None or most > limit)
        yield from self.evaluation_lines()
        family = known_family(self.encoder.model)
        yield (
            f"model: {self.start}, a {family.name if family else 'model'} of "
            f"{self.encoder.dimension} dimensions, {self._weights:,} weights, a vocabulary of "
            f"{self.encoder.tokenizer.vocabulary.size:,}"
        )
        if self._is_not_english():
            yield not_english_message(self.start)
        if self.arguments.teacher:
            yield f"teacher: {self.arguments.teacher}"
        yield self._cycles_line() if self.in_cycles else self._steps_line()
        yield self._disk_line()

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
        return (
            f"training: {self.steps:,} steps of {arguments.batch_size}, learning rate "
            f"{arguments.learning_rate:.3g}{self.learning_rate_note}"
            + (f", loss with {loss}" if loss else "")
            + "".join(f", frozen: {_FROZEN[part]}" for part in arguments.frozen)
            + (f", the classifier {_HEADS[arguments.head_init]}" if has_labels else "")
            + self._shares()
        )

    def _shares(self) -> str:
        """The share of the steps of each task, if there are several."""
        if len(self.tasks) < 2:
            return ""
        weights = [
            (task.stats.kept if task.stats else 0) if task.weight is None else task.weight
            for task in self.tasks
        ]
        return ", of " + ", ".join(
            f"{task.name} {weight / sum(weights):.0%}"
            for task, weight in zip(self.tasks, weights, strict=True)
        )

    def _disk_line(self) -> str:
        """Disk space of the run and the model."""
        arguments = self.arguments
        sizes = [math.prod(variable.shape) for variable in self.encoder.model.variables]
        # Adam keeps two numbers for each trained weight; Adafactor almost none, adapters few.
        adam = arguments.optimizer == "adam" and arguments.lora_rank is None
        moments = 2 * self._weights if adam else 0
        # The models of all cycles stay until the end: an encoder and a cross-encoder each.
        model_count = 2 * arguments.cycles + 1 if self.in_cycles else 0
        limit = arguments.text_length(self.encoder.max_length)
        token_count = sum(
            stats.kept * len(stats.source.columns) * min(limit, int(stats.lengths.max()))
            for stats in self.stats
        )
        run = _CHECKPOINTS * (sum(sizes) + moments) + model_count * sum(sizes) + token_count
        is_float = arguments.precision != "int8"
        model = _BYTES * sum(sizes) - (0 if is_float else (_BYTES - 1) * max(sizes))
        keeps_precision = arguments.precision == self.encoder.stored
        return (
            f"disk: up to {_megabytes(_BYTES * run)} for the run until it ends, about "
            f"{_megabytes(model)} for the model in {arguments.precision}"
            + (", the precision of the start" if keeps_precision else "")
        )

    @property
    def _weights(self) -> int:
        return sum(math.prod(v.shape) for v in self.encoder.model.trainable_variables)


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
        arguments=dataclasses.replace(arguments, precision=_precision(encoder, arguments)),
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


def _precision(encoder: TrainableEncoder, arguments: FileArguments) -> str:
    """How the export stores large matrices: as the start does, unless it is stated."""
    family = known_family(encoder.model)
    precisions = family.precisions if family else ("float32",)
    if (precision := arguments.precision or encoder.stored) in precisions:
        return precision
    raise ValueError(
        f"precision: expected {' or '.join(precisions)} for this model, received {precision}."
    )


def _with_tasks(plan: TrainingPlan) -> TrainingPlan:
    """The plan with its tasks, learning rate and steps."""
    stats, teacher = plan.stats, plan.teacher
    scorer = teacher if isinstance(teacher, CrossEncoder) else None
    vectors = None if isinstance(teacher, CrossEncoder) else teacher
    arguments = completed(
        plan.arguments,
        known_family(plan.encoder.model),
        [file_stats.source.kind for file_stats in stats],
        fresh=plan.start.startswith(FRESH),
        from_teacher=teacher is not None,
    )
    total = sum(file_stats.kept for file_stats in stats)
    is_mixed = arguments.keep or vectors is not None or any(s.source.mixing_weight for s in stats)
    tasks = []
    for file_stats, name in zip(stats, short_names([s.source for s in stats]), strict=True):
        is_task = file_stats.source.kind.stands_in_for
        if vectors is not None and any(map(is_task, (TEXTS, NEIGHBOURS))):
            continue  # For these tasks the teacher's vectors say more than the losses.
        weight = file_stats.source.mixing_weight or len(stats) * file_stats.kept / total
        options: dict[str, Any] = {"weight": weight if is_mixed else None, "scorer": scorer}
        tasks.append(
            file_task(file_stats, plan.held, plan.encoder, arguments, name=name, **options)
        )
    teachers: list[tuple[str, TrainableEncoder | VectorFile | None, float]] = [
        ("start", plan.encoder if arguments.keep else None, arguments.keep),
        ("teacher", vectors, 1.0),
    ]
    for name, vector_source, weight in teachers:
        if vector_source is not None:
            options = {"name": name, "weight": weight * len(stats)}
            rows = stats, plan.held
            tasks.append(teacher_task(vector_source, plan.encoder, *rows, arguments, **options))
    check_dimensions(tasks, plan.encoder, arguments)
    # A file with fewer rows than a batch is read in one step.
    examples = sum(max(file_stats.kept, arguments.batch_size) for file_stats in stats)
    steps = arguments.steps_of(examples * (1 + arguments.keep))
    takes_smallest = plan.arguments.learning_rate is None and len(stats) > 1
    note = " (the smallest of the tasks')" if takes_smallest else ""
    return dataclasses.replace(
        plan, arguments=arguments, tasks=tasks, steps=steps, learning_rate_note=note
    )


def _megabytes(count: float) -> str:
    return f"{max(1, round(count / 1e6)):,} MB"


def _change(name: str, scores: Mapping[str, Mapping[str, float]]) -> str:
    return f"{name} {scores['before'][name]:.4f} before, {scores['after'][name]:.4f} after"


def _count(sets: Sequence[ValidationSet]) -> str:
    return f"{sum(len(each.rows) for each in sets):,}"
