"""The table of training tasks: columns, loss, metric and learning rate of each.

A user's own task is one more `TaskSpec`, given to `train(…, tasks=[spec])`.
"""

from __future__ import annotations

import dataclasses
import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from use_st5.losses.classification_loss import ClassificationLoss
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.definition_loss import DefinitionLoss
from use_st5.losses.gist_loss import GISTEmbedLoss
from use_st5.losses.input_response_loss import InputResponseLoss
from use_st5.losses.label_loss import LabelLoss
from use_st5.losses.scored_pair_loss import ScoredPairLoss
from use_st5.losses.simcse_loss import SimCSELoss
from use_st5.losses.skip_thought_loss import SkipThoughtLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.losses.triplet_loss import BatchTripletLoss, TripletLoss
from use_st5.losses.tsdae_loss import TSDAELoss, token_table
from use_st5.training.validation import Metric, accuracy, correlation, halves_retrieval, retrieval

if TYPE_CHECKING:
    from use_st5.models.family import Family
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.rows import TrainingFile

# Names of the columns of further hard negatives, with numbers from 2 on.
_NEGATIVE = "negative_{}"
_MOST_NEGATIVES = 16
# The decoder of neighbours predicts only the most frequent words.
_DECODER_WORDS = 8000
# That of TSDAE predicts all tokens of most vocabularies, whose ids are in the order of frequency.
_RECONSTRUCTED_IDS = 2**15
# LoRA's adapters start at zero and a fresh model at random values: both need larger steps.
_RATE_OF_ADAPTERS, _RATE_OF_FRESH = 3e-4, 1e-3


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class TaskSpec:
    """One way to learn from the rows of a table.

    Attributes:
        name: The name that `--task` takes.
        description: What is learned, in words.
        columns: Key of a row → the names that its column may have in a file; or just the keys.
        loss: The class of the loss, or any function that makes one by keyword arguments.
        metric: Measures an encoder on rows of this task; None: the task has no metric.
        optional: Keys of `columns` that a file need not have.
        label: The key that holds a class, if any.
        score: The key that holds a number, if any.
        features: Feature of the loss → key of a row, if their names differ.
        loss_arguments: Arguments of the loss that depend on the file and the encoder, and defaults
            of this task; the user's own arguments replace them.
        learning_rate: Family → peak learning rate; "" is any other family. If neither is here, the
            family's own is used (`Family.learning_rates`).
        rates_of: The name of the task whose rate that is; None: its own.

    Examples:
        >>> spec = TaskSpec(
        ...     name="titles",
        ...     description="a title and its article",
        ...     columns=("title", "article"),
        ...     loss=ContrastiveLoss,
        ...     features={"anchor": "title", "positive": "article"},
        ...     metric=retrieval("title", "article"),
        ... )
    """

    name: str
    description: str
    columns: Mapping[str, Sequence[str]]
    loss: Callable[..., TaskLoss]
    metric: Metric | None = None
    optional: Sequence[str] = ()
    label: str | None = None
    score: str | None = None
    features: Mapping[str, str] = dataclasses.field(default_factory=dict)
    loss_arguments: Callable[[TrainingFile, TrainableEncoder], Mapping[str, Any]] = (
        lambda file, encoder: {}
    )
    learning_rate: Mapping[str, float] = dataclasses.field(default_factory=dict)
    rates_of: str | None = None

    def __post_init__(self) -> None:
        columns: Any = self.columns
        if not isinstance(columns, Mapping):
            object.__setattr__(self, "columns", {key: (key,) for key in columns})

    @property
    def needed(self) -> tuple[str, ...]:
        """The keys that a file of this task must have."""
        return tuple(key for key in self.columns if key not in self.optional)

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys that hold texts."""
        return tuple(key for key in self.columns if key not in (self.label, self.score))

    @property
    def target(self) -> str | None:
        """The key of the class or the score that the texts have, if any."""
        return self.label or self.score

    def stands_in_for(self, other: TaskSpec) -> bool:
        """Whether it is the other task, or a user's task with its name, target and columns."""
        same = (self.name, self.target) == (other.name, other.target)
        return same and {*other.needed} <= {*self.columns}

    def columns_in(self, names: Sequence[str]) -> dict[str, str]:
        """Key → name of the column, for the keys that have one among a file's names."""
        originals = {name.strip().casefold(): name for name in reversed(names)}
        columns = {}
        for key, alternatives in self.columns.items():
            folded = (name.strip().casefold() for name in alternatives)
            if matches := [originals[name] for name in folded if name in originals]:
                columns[key] = matches[0]
        return columns

    def key_for(self, feature: str, columns: Mapping[str, str]) -> str:
        """The key of a row that holds a feature of the loss.

        Optional features are read from the file's optional columns in their order, the first
        feature from the first column. `columns` are those of `columns_in`.
        """
        present = (key for key in self.optional if key in columns)
        optional = dict(zip(self.optional, present, strict=False))
        return optional.get(feature) or self.features.get(feature, feature)

    def make_loss(
        self, file: TrainingFile, encoder: TrainableEncoder, given: Mapping[str, Any] | TaskLoss
    ) -> TaskLoss:
        """The loss of a file: `given` itself, or one with those of its arguments that fit."""
        if isinstance(given, TaskLoss):
            return given
        if isinstance(self.loss, TaskLoss):
            return self.loss
        valid = argument_names(self.loss)
        options = {name: value for name, value in given.items() if name in valid}
        try:
            return self.loss(**{**self.loss_arguments(file, encoder), **options})
        except (TypeError, ValueError) as error:
            raise ValueError(f"loss: {error}") from error

    def usual_learning_rate(
        self, family: Family | None, *, lora: bool, fresh: bool, random_head: bool
    ) -> float:
        """The peak learning rate if the user states none.

        A head that starts at random (`random_head`) gets a lower one: the encoder would forget
        other tasks before such a head is of use.
        """
        if fresh:
            return _RATE_OF_FRESH
        if lora:
            return _RATE_OF_ADAPTERS
        from use_st5.models.family import Family

        name, rates = (
            (family.name, family.learning_rates) if family else ("", Family.learning_rates)
        )
        task = self.rates_of or ("" if random_head and self.label is not None else self.name)
        family_rate = rates.get(task, rates[""])
        return self.learning_rate.get(name, self.learning_rate.get("", family_rate))


def guided(task: TaskSpec, guide_dim: int) -> TaskSpec:
    """The task of pairs with a guide that masks false negatives, whose vectors have this width."""
    return dataclasses.replace(task, loss=partial(GISTEmbedLoss, guide_dim=guide_dim))


def choose_loss(files: Sequence[TrainingFile], name: str) -> None:
    """Gives files the loss of this name (a key of `LOSSES`) if it is one for their task."""
    fitting = [n for n, other in LOSSES.items() if any(f.task.stands_in_for(other) for f in files)]
    if name not in fitting:
        text = f"expected {' or '.join(fitting) or 'no name'} for these files"
        raise ValueError(f"loss: {text}, received {name!r}.")
    other = LOSSES[name]
    for file in files:
        if (task := file.task).stands_in_for(other):
            make, arguments = other.loss, other.loss_arguments
            file.task = dataclasses.replace(task, loss=make, loss_arguments=arguments)


def argument_names(loss: Callable[..., TaskLoss]) -> list[str]:
    """The names of the arguments that a loss takes."""
    parameters = inspect.signature(loss).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def _negatives() -> dict[str, tuple[str, ...]]:
    first = ("negative", "hard_negative", "hard_neg", "negative_1")
    more = {_NEGATIVE.format(n): (_NEGATIVE.format(n),) for n in range(2, _MOST_NEGATIVES + 1)}
    return {"negative": first, **more}


def _negative_count(file: TrainingFile) -> int:
    return sum(key in file.columns for key in _negatives())


def _reconstruction(file: TrainingFile, encoder: TrainableEncoder) -> dict[str, Any]:
    """Arguments of TSDAE: with the encoder's token table, if it has one."""
    table = token_table(encoder.model)
    ids = [_RECONSTRUCTED_IDS, encoder.tokenizer.vocabulary.size]
    if table is None:
        return {"vocabulary_size": min(ids)}
    return {
        "vocabulary_size": min(*ids, table.shape[0]),
        "tied": True,
        "hidden_dim": table.shape[1],
    }


_FIRST = ("sentence1", "sentence_1", "sentence_a", "text1")
_SECOND = ("sentence2", "sentence_2", "sentence_b", "text2")
_LABEL = ("label", "gold_label", "class", "entailment_judgment")
PAIRS = TaskSpec(
    name="pairs",
    description="texts that belong together: contrastive loss, with the other texts of the batch "
    "and any negatives",
    columns={
        "anchor": ("anchor", "query", "question", "sent0"),
        "positive": ("positive", "answer", "sent1"),
        **_negatives(),
    },
    optional=tuple(_negatives()),
    loss=ContrastiveLoss,
    loss_arguments=lambda file, encoder: {
        "temperature": 0.05,
        "hard_negatives": _negative_count(file),
    },
    metric=retrieval("anchor", "positive", negatives=tuple(_negatives())),
)
SCORED_PAIRS = TaskSpec(
    name="scored_pairs",
    description="pairs with a score: the similarity of the two vectors is trained on it",
    columns={
        "sentence1": _FIRST,
        "sentence2": _SECOND,
        "score": ("score", "relatedness_score", "similarity_score", "similarity"),
    },
    score="score",
    loss=ScoredPairLoss,
    features={"first": "sentence1", "second": "sentence2"},
    metric=correlation("sentence1", "sentence2", "score"),
)
INFERENCE = TaskSpec(
    name="inference",
    description="pairs with a label: natural language inference",
    columns={
        "premise": ("premise", *_FIRST, "prem"),
        "hypothesis": ("hypothesis", *_SECOND, "hyp", "hypo"),
        "label": _LABEL,
    },
    label="label",
    loss=ClassificationLoss,
    loss_arguments=lambda file, encoder: {"num_classes": len(file.label_numbers)},
    metric=accuracy("premise", "hypothesis", label="label"),
)
RESPONSES = TaskSpec(
    name="responses",
    description="inputs and responses: find the response to an input among those of the batch",
    columns={"input": ("input", "context"), "response": ("response", "reply")},
    loss=InputResponseLoss,
    # No network for the response alone: it would be thrown away with the loss, and a search that
    # uses only the encoder does not need it.
    loss_arguments=lambda file, encoder: {"hidden_dims": ()},
    metric=retrieval("input", "response"),
)
DEFINITIONS = TaskSpec(
    name="definitions",
    description="words and definitions: DefSent predicts the word of a definition",
    columns={"word": ("word",), "definition": ("definition",)},
    loss=DefinitionLoss,
    metric=retrieval("word", "definition"),
)
LABELS = TaskSpec(
    name="labels",
    description="texts with a label: a classifier on the encoder; both are trained",
    columns={"text": ("text", "sentence"), "label": _LABEL},
    label="label",
    loss=LabelLoss,
    loss_arguments=lambda file, encoder: {"num_classes": len(file.label_numbers)},
    metric=accuracy("text", label="label"),
)
NEIGHBOURS = TaskSpec(
    name="neighbours",
    description="running text: predict the sentences before and after, like Skip-Thought",
    columns={"text": ("text", "sentence")},
    loss=SkipThoughtLoss,
    loss_arguments=lambda file, encoder: {
        "vocabulary_size": min(_DECODER_WORDS, encoder.tokenizer.vocabulary.size),
        "hidden_dim": 128,
        "intermediate_dim": 512,
    },
    features={"sentence": "text"},
    metric=retrieval("text", "next"),
)
TEXTS = TaskSpec(
    name="texts",
    description="single texts without a label: SimCSE",
    columns={"text": ("text", "sentence")},
    loss=SimCSELoss,
    features={"sentence": "text"},
    metric=halves_retrieval("text"),
)
UNSCORED_PAIRS = TaskSpec(
    name="unscored_pairs",
    description="pairs without a score: Trans-Encoder, encoder and cross-encoder train each other",
    columns={"sentence1": _FIRST, "sentence2": _SECOND},
    # For scores of a trained cross-encoder. In cycles the learning rates are Table 16's for STS.
    loss=ScoredPairLoss,
    features=SCORED_PAIRS.features,
)
TASKS = {
    task.name: task
    for task in (
        *(PAIRS, SCORED_PAIRS, INFERENCE, RESPONSES, DEFINITIONS, LABELS),
        *(NEIGHBOURS, TEXTS, UNSCORED_PAIRS),
    )
}

# Further losses of tasks, by the name that `loss` takes.
LOSSES = {
    "triplet": dataclasses.replace(
        PAIRS,
        loss=TripletLoss,
        loss_arguments=lambda file, encoder: {"hard_negatives": _negative_count(file)},
    ),
    "batch_triplet": dataclasses.replace(
        LABELS, loss=BatchTripletLoss, loss_arguments=lambda file, encoder: {}
    ),
    "tsdae": dataclasses.replace(TEXTS, loss=TSDAELoss, loss_arguments=_reconstruction),
}


def task_for(
    names: Sequence[str],
    where: str,
    requested: str | None = None,
    tasks: Mapping[str, TaskSpec] = TASKS,
) -> TaskSpec:
    """The task of a file that has columns of these names; errors call it `where`.

    Running text and single texts have the same column; if both fit, it is running text. A caller
    that reads the text may decide otherwise. `requested` is the task that the user named, if any.
    """
    if requested is not None:
        if requested not in tasks:
            text = f"expected one of {', '.join(tasks)}, received {requested!r}"
            raise ValueError(f"task: {text}.")
        task = tasks[requested]
        if missing := [key for key in task.needed if key not in task.columns_in(names)]:
            columns = " and ".join(" or ".join(task.columns[key]) for key in missing)
            text = f"expected the columns {columns} for the task {requested}, found {_shown(names)}"
            raise ValueError(f"{where}: {text}. Give the names in the file with --column KEY=NAME.")
        return task
    fitting = [task for task in tasks.values() if {*task.needed} <= {*task.columns_in(names)}]
    # A text with a label is more than a text, a scored pair more than a pair.
    used = [{*task.columns_in(names).values()} for task in fitting]
    best = [
        task
        for task, columns in zip(fitting, used, strict=True)
        if not any(columns < others for others in used)
    ]
    if len(best) == 1 or [task.name for task in best] == [NEIGHBOURS.name, TEXTS.name]:
        return best[0]
    if best:
        raise ValueError(
            f"{where}: expected columns of one task, found {', '.join(names)}, which fit "
            f"{' and '.join(task.name for task in best)}. Choose one with --task, such as --task "
            f"{best[0].name}."
        )
    # Options that make columns those of a task, for example.
    keys = ("anchor", "positive") if len(names) > 1 else ("text",)
    words = [shlex.quote(f"{key}={name:.40}") for key, name in zip(keys, names, strict=False)]
    raise ValueError(
        f"{where}: expected the columns of a task, found {_shown(names)}. The tasks have the "
        f"columns: {known_columns(tasks)}. Does the file begin with a line of column names? If "
        f"they are other names, give the keys of a task: --column {' --column '.join(words)}."
    )


def known_columns(tasks: Mapping[str, TaskSpec] = TASKS) -> str:
    """The columns of all tasks, in a line."""
    texts = (
        ", ".join(task.needed) + " [, negative …]" * task.stands_in_for(PAIRS)
        for task in tasks.values()
    )
    return "; ".join(dict.fromkeys(texts))


def _shown(names: Sequence[str]) -> str:
    """Shows column names, which may be the first line of a file without column names."""
    return ", ".join(repr(name if len(name) <= 40 else name[:39] + "…") for name in names[:12])
