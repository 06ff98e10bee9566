"""`use_st5.train`: from files to an exported encoder."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import keras
import numpy as np

from use_st5.data.arrays import check_shared
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.encode.options import DOCUMENT, QUERY, first_prompt_name
from use_st5.encode.sentences import language_message
from use_st5.io.files import as_written, remote_path, write_json
from use_st5.io.progress import progress_lines
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.task_loss import TaskLoss, VectorLoss
from use_st5.losses.teacher_loss import TeacherLoss
from use_st5.models.encoder_model import in_float32
from use_st5.models.family import known_family
from use_st5.models.lora import apply_lora
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import FileArguments, completed, make_arguments
from use_st5.training.classifier import Classifier, has_heads, probe_weights, write_classifiers
from use_st5.training.few_shot import pair_table, use_few_labels
from use_st5.training.history import History, write_plot
from use_st5.training.model_card import card
from use_st5.training.model_loading import (
    FRESH,
    Teacher,
    VectorFile,
    copied,
    open_model,
    open_teacher,
)
from use_st5.training.rows import (
    TrainingFile,
    add_statistics,
    given_files,
    guided_rows,
    leave_out,
    loss_keys,
    loss_table,
    read_files,
    short_names,
    teacher_rows,
    teacher_texts,
    validation_and_test_sets,
)
from use_st5.training.run_folder import (
    absolute,
    begin,
    forget_result,
    request_of,
    result_of,
    run_folder,
    write_config,
    write_result,
)
from use_st5.training.tasks import (
    NEIGHBOURS,
    PAIRS,
    TEXTS,
    UNSCORED_PAIRS,
    TaskSpec,
    argument_names,
    choose_loss,
    guided,
)
from use_st5.training.trainer import Trainer, strategy_scope
from use_st5.training.trans_encoder import check_cycles, settings_of_cycles, train_in_cycles
from use_st5.training.validation import ValidationSet, main_score, scores_of

# A file, rows in memory (a DataFrame, an Arrow table, dicts, a `tf.data.Dataset`), or a list of
# these.
Files = Any


# The names under which the trained model keeps the prompts of a text and of what belongs to it.
_ROLES = ("query", "document")
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
# Functions that make the rows of a loss, whose columns are its features, and the loss.
PlannedTask = tuple[Callable[[TaskLoss], Any], Callable[[], TaskLoss]]
_HEADS = {"linear-probe": "starts as a linear probe", "random": "starts at random"}


@dataclasses.dataclass(frozen=True)
class Trained:
    """The result of a training.

    Attributes:
        folder: The exported encoder, a SavedModel of strings.
        run: The folder with the curves of the run, TensorBoard's files and the classifiers.
        before: The scores of the start on the validation rows, by name.
        after: The scores of the exported encoder on these rows. The best step was chosen by them,
            so these scores are a little too high.
        monitor: The score that the best step was chosen by.
        best_step: The step that was exported; 0: the start, since no step was better.
        steps: Number of steps that were made.
        classifiers: The classifiers, one for each file of texts and labels.
        test_before: The scores of the start on the test rows, which choose nothing and are
            evaluated once; empty if there are no test rows.
        test_after: The scores of the exported encoder on the test rows.
    """

    folder: Path
    run: Path
    before: Mapping[str, float]
    after: Mapping[str, float]
    monitor: str
    best_step: int
    steps: int
    classifiers: Sequence[Classifier] = ()
    test_before: Mapping[str, float] = dataclasses.field(default_factory=dict)
    test_after: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @cached_property
    def encoder(self) -> TrainableEncoder:
        """The exported encoder, loaded."""
        return TrainableEncoder.load(self.folder)


def train(
    model: str | os.PathLike[str] | TrainableEncoder,
    files: Files,
    to: str | os.PathLike[str],
    *,
    validation: Files = (),
    test: Files = (),
    task: str | Mapping[str, str] | None = None,
    tasks: Sequence[TaskSpec] = (),
    columns: Mapping[str, str | Sequence[str]] | None = None,
    settings: str | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    overwrite: bool = False,
    strategy: str | None = None,
    batch_files: str | os.PathLike[str] | None = None,
    log: Callable[[str], None] = lambda line: None,
    **args: Any,
) -> Trained:
    """Trains an encoder on files whose columns state the task, and exports the best step.

    The encoder is evaluated before the first step, and exported as it was if no step was better.
    The same call continues an interrupted run from the last checkpoint in `TO.run`.

    Args:
        model: A bundled name, a folder, a checkpoint, `fresh:PRESET` (a named shape with the
            vocabulary of the files), or an encoder. It is trained itself, or a copy of it with
            `dropout`, a `strategy` or single texts. After a failure it has its weights of before.
        files: Tables with named columns (.tsv, .csv, .jsonl, .parquet), text (.txt), or TensorFlow
            data sets, `NAME[SPLIT]`; mixed by their sizes or, with `=WEIGHT`, by weights. Or rows
            in memory: a DataFrame, an Arrow table, a list of dicts, a data set of Hugging Face or
            `tf.data`.
        to: The folder to write, a SavedModel that takes strings.
        validation: Files whose rows choose the best step, or folders of retrieval sets in BEIR's
            layout, whose nDCG@10 does; none: rows of `files` are held out.
        test: Files or folders that test the result, once. Without validation and test files, half
            of the held-out rows.
        task: The name of the task of all files, or names by file; None: their columns decide.
        tasks: Tasks of your own; one replaces that of `TASKS` with the same name.
        columns: The files' own names for columns, such as `{"anchor": "title"}`; the key "label"
            may have several columns of 0 and 1.
        settings: The settings of a paper by name, such as "sentence_t5".
        callbacks: Keras callbacks, as in `Trainer`.
        overwrite: Whether to replace the model in `to`, and what another run wrote into `TO.run`.
        strategy: "one", "mirrored" or "tpu"; a continued run may use another one.
        batch_files: Folder of the batches for workers in other processes (`TensorFlowLoop`).
        log: Called with each line about the files, the arguments and the result.
        **args: Attributes of `FileArguments`: `epochs=1`, a `loss` of your own, and so on.

    Returns:
        The folder, the scores before and after, and the step that was exported.

    Raises:
        FileNotFoundError: There is no such model or file.
        FileExistsError: `to` is not empty, or another run was begun there.
        TypeError, ValueError: An argument does not fit, or no task fits a file.
        BlockingIOError: Another process is writing there.
    """
    arguments = make_arguments(settings, **args)
    runtime_options = _runtime_options(strategy, batch_files, callbacks, arguments)
    target = Path(to)
    with contextlib.ExitStack() as stack:
        given = {"files": files, "validation": validation, "test": test}
        lists = [given_files(name, value) for name, value in given.items()]
        options: dict[str, Any] = {"task": task, "columns": columns, "tasks": tasks}
        parts = read_files(*lists, **options, prompts=arguments.prompts)
        request = request_of(model, *parts, arguments)
        work = stack.enter_context(run_folder(target, request, overwrite=overwrite))
        if not overwrite and (done := result_of(work, target)) is not None:
            log(
                f"{as_written(target)}: the same training is already complete. Give --overwrite to "
                "train again."
            )
            return _as_trained(done, work, target)
        encoder = open_model(model, parts[0], arguments)
        if runtime_options["strategy"] is not None:
            with strategy_scope(runtime_options["strategy"]):
                encoder = copied(encoder)
        plan = make_plan(model, encoder, *parts, arguments)
        if plan.in_cycles and (callbacks or batch_files or remote_path(target)):
            text = "expected no callbacks, no batch_files and a local folder"
            raise ValueError(f"{text}: pairs without a score are trained in cycles.")
        begin(work, request, overwrite=overwrite)
        if not tasks:
            given = dict(zip(("train", "validation", "test"), lists, strict=True))
            given |= {"task": task, "column": columns, "strategy": strategy}
            given |= {"model": model, "to": to, "batch_files": batch_files}
            write_config(work, given | vars(arguments))
        # An encoder that we loaded is discarded on failure, so its weights need no backup.
        if isinstance(model, TrainableEncoder):
            stack.enter_context(_weights_kept_on_error(encoder.model))
        return _run(plan, work, target, runtime_options, log)


def _run(
    plan: TrainingPlan,
    work: Path,
    target: Path,
    runtime_options: Mapping[str, Any],
    log: Callable[[str], None],
) -> Trained:
    """Trains, exports, and writes card, classifiers, curves and result."""
    forget_result(work)
    for line in plan.lines():
        log(line)
    began = time.monotonic()
    test_before = scores_of(plan.tests, plan.encoder.encode)
    if plan.in_cycles:
        history = train_in_cycles(plan, work, runtime_options["strategy"])
    else:
        history = _train_in_steps(plan, work, runtime_options)
    write_json(work / "history.json", {"": history.to_state()})
    with progress_lines(lambda: f"evaluating and exporting {as_written(target)}"):
        prompts, default_prompt = exported_prompts(plan.files)
        encoder = TrainableEncoder(
            in_float32(plan.encoder.model),
            plan.encoder.tokenizer,
            name=Path(plan.start.removeprefix(FRESH)).name + "_tuned",
            max_length=plan.encoder.max_length,
            metadata=plan.metadata,
            prompts={**plan.encoder.prompts, **prompts},
            default_prompt_name=default_prompt or plan.encoder.default_prompt_name,
            similarity_fn_name=plan.encoder.similarity_fn_name,
        )
        baseline = {**(history.evaluations or [{}])[0]}
        baseline.pop("step", None)
        validation = {"before": baseline, "after": scores_of(plan.sets, encoder.encode)}
        test = {"before": test_before, "after": scores_of(plan.tests, encoder.encode)}
        encoder.card = card(plan, history, validation, test, target)
        encoder.export(target, precision=plan.arguments.precision or encoder.stored)
    seconds = time.monotonic() - began
    log(f"took {datetime.timedelta(seconds=round(seconds))}")
    classifiers = write_classifiers(
        plan.files, plan.sets, plan.tests, absolute(target), work, plan.arguments
    )
    record = {
        "monitor": plan.monitor,
        "best_step": (history.best_step or 0) if plan.sets else history.step,
        "steps": history.step,
        "validation": validation,
        "test": test,
        "classifiers": [classifier.path.name for classifier in classifiers],
    }
    trained = _as_trained(record, work, target)
    for line in (*(c.line() for c in classifiers), *plan.result_lines(trained)):
        log(line)
    log(write_plot(history, work, plan.monitor, plan.unit))
    write_result(record, work, target)
    return trained


def _as_trained(record: Mapping[str, Any], work: Path, target: Path) -> Trained:
    """The result of a run by its record."""
    names = [Path(name).name for name in record["classifiers"]]
    return Trained(
        folder=target,
        run=work,
        before=record["validation"]["before"],
        after=record["validation"]["after"],
        monitor=record["monitor"],
        best_step=record["best_step"],
        steps=record["steps"],
        classifiers=[Classifier.load(work / name, encoder=absolute(target)) for name in names],
        test_before=record["test"]["before"],
        test_after=record["test"]["after"],
    )


def _train_in_steps(plan: TrainingPlan, work: Path, runtime_options: Mapping[str, Any]) -> History:
    """Trains the encoder of a plan on its tasks, and gives it the weights of the best step."""
    arguments, encoder = plan.arguments, plan.encoder
    heads = {}
    for name, (_, make_loss) in plan.tasks.items():
        file = plan.named_files.get(name) if arguments.head_init == "linear-probe" else None
        if file and file.task.label and has_heads(make_loss()):
            heads[name] = probe_weights(make_loss, file, plan.held, encoder, arguments.seed)
    keras.utils.set_random_seed(arguments.seed)
    with contextlib.ExitStack() as at_end:
        with strategy_scope(runtime_options["strategy"]):
            if arguments.lora_rank is not None:
                adapters = apply_lora(encoder.model, rank=arguments.lora_rank, seed=arguments.seed)
                at_end.callback(adapters.merge)
            losses = {name: make_loss() for name, (_, make_loss) in plan.tasks.items()}
            for name, head_weights in heads.items():
                if not losses[name].built:  # A loss that the user made may serve several files.
                    losses[name].build((None, encoder.dimension))
                losses[name].set_weights(head_weights)
        in_turn = arguments.task_order == "cycle"
        turn = arguments.execution_steps(plan.steps) if in_turn else 1
        trainer = Trainer(
            encoder,
            {name: (rows(losses[name]), losses[name]) for name, (rows, _) in plan.tasks.items()},
            dataclasses.replace(arguments, steps=plan.steps),
            evaluate=partial(scores_of, plan.sets) if plan.sets else None,
            monitor=plan.monitor,
            mixing_weights={name: turn * weight for name, weight in plan.weights.items()},
            folder=work / "checkpoints",
            arrays=work / "prepared",
            **runtime_options,
        )
        return trainer.train()


@contextlib.contextmanager
def _weights_kept_on_error(model: keras.Model) -> Iterator[None]:
    """If the block fails or is interrupted, the model gets back the weights that it had before."""
    variables = [*model.variables]
    values = [np.array(variable.numpy()) for variable in variables]
    try:
        yield
    except BaseException:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        raise


def _runtime_options(
    strategy: str | None,
    batch_files: str | os.PathLike[str] | None,
    callbacks: Sequence[keras.callbacks.Callback],
    arguments: FileArguments,
) -> dict[str, Any]:
    """The arguments of `Trainer` that a run may change: strategy, batch_files and callbacks."""
    if (backend := keras.config.backend()) != "tensorflow":
        text = "use_st5.train needs Keras on TensorFlow: unset KERAS_BACKEND before Python starts"
        raise ValueError(f"{text}. Received: {backend}")
    if strategy == "multi_worker":
        raise ValueError("strategy: `train` uses one machine. Give one, mirrored or tpu.")
    from use_st5.training.strategies import shared_strategy

    made_strategy = None if strategy is None else shared_strategy(strategy)
    replicas = 1 if made_strategy is None else made_strategy.num_replicas_in_sync
    check_shared(arguments.batch_size, replicas=replicas)
    files = None if batch_files is None else as_written(batch_files)
    return {"strategy": made_strategy, "batch_files": files, "callbacks": callbacks}


@dataclasses.dataclass(kw_only=True)
class TrainingPlan:
    """The plan of a training on files.

    Attributes:
        arguments: The arguments, with learning rate, frozen parts and precision set.
        files: The training files with their statistics.
        sets: The validation rows: the best step is chosen by them.
        tests: The test rows, which are evaluated once, at the end; may be none.
        validation, test: The files of these rows; empty: they are rows of the training files.
        in_cycles: Whether the encoder and a cross-encoder teach each other.
        tasks: Name → rows and loss; none in cycles.
        weights: Name → the task's weight in the draw of tasks; empty: the numbers of rows.
        steps: Number of optimizer steps, or of cycles.
    """

    start: str
    encoder: TrainableEncoder
    arguments: FileArguments
    files: Sequence[TrainingFile]
    sets: Sequence[ValidationSet]
    tests: Sequence[ValidationSet]
    validation: Sequence[TrainingFile]
    test: Sequence[TrainingFile]
    teacher: Teacher | None
    guide: TrainableEncoder | VectorFile | None
    in_cycles: bool
    tasks: dict[str, PlannedTask] = dataclasses.field(default_factory=dict)
    weights: dict[str, float] = dataclasses.field(default_factory=dict)
    steps: int = 0

    @property
    def named_files(self) -> dict[str, TrainingFile]:
        """Short name → the file."""
        return dict(zip(short_names(self.files), self.files, strict=True))

    @property
    def held(self) -> list[ValidationSet]:
        """All rows that are not trained on."""
        return [*self.sets, *self.tests]

    @property
    def monitor(self) -> str:
        """The score that the best step is chosen by; empty if that is the last step."""
        return main_score(self.sets) if self.sets else ""

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
        for file in self.files:
            yield from file.lines(limit, longer=most is None or most > limit)
        yield from self.evaluation_lines()
        family = known_family(self.encoder.model)
        weights = sum(math.prod(v.shape) for v in self.encoder.model.trainable_variables)
        yield (
            f"model: {self.start}, a {family.name if family else 'model'} of "
            f"{self.encoder.dimension} dimensions, {weights:,} weights, a vocabulary of "
            f"{self.encoder.tokenizer.vocabulary.size:,}"
        )
        languages = self.encoder.metadata.get("languages")
        columns = (file.table[key] for file in self.files for key in file.text_keys)
        for column in columns:
            texts = [*filter(None, column[:_ROWS_OF_LANGUAGE].to_pylist())]
            if message := language_message(texts, languages, self.start):
                yield message
                break
        if self.arguments.teacher:
            yield f"teacher: {self.arguments.teacher}"
        if self.arguments.guide:
            yield f"guide: {self.arguments.guide}"
        arguments = self.arguments
        if self.in_cycles:
            cycles = settings_of_cycles(arguments)
            yield (
                f"training: {cycles.cycles} cycles: a cross-encoder is trained on the encoder's "
                f"scores (learning rate {cycles.to_cross.learning_rate:.3g}), the encoder on its "
                f"scores (learning rate {cycles.to_bi.learning_rate:.3g}, "
                f"{cycles.to_bi.epochs:g} epochs)"
            )
            return
        loss = type(arguments.loss).__name__
        if isinstance(arguments.loss, Mapping):
            loss = ", ".join(f"{name} {value}" for name, value in arguments.loss.items())
        in_turn = arguments.task_order == "cycle"
        weights = self.weights or {
            name: 1 if in_turn else file.kept for name, file in self.named_files.items()
        }
        total = sum(weights.values())
        shares = ", ".join(f"{name} {weight / total:.0%}" for name, weight in weights.items())
        has_labels = any(file.task.label for file in self.files)
        yield (
            f"training: {self.steps:,} steps of {arguments.batch_size}, learning rate "
            f"{arguments.learning_rate:.3g}"
            + f", loss with {loss}" * bool(loss)
            + "".join(f", frozen: {_FROZEN[part]}" for part in arguments.frozen)
            + f", the classifier {_HEADS[arguments.head_init]}"
            * (has_labels and not arguments.few_shot)
            + f", of {shares}" * (len(self.tasks) > 1)
        )

    def evaluation_lines(self) -> Iterator[str]:
        """The log lines that say which rows are evaluated with which metric."""
        if not self.sets:
            yield "No --validation: all rows are trained on, and the last step is exported."
        elif not self.validation:
            yield f"No --validation: {_count(self.sets)} rows are held out for validation."
        if self.tests and not self.test:
            yield f"No --test: {_count(self.tests)} rows are held out for the test."
        for use, sets in (("validation", self.sets), ("test", self.tests)):
            for part in sets:
                metric = part.metric
                yield (
                    f"{use} on {part.name}: {metric.name}, {metric.description}; "
                    f"{len(part.rows):,} rows"
                )
        if self.sets and not self.tests:
            evaluations = self.steps if self.in_cycles else self.arguments.evaluations
            yield (
                "No test rows: the final scores are optimistic, because they are the best of up to "
                f"{evaluations + 1} evaluations on the same rows. Give other rows with --test."
            )
        for file in self.files:
            if (self.validation or self.test) and (file.left_out or file.shared):
                yield (
                    f"{file.name}: {file.left_out:,} rows are not trained on, because they are "
                    f"validation or test rows; {file.shared:,} others share a text with these"
                )

    def result_lines(self, trained: Trained) -> Iterator[str]:
        """The log lines at the end: the best step, and its scores."""
        if not self.sets:
            yield f"the last step is exported, {trained.steps}"
        elif trained.best_step == 0:
            yield (
                f"no {self.unit} was better than the start by {self.monitor}: the start is exported"
            )
        else:
            yield (
                f"the best {self.unit} was {trained.best_step} of {trained.steps}: "
                f"{_change(self.monitor, trained.before, trained.after)} (validation)"
            )
        if self.tests:
            score = main_score(self.tests)
            yield f"test: {_change(score, trained.test_before, trained.test_after)}"


def make_plan(
    model: str | os.PathLike[str] | TrainableEncoder,
    encoder: TrainableEncoder,
    files: Sequence[TrainingFile],
    validation: Sequence[TrainingFile],
    test: Sequence[TrainingFile],
    arguments: FileArguments,
) -> TrainingPlan:
    """Decides what the arguments leave open."""
    use_few_labels([*files, *validation, *test], arguments)
    for file in files:
        add_statistics(file, encoder.tokenizer, scores=arguments.score_range)
    kept_prompts, default = exported_prompts(files)
    kept_prompts = {**encoder.prompts, **kept_prompts}
    default = default or encoder.default_prompt_name
    sides = [
        kept_prompts.get(first_prompt_name(names, kept_prompts) or default or "", "")
        for names in (QUERY, DOCUMENT)
    ]
    sets, tests = validation_and_test_sets(
        files, validation, test, sides, held_out=not arguments.few_shot
    )
    for file in files:
        leave_out(file, [*sets, *tests])
    teacher = open_teacher(arguments.teacher) if arguments.teacher else None
    guide: Any = open_teacher(arguments.guide) if arguments.guide else None
    _choose_losses(files, arguments, guide)
    family = known_family(encoder.model)
    precisions = family.precisions if family else ("float32",)
    if (precision := arguments.precision or encoder.stored) not in precisions:
        text = f"expected {' or '.join(precisions)} for this model, received {precision}"
        raise ValueError(f"precision: {text}.")
    has_unscored = any(file.task.stands_in_for(UNSCORED_PAIRS) for file in files)
    if isinstance(teacher, CrossEncoder) and not has_unscored:
        text = "a cross-encoder scores pairs of sentence1 and sentence2 without a score, found none"
        raise ValueError(f"teacher: {text}. Give such pairs, or another teacher.")
    plan = TrainingPlan(
        start=(model.name or "an encoder") if isinstance(model, TrainableEncoder) else str(model),
        encoder=encoder,
        arguments=dataclasses.replace(arguments, precision=precision),
        files=files,
        sets=sets,
        tests=tests,
        validation=validation,
        test=test,
        teacher=teacher,
        guide=guide,
        in_cycles=has_unscored and not isinstance(teacher, CrossEncoder),
    )
    if plan.in_cycles:
        check_cycles(plan)
        plan.steps = arguments.cycles
    else:
        _plan_tasks(plan)
    return plan


def _choose_losses(
    files: Sequence[TrainingFile], arguments: FileArguments, guide: Teacher | None
) -> None:
    """Gives the files the losses that a name or a guide chooses, and refuses unknown arguments."""
    given = {} if isinstance(arguments.loss, TaskLoss) else arguments.loss
    if name := given.get("name"):
        choose_loss(files, name)
    if guide is not None:
        guided_files = [file for file in files if file.task.stands_in_for(PAIRS)]
        if isinstance(guide, CrossEncoder) or not guided_files or name:
            text = "a file of pairs (anchor, positive), an encoder, and no other loss"
            raise ValueError(f"guide: expected {text}.")
        for file in guided_files:
            file.task = guided(file.task, guide.dimension)
    valid = {argument for file in files for argument in argument_names(file.task.loss)}
    if unknown := {*given} - valid - {"name"}:
        text = f"expected arguments among {', '.join(sorted(valid))}"
        raise ValueError(f"loss: {text}, received {', '.join(sorted(unknown))}.")


def _plan_tasks(plan: TrainingPlan) -> None:
    """Adds the tasks, the learning rate and the steps to a plan."""
    files, encoder = plan.files, plan.encoder
    scorer = plan.teacher if isinstance(plan.teacher, CrossEncoder) else None
    vectors = None if isinstance(plan.teacher, CrossEncoder) else plan.teacher
    arguments = plan.arguments = completed(
        plan.arguments,
        known_family(encoder.model),
        [file.task for file in files],
        fresh=plan.start.startswith(FRESH),
        from_teacher=plan.teacher is not None,
    )
    total = sum(file.kept for file in files)
    for name, file in plan.named_files.items():
        if vectors is not None and any(map(file.task.stands_in_for, (TEXTS, NEIGHBOURS))):
            continue  # For these tasks the teacher's vectors say more than the losses.
        make = partial(file.task.make_loss, file, encoder, arguments.loss)
        least = make().least_score
        if file.scores and file.target(file.score_limits[0]) < least:
            text = f"expected scores from {least:g} for this loss, found lower ones"
            raise ValueError(f"{file.name}: {text}. Give --score-range -1,1 to scale them.")
        make_loss = partial(_with_dimensions, make, arguments)
        plan.tasks[name] = _rows(plan, file, scorer, make_loss()), make_loss
        plan.weights[name] = file.mixing_weight or len(files) * file.kept / total
    teachers: list[Any] = []
    if vectors is not None:
        teachers = [("teacher", vectors, 1.0, _TEACHER_WEIGHTS)]
    if arguments.keep:
        teachers = [("start", encoder, arguments.keep, _OWN_WEIGHTS), *teachers]
    for name, teacher, weight, options in teachers:
        texts = teacher_texts(teacher, encoder, files, plan.held)
        make = partial(TeacherLoss, teacher_dim=teacher.dimension, **options)
        rows = partial(lambda teacher, texts, loss: teacher_rows(teacher, texts), teacher, texts)
        plan.tasks[name] = rows, partial(_with_dimensions, make, arguments)
        plan.weights[name] = weight * len(files)
    dimensions = arguments.matryoshka_dimensions
    fits = any(isinstance(make_loss(), MatryoshkaLoss) for _, make_loss in plan.tasks.values())
    if dimensions and (max(dimensions) > encoder.dimension or not fits):
        text = f"expected up to {encoder.dimension}, and a loss that needs only vectors"
        raise ValueError(f"matryoshka_dimensions: {text}; received {dimensions}.")
    if not (teachers or any(file.mixing_weight for file in files)):
        plan.weights = {}
    # A file with fewer rows than a batch is read in one step.
    examples = sum(max(file.pairs or file.kept, arguments.batch_size) for file in files)
    plan.steps = arguments.steps_of(examples * (1 + arguments.keep))


def _rows(
    plan: TrainingPlan, file: TrainingFile, scorer: CrossEncoder | None, loss: TaskLoss
) -> Callable[[TaskLoss], Any]:
    """The function that makes the rows of a loss from a file."""
    if plan.arguments.few_shot:
        pairs = pair_table(file, plan.held, plan.arguments)
        file.pairs = len(pairs)
        return lambda loss: pairs
    loss_keys(file, loss, scored=scorer is not None)  # Fails before the training.
    if plan.guide is not None and file.task.stands_in_for(PAIRS):
        return partial(guided_rows, file, plan.held, plan.encoder, plan.guide)
    return partial(loss_table, file, plan.held, plan.encoder, scorer)


def _with_dimensions(make: Callable[[], TaskLoss], arguments: FileArguments) -> TaskLoss:
    loss = make()
    if arguments.matryoshka_dimensions and isinstance(loss, VectorLoss):
        return MatryoshkaLoss(loss, dimensions=arguments.matryoshka_dimensions)
    return loss


def exported_prompts(files: Sequence[TrainingFile]) -> tuple[dict[str, str], str | None]:
    """The prompts that the trained model keeps, by name, and the name of its default prompt.

    If all texts have the same prompt, it is the prompt of queries and documents, and the default.
    Otherwise the prompt of the query text has the name "query", that of its answer the name
    "document", and that of another text the name of its key. If two of the training files have
    different prompts of one name, the first counts.
    """
    texts = [(f.task, key, f.prompts.get(key, "")) for f in files for key in f.text_keys]
    distinct = {prompt for _, _, prompt in texts}
    if distinct == {""}:
        return {}, None
    if len(distinct) == 1:
        return dict.fromkeys(_ROLES, distinct.pop()), "query"
    named: dict[str, str] = {}
    for task, key, prompt in texts:
        needed = [name for name in task.needed if name in task.texts]
        name = key
        if len(needed) > 1 and task.metric and task.metric.query == needed[0]:
            name = dict(zip(needed, _ROLES, strict=False)).get(key, key)
        named.setdefault(name, prompt)
    return {name: text for name, text in named.items() if text or name in _ROLES}, None


def _change(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    return f"{name} {before[name]:.4f} before, {after[name]:.4f} after"


def _count(sets: Sequence[ValidationSet]) -> str:
    return f"{sum(len(part.rows) for part in sets):,}"
