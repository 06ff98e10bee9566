"""An experiment as a value: what is trained, on which tasks, how, and which scores are expected.

A recipe says what; `use_st5.training.recipe_run` does it. Change one with `dataclasses.replace`:

    dataclasses.replace(RECIPE, max_length=64).run(Path("data"), Path("runs/short_texts"))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import keras

from use_st5._files import atomic_path
from use_st5._remote_files import cached_path, open_local
from use_st5.data.held_out import without_held_out
from use_st5.data.prepared_column import PreparedColumn
from use_st5.losses.task_loss import TaskLoss
from use_st5.models.inference import in_float32 as in_float32
from use_st5.training.checkpoints import saving_quietly
from use_st5.training.frozen_parts import ModelPart

if TYPE_CHECKING:  # It needs TensorFlow, and training under JAX does not.
    from use_st5.tokenizers.tokenizer import Tokenizer

Part = Literal["prepare", "train", "export"]
StrategyName = str  # of `strategy_by_name`; "tpu:NAME" is "tpu" with that name
Scores = dict[str, float]
_MODEL = "encoder.keras"
Encode = Callable[[list[str]], Any]
# What makes examples, and the columns that they become.
Source = tuple[Callable[[], Iterable[Mapping[str, Any]]], Mapping[str, PreparedColumn]]


class TaskData(Protocol):
    """The data of a task, which may come in several parts: arrays of different lengths."""

    @property
    def group_size(self) -> int:
        """So many examples, one after the other, stay together in a batch."""

    @property
    def buckets(self) -> Sequence[int]:
        """Widths of batches of like texts, as in `ArrayData`; none: all batches have one."""

    def sources(self, task: str, run: Run) -> Mapping[str, Source]:
        """The parts by name. Nothing is read before a part's examples are asked for."""


@dataclasses.dataclass(frozen=True)
class Examples:
    """The examples of a corpus, or of any function, without those of the test sets.

    Attributes:
        read: Data folder → examples, values by name.
        columns: The arrays that they become, by the names that the loss reads.
        group_size: As in `TaskData`.
        buckets: As in `TaskData`.
    """

    read: Callable[[Path], Iterable[Mapping[str, Any]]]
    columns: Mapping[str, PreparedColumn]
    group_size: int = 1
    buckets: Sequence[int] = ()

    def sources(self, task: str, run: Run) -> dict[str, Source]:
        """One part, of the task's name."""

        def examples() -> Iterator[Mapping[str, Any]]:
            yield from without_held_out(self.read(run.data), run.held_out)

        return {task: (examples, self.columns)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecipeTask:
    """One of the tasks of a stage.

    Attributes:
        name: Short name in logs, files and checkpoints.
        loss: Makes what is minimised.
        data: What it learns from.
        batch_size: Examples of a step over all replicas; all there are where these are fewer.
        rate: Weight in the draw of tasks; None: the number of its examples.
        part_weights: Parts share the rate by number of examples times these, or 1.
    """

    name: str
    loss: Callable[[], TaskLoss]
    data: TaskData
    batch_size: int
    rate: float | None = None
    part_weights: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A training from beginning to end; a recipe has one or several, one after the other.

    Attributes:
        tasks: What to train on, each batch of one task; with none the stage is left out.
        optimizer: Number of steps → a Keras optimizer with its schedule.
        steps: Optimizer steps; None: one pass over the examples.
        name: Of the folder of its checkpoints; "" where there is one stage.
        evaluate_every: Steps between measurements; None: nothing is measured in training.
        monitor: The score whose best weights are kept.
        best: Whether the weights of the best measurement are taken, or those of the last step.
        freeze: What of the model stays as it is in this stage; see `frozen_parts`.
        options: Further ones of the trainer, such as "gradient_cache", "jit_compile" and "order".
    """

    tasks: tuple[RecipeTask, ...]
    optimizer: Callable[[int], keras.optimizers.Optimizer]
    steps: int | None
    name: str = ""
    evaluate_every: int | None = None
    monitor: str | None = None
    best: bool = False
    freeze: Callable[[Run], Collection[ModelPart]] = lambda run: ()
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def keep_model(run: Run, model: keras.Model) -> None:
    """Writes the trained model as `encoder.keras`."""
    with atomic_path(run.output / _MODEL) as temporary, saving_quietly():
        model.save(temporary)


def kept_model(run: Run) -> keras.Model:
    """What `keep_model` wrote, computed with in float32."""
    with open_local(run.output / _MODEL) as path:
        return in_float32(keras.saving.load_model(path, compile=False))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """One experiment: an encoder, the tasks that train it, what is measured and expected.

    Attributes:
        name: Of the exported encoder.
        tokenizer: Makes the tokenizer.
        model: Makes the Keras model, built; the random seed is set before.
        stages: The training.
        measure, final: Open what is measured, at the end by `final` if any: → `encode → scores`.
        held_out: Data folder → the normalized sentences that no training text may hold.
        material: Makes what the other functions share, as `run.material`; made when first used.
        check: Refuses, before any work, what could not be trained.
        prepare: Prepares what is needed beside the tasks' arrays, such as a teacher's vectors.
        folders: What else the run may be given: "teacher", "pretrained".
        keep: Writes what was trained into the output folder.
        finished: The model that is exported, of float32, out of what `keep` wrote.
        precision: Of the exported encoder, "float32" or "int8".
        max_length: Where the exported encoder cuts texts; None: its own limit, if it has one.
        metadata: Facts for `use_st5.json`, beside the seed and the tasks.
        card: The model card, Markdown, out of the run and the scores of what is exported.
        expected: The scores that the recipe had when it was run; its file says where.

    Raises:
        ValueError: Two tasks have one name, or two stages.
    """

    name: str
    tokenizer: Callable[[Run], Tokenizer]
    model: Callable[[Run], keras.Model]
    stages: tuple[Stage, ...]
    measure: Callable[[Run], Callable[[Encode], Scores]]
    final: Callable[[Run], Callable[[Encode], Scores]] | None = None
    held_out: Callable[[Path], Collection[str]]
    material: Callable[[Run], Any] = lambda run: None
    check: Callable[[Run], object] = lambda run: None
    prepare: Callable[[Run], None] = lambda run: None
    folders: tuple[Literal["teacher", "pretrained"], ...] = ()
    keep: Callable[[Run, keras.Model], None] = keep_model
    finished: Callable[[Run], keras.Model] = kept_model
    precision: str = "float32"
    max_length: int | None = None
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    card: Callable[[Run, Scores], str] = lambda run, scores: ""
    expected: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for names in (self.tasks, [stage.name for stage in self.stages]):
            if len(names) != len(set(names)):
                raise ValueError(f"Expected tasks and stages of different names, received {names}.")

    @property
    def tasks(self) -> list[str]:
        """The names of all tasks."""
        return [task.name for stage in self.stages for task in stage.tasks]

    def only(self, tasks: Sequence[str]) -> Recipe:
        """The same recipe with some of its tasks; with none the model stays as it was drawn.

        Rates are relative, so any tasks will do. What other tasks give is not known before.

        Raises:
            ValueError: A task is unknown.
        """
        if unknown := set(tasks) - set(self.tasks):
            raise ValueError(f"Expected tasks among {self.tasks}. Received: {sorted(unknown)}")
        stages = (
            dataclasses.replace(stage, tasks=tuple(t for t in stage.tasks if t.name in tasks))
            for stage in self.stages
        )
        expected = self.expected if set(tasks) == set(self.tasks) else {}
        return dataclasses.replace(self, stages=tuple(stages), expected=expected)

    def run(
        self,
        data: Path,
        output: Path,
        *,
        seed: int = 0,
        steps: int | None = None,
        resume: bool = True,
        part: Part | None = None,
        tasks: Sequence[str] | None = None,
        strategy: StrategyName | None = None,
        teacher: Path | None = None,
        pretrained: Path | None = None,
        prepared: Path | None = None,
        exported: Path | None = None,
        batch_files: str | Path | None = None,
    ) -> Scores:
        """Prepares the data, trains, exports and scores.

        Args:
            data: Folder of the corpora and evaluation sets; from elsewhere (gs://) a copy is made.
            output: Folder for checkpoints, the SavedModel and the scores; may lie elsewhere.
            seed: Of the initial weights, the draw of tasks and the shuffling.
            steps: Optimizer steps of each stage; the recipe's own by default. With fewer than 100
                the run is a trial: it prepares no more than the first `steps` batches' rows of
                each part of the data, and trains on these, shuffled by the seed.
            resume: Whether an interrupted run in `output` continues.
            part: "prepare" writes arrays, "train" makes a model of them, "export" the rest.
            tasks: Which tasks to train on; all by default.
            strategy: Where to train, as in `strategy_by_name`; None: the backend's own device.
            teacher: Folder of a teacher's vectors, made if missing; `teacher` in `output` if None.
            pretrained: Folder of what the model starts from; by default what the recipe names.
            prepared: Folder of vocabulary and arrays, shared by runs; in `output` by default.
            exported: Where the encoder is exported to; `model` in `output` by default.
            batch_files: Where workers in other processes find the batches, as in `TensorFlowLoop`.

        Returns:
            Scores by name; nothing where nothing is exported.

        Raises:
            ValueError: The recipe knows no such task, or no use for a folder that is given.
        """
        for name, folder in (("teacher", teacher), ("pretrained", pretrained)):
            if folder and name not in self.folders:
                raise ValueError(f"The recipe {self.name} has no such setting: {name}.")
        from use_st5.training.recipe_run import run_recipe

        recipe = self if tasks is None else self.only(tasks)
        run = Run(recipe, cached_path(data), output, seed, teacher, pretrained, prepared, exported)
        where: dict[str, Any] = {"part": part, "strategy": strategy, "batch_files": batch_files}
        return run_recipe(run, steps=steps, resume=resume, **where)


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a recipe: its folders, its seed, and what its functions share.

    Attributes:
        recipe: What is run.
        data: As in `Recipe.run`, and so are the others.
    """

    recipe: Recipe
    data: Path
    output: Path
    seed: int = 0
    teacher_given: Path | None = None
    pretrained: Path | None = None
    prepared_given: Path | None = None
    exported_given: Path | None = None

    @property
    def teacher(self) -> Path:
        """Folder of the teacher's vectors."""
        return self.teacher_given or self.output / "teacher"

    @property
    def prepared(self) -> Path:
        """Folder of vocabulary and arrays."""
        return self.prepared_given or self.output / "prepared"

    @property
    def exported(self) -> Path:
        """Folder of the exported encoder."""
        return self.exported_given or self.output / "model"

    @cached_property
    def material(self) -> Any:
        """What the recipe's functions share."""
        return self.recipe.material(self)

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer: a `Tokenizer`, of the kind that the recipe makes."""
        return self.recipe.tokenizer(self)

    @cached_property
    def held_out(self) -> Collection[str]:
        """The normalized sentences that no training text may hold."""
        return self.recipe.held_out(self.data)

    @cached_property
    def measure(self) -> Callable[[Encode], Scores]:
        """`encode → scores`."""
        return self.recipe.measure(self)
