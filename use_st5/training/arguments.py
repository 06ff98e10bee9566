"""The arguments of `Trainer` and of `train`, and the settings of the papers by name."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

if TYPE_CHECKING:  # The command line reads the fields without TensorFlow and Keras.
    import keras

    from use_st5.losses.task_loss import TaskLoss
    from use_st5.models.family import Family
    from use_st5.training.tasks import TaskSpec

Order = Literal["drawn", "cycle"]
OptimizerName = Literal["adam", "adafactor"]
HeadInit = Literal["linear-probe", "random"]
ClassWeight = Literal["balanced"]
Schedule = Literal["linear", "constant"]
TrainOnly = Literal["embedding"]
MicroBatch = int | Literal["auto"]
ModelPart = Literal["embedding", "all_embeddings", "encoder", "head"]

# Steps in one call from the host. If a training has fewer than `_FEW_STEPS`, a call makes one step,
# because measurements are possible only between calls.
STEPS_PER_EXECUTION, _FEW_STEPS = 10, 100
# Tokens of a text that training reads if the encoder itself has no limit.
_MAX_LENGTH = 128


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingArguments:
    """The arguments of `Trainer`.

    Attributes:
        learning_rate: The peak learning rate; None: the usual one of the encoder's family.
        batch_size: Examples in a step.
        micro_batch_size: Examples that are encoded at once. Training then needs the memory of a
            small batch, and computes the loss of the large one (GradCache). "auto": as many as
            half of the machine's memory holds, on a CPU.
        gradient_accumulation_steps: Number of parts into which a batch is cut. Their mean gradient
            makes one step, and in-batch negatives come only from the same part.
        epochs: Passes over the examples.
        steps: Optimizer steps, instead of epochs.
        optimizer: "adam", "adafactor" with Sentence-T5's schedule and no clipping, or a function
            from the number of steps to a Keras optimizer with its schedule.
        warmup_ratio: Share of the steps in which the learning rate of Adam rises to its peak.
        schedule: Adam's learning rate after the warm-up: "linear" falls to 0, "constant" stays.
        max_grad_norm: The norm that Adam's gradients are clipped to; 0: they are not clipped.
        max_length: Largest number of tokens that training reads of a text; None: the encoder's
            limit, or 128 if it has none.
        freeze: Parts of the model that are not trained: "embedding", the token table,
            "all_embeddings" or "head"; None: none, or those of the family.
        train_only: "embedding": the token table and the heads are trained, and nothing else of the
            encoder; None: everything that is not in `freeze`.
        evaluations: Largest number of evaluations during the training.
        evaluation_steps: Steps between two evaluations, and between two checkpoints; it replaces
            the number of evaluations.
        evaluate_epochs: Whether there is also an evaluation at the end of each epoch.
        early_stopping_patience: The training ends after this number of evaluations in a row without
            a better score; None: all steps are made.
        steps_per_execution: Steps in one call from the host; None: 10, or 1 if there are fewer than
            100 steps.
        task_order: Which data set the next steps have. "drawn": one at random, in proportion to
            its size or weight; "cycle": all in turn.
        jit_compile: Whether XLA compiles the step under TensorFlow; None: on a GPU.
        seed: The seed of the order of tasks and examples.
    """

    learning_rate: float | None = None
    batch_size: int = 64
    micro_batch_size: MicroBatch | None = None
    gradient_accumulation_steps: int = 1
    epochs: float = 3.0
    steps: int | None = None
    optimizer: OptimizerName | Callable[[int], keras.optimizers.Optimizer] = "adam"
    warmup_ratio: float = 0.1
    schedule: Schedule = "linear"
    max_grad_norm: float = 1.0
    max_length: int | None = None
    freeze: tuple[ModelPart, ...] | None = None
    train_only: TrainOnly | None = None
    evaluations: int = 10
    evaluation_steps: int | None = None
    evaluate_epochs: bool = False
    early_stopping_patience: int | None = None
    steps_per_execution: int | None = None
    task_order: Order = "drawn"
    jit_compile: bool | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        micro, part = self.micro_batch_size, self.part_size
        if isinstance(micro, str):
            self._check("micro_batch_size", lambda word: word == "auto", "a number or auto")
            micro = None
        else:
            self._check_above_zero("micro_batch_size")
        self._check_above_zero(
            "learning_rate batch_size gradient_accumulation_steps epochs steps "
            "max_length evaluations evaluation_steps early_stopping_patience steps_per_execution"
        )
        self._check("max_grad_norm", lambda norm: 0 <= norm < math.inf, "a number of 0 or more")
        self._check("warmup_ratio", lambda share: 0 <= share < 1, "a share from 0 to less than 1")
        for name, choices in (
            *(("schedule", Schedule), ("task_order", Order), ("train_only", TrainOnly)),
            ("optimizer", OptimizerName),
        ):
            self._check_choice(name, choices)
        if micro and (self.batch_size % micro or (micro < part and part % micro)):
            parts = "" if part == self.batch_size else f", and its accumulated parts, {part}"
            raise ValueError(
                f"micro_batch_size: expected a number that divides the batch size, "
                f"{self.batch_size}{parts}, received {micro}."
            )

    @property
    def frozen(self) -> tuple[ModelPart, ...]:
        """The parts that are not trained, by `freeze` and `train_only`."""
        return (*(self.freeze or ()), *(("encoder",) if self.train_only else ()))

    @property
    def pieces(self) -> int:
        """The number of pieces in which an accumulated part of a batch is encoded (GradCache)."""
        part, micro = self.part_size, self.micro_batch_size
        return max(1, part // (micro if isinstance(micro, int) else part))

    @property
    def part_size(self) -> int:
        """The number of examples in an accumulated part of a batch."""
        return max(1, self.batch_size // self.gradient_accumulation_steps)

    def text_length(self, read: int | None) -> int:
        """The largest number of tokens that training reads of a text.

        Args:
            read: The largest number of tokens that the encoder reads; None: any number.
        """
        length = self.max_length or read or _MAX_LENGTH
        return min(length, read or length)

    def steps_of(self, examples: float) -> int:
        """The number of optimizer steps for a number of examples."""
        return self.steps or math.ceil(self.epochs * examples / self.batch_size)

    def execution_steps(self, steps: int) -> int:
        """The number of steps in one call from the host, if the training has `steps` steps."""
        return self.steps_per_execution or (STEPS_PER_EXECUTION if steps >= _FEW_STEPS else 1)

    def evaluation_interval(self, steps: int) -> int:
        """The number of steps between two evaluations: whole calls from the host."""
        call_steps = self.execution_steps(steps)
        if self.evaluation_steps is None:
            calls = math.ceil(steps / self.evaluations / call_steps)
        else:
            calls = max(1, self.evaluation_steps // call_steps)
        return min(calls * call_steps, steps)

    def ends(self, steps: int, examples: float) -> list[int]:
        """The steps at the ends of epochs, if each epoch has an evaluation, and the last step.

        Args:
            steps: The number of steps of the training.
            examples: The number of examples of an epoch.
        """
        if not self.evaluate_epochs:
            return [steps]
        call, epoch = self.execution_steps(steps), examples / self.batch_size
        numbers = range(1, int(steps / epoch) + 1)
        ends = {call * max(1, round(number * epoch / call)) for number in numbers}
        return sorted({end for end in ends if end < steps} | {steps})

    def make_optimizer(self, steps: int) -> keras.optimizers.Optimizer:
        """Makes the optimizer with its schedule for a number of steps; it needs a learning rate."""
        if callable(self.optimizer):
            return self.optimizer(steps)
        import keras

        from use_st5.training.optimizers import Adam, LinearDecay, LinearWarmup

        rate: Any = self.learning_rate
        if self.optimizer == "adafactor":
            return keras.optimizers.Adafactor(LinearDecay(rate, steps), beta_2_decay=-0.8)
        linear = self.schedule == "linear"
        return Adam(
            LinearWarmup(rate, steps, warmup_share=self.warmup_ratio, decay=linear),
            epsilon=1e-8,
            global_clipnorm=self.max_grad_norm or None,
        )

    def _check(self, names: str, is_good: Callable[[Any], bool], expected: str) -> None:
        for name in names.split():
            if (value := getattr(self, name)) is not None and not is_good(value):
                raise ValueError(f"{name}: expected {expected}, received {value!r}.")

    def _check_above_zero(self, names: str) -> None:
        self._check(names, lambda number: 0 < number < math.inf, "a number above 0")

    def _check_choice(self, name: str, choices: Any) -> None:
        words = get_args(choices)
        self._check(name, lambda word: callable(word) or word in words, " or ".join(words))


# The types of arguments that are checked, by the annotation of a field.
TYPES: Mapping[str, Any] = {
    "int": int,
    "MicroBatch": MicroBatch,
    "float": float,
    "str": str,
    "bool": bool,
    "tuple[ModelPart, ...]": tuple[str, ...],
    "tuple[int, ...]": tuple[int, ...],
    "tuple[float, float]": tuple[float, float],
}
# Arguments for which the command line has no option.
PYTHON_ONLY = (
    *("gradient_accumulation_steps", "evaluation_steps", "evaluate_epochs", "steps_per_execution"),
    "jit_compile",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileArguments(TrainingArguments):
    """The arguments of `train`: those of `Trainer`, and settings of the model and the losses.

    Attributes:
        loss: The loss of all files, or arguments of the tasks' losses by name. A "name" chooses
            another loss of the task: "triplet", "batch_triplet" or "tsdae"; such a word alone, too.
        matryoshka_dimensions: Lengths to which vectors can be cut and stay good.
        prompts: Prompts before the texts: one for all texts, or prompts by column. The
            exported model keeps them for queries and documents (docs/training.md).
        lora_rank: Rank of adapters that are trained instead of the weights; None: no adapters.
        few_shot: For few texts with labels: pairs of texts that share a label train the
            encoder, and a logistic regression of scikit-learn classifies its vectors (SetFit). A
            text may have several labels. Without validation files no row is held out, and the last
            step is exported. It sets what `settings="setfit"` sets.
        class_weight: "balanced": the labels of a `few_shot` classifier count the same, however many
            rows they have; None: each row counts the same.
        head_init: The start of a classification head: "linear-probe", fitted to the vectors of the
            start model, or "random", which makes the encoder forget more
            (docs/own_data_results.md).
        dropout: The dropout of the encoder in training, also on its attention weights; None: the
            model's own. If that is 0, it is 0.1 for single texts, which need some.
        words: Largest size of a fresh model's vocabulary: the most frequent words of the files.
        bigrams: Largest number of bi-grams in a fresh USE-DAN's vocabulary; 0 is better on files of
            a usual size (docs/own_data_results.md has the measurement).
        score_range: The lowest and the highest possible score in the files of scored pairs, which
            become 0 and 1; None: the narrowest usual range that holds a file's scores.
        cycles: For pairs without a score: how often the encoder and its cross-encoder teach each
            other. `epochs`, `steps`, `batch_size` and `learning_rate` are those of one training.
        keep: Weight of the start model's own similarities; all files together have the weight 1.
        teacher: An encoder whose vectors of the training texts are learned as well: a bundled
            name, a folder or a checkpoint. For single texts and running text, only these
            vectors are learned.
        guide: An encoder that masks false negatives of pairs in the batch: candidates that it finds
            more similar than anchor and positive (GISTEmbed). A model, or a file of vectors, as for
            `teacher`.
        precision: The precision of the exported weights, "float32" or "int8"; None: that of the
            start model.
    """

    loss: Mapping[str, Any] | TaskLoss = dataclasses.field(default_factory=dict)
    matryoshka_dimensions: tuple[int, ...] = ()
    prompts: str | Mapping[str, str] = dataclasses.field(default_factory=dict)
    lora_rank: int | None = None
    few_shot: bool = False
    class_weight: ClassWeight | None = None
    head_init: HeadInit = "linear-probe"
    dropout: float | None = None
    words: int = 40_000
    bigrams: int = 0
    score_range: tuple[float, float] | None = None
    cycles: int = 2
    keep: float = 0.0
    teacher: str | None = None
    guide: str | None = None
    precision: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_above_zero("words cycles")
        self._check("keep bigrams", lambda number: 0 <= number < math.inf, "a number of 0 or more")
        self._check_choice("head_init", HeadInit)
        self._check_choice("class_weight", ClassWeight)
        prompts = self.prompts
        if not isinstance(prompts, str) and not all(isinstance(p, str) for p in prompts.values()):
            raise TypeError(f"prompts: expected texts by column, received {dict(prompts)!r:.80}.")
        self._check(
            "score_range",
            lambda ends: len(ends) == 2 and -math.inf < ends[0] < ends[1] < math.inf,
            "the lowest and the highest score, such as (0, 5)",
        )


# The papers' settings, as far as they are arguments of a training. The experiments (`experiments/`)
# state the corpora and the numbers of steps.
NAMED_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    # Ni et al. 2021, section 4.3: stage two, on triplets.
    "sentence_t5": {
        "batch_size": 512,
        "learning_rate": 1e-3,
        "optimizer": "adafactor",
        "loss": {"temperature": 0.01, "bidirectional": True},
    },
    # Reimers and Gurevych 2019, section 3.1; in their code (`WarmupLinear`) the learning rate falls
    # to 0.
    "sbert": {
        "epochs": 1.0,
        "batch_size": 16,
        "learning_rate": 2e-5,
        "head_init": "random",
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
    # appendix A: the warm-up. Its code then keeps the peak learning rate, clips nothing, and
    # freezes all of `bert.embeddings` and the head.
    "defsent": {
        "epochs": 1.0,
        "batch_size": 16,
        "learning_rate": 2**3.5 * 1e-6,
        "schedule": "constant",
        "max_grad_norm": 0.0,
        "freeze": ("all_embeddings", "head"),
    },
    # Tunstall et al. 2022, section 4; two passes, because the pairs are a sixth of theirs.
    "setfit": {"few_shot": True, "epochs": 2.0, "batch_size": 16},
    # Liu et al. 2022, Table 16, whose learning rates are those of `TransEncoder`.
    "trans_encoder": {"epochs": 10.0, "batch_size": 128, "cycles": 3},
    # Cer et al. 2018, "Encoders": its three tasks, with the response's own network.
    "use": {"learning_rate": 1e-3, "head_init": "random", "loss": {"hidden_dims": (512, 512)}},
}


def make_arguments(name: str | None = None, **changes: Any) -> FileArguments:
    """The arguments of a paper (a key of `NAMED_SETTINGS`), with changes; None: the defaults.

    Arguments of the loss are added to those of the paper. A value of a wrong type is a TypeError.
    Few labels have SetFit's arguments if no paper is named.
    """
    if name is None and changes.get("few_shot") is True:
        name = "setfit"
    if name is not None and name not in NAMED_SETTINGS:
        names = ", ".join(NAMED_SETTINGS)
        raise ValueError(f"settings: expected one of {names}, received {name!r}.")
    named_settings = dict(NAMED_SETTINGS[name]) if name else {}
    changes = {key: _checked(key, value) for key, value in changes.items()}
    loss, paper_loss = changes.pop("loss", {}), named_settings.pop("loss", {})
    if isinstance(loss, Mapping):
        loss = {**paper_loss, **loss}
    return FileArguments(**{**named_settings, **changes, "loss": loss})


def _checked(name: str, value: Any) -> Any:
    """The value of an argument in Python's own types; another type is a TypeError."""
    fields = {field.name: str(field.type) for field in dataclasses.fields(FileArguments)}
    if name not in fields:
        raise ValueError(f"Unknown argument {name!r}. Known are: {', '.join(fields)}.")
    if name == "loss" and isinstance(value, str):
        return {"name": value}
    expected = TYPES.get(fields[name].removesuffix(" | None"))
    if expected is None or (value is None and fields[name].endswith(" | None")):
        return value
    try:
        return msgspec.convert(_plain(value), expected)
    except msgspec.ValidationError as error:
        text = f"{name}: {str(error)[0].lower()}{str(error)[1:]}"
        raise TypeError(f"{text}, received {value!r:.60}.") from None


def _plain(value: Any) -> Any:
    """A value in Python's own types, because JSON cannot hold NumPy's numbers."""
    if isinstance(value, tuple | list):
        return tuple(_plain(each) for each in value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if hasattr(value, "dtype") and hasattr(value, "item") else value


def completed(
    arguments: FileArguments,
    family: Family | None,
    tasks: Sequence[TaskSpec],
    *,
    fresh: bool,
    from_teacher: bool,
) -> FileArguments:
    """The arguments, with the usual learning rate and frozen parts if the user states none.

    If there are several tasks, the smallest of their learning rates is used, because a learning
    rate that is too high for one of them makes the encoder forget. `fresh`: the encoder starts with
    initial weights. `from_teacher`: it learns a teacher's vectors, which needs all of its parts.
    """
    options = {
        "lora": arguments.lora_rank is not None,
        "fresh": fresh,
        "random_head": arguments.head_init == "random",
    }
    usual_rate = min(task.usual_learning_rate(family, **options) for task in tasks)
    train_only = arguments.train_only
    if family is not None and fresh and not from_teacher and arguments.freeze is None:
        train_only = train_only or family.train_only_when_fresh
    learning_rate = arguments.learning_rate or usual_rate
    return dataclasses.replace(arguments, learning_rate=learning_rate, train_only=train_only)
