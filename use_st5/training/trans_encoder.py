"""Trans-Encoder: bi- and cross-encoders that teach each other with their scores of pairs.

Liu et al. 2022, arXiv 2109.13059. A bi-encoder scores pairs of texts, a cross-encoder learns the
scores (section 2.2), scores the pairs anew, and the bi-encoder learns these (section 2.3): a cycle.
No pair has a label. Several models can do so side by side, each learning the mean of all their
scores (section 2.4). Only `PairIds.of_texts` reads a string: pairs come as ids, so it runs on every
backend and strategy that a training runs on. `train` does it with pairs without a score.
"""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import keras
import numpy as np

from use_st5.data.arrays import ArrayData, row_lengths
from use_st5.io.files import atomic_path, sole_writer, write_json
from use_st5.io.records import read_record
from use_st5.losses.scored_pair_loss import PairLogitLoss, PairObjective, ScoredPairLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.models.encoder_model import inference
from use_st5.training.arguments import (
    STEPS_PER_EXECUTION,
    FileArguments,
    ModelPart,
    TrainingArguments,
)
from use_st5.training.checkpoints import saving_quietly
from use_st5.training.history import History
from use_st5.training.optimizers import LinearWarmup, adamw
from use_st5.training.run_folder import check_unchanged
from use_st5.training.tasks import SCORED_PAIRS, UNSCORED_PAIRS
from use_st5.training.trainer import Trainer, frozen_parts, strategy_scope
from use_st5.training.validation import Row

if TYPE_CHECKING:  # It needs TensorFlow, and training under JAX does not.
    from use_st5.tokenizers.tokenizer import Tokenizer
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.train import TrainingPlan

Kind = Literal["bi", "cross"]
# Ids `[batch, length]` → vectors `[batch, dimension]`.
Embed = Callable[[np.ndarray], Any]

# Ids of a text in training; pairs have both texts and the special tokens (Table 16).
BI_LENGTH, CROSS_LENGTH = 32, 64
# Pairs that are scored at once, and widths of batches, which hold texts of similar lengths; JAX
# compiles a program for each width.
_BATCH, _WIDTHS = 256, (8, 16, 24, 32, 48, 64)
# Folders of each model: one exists when its training is done, the other before that.
_BEST, _CHECKPOINTS = "best", "checkpoints"
_WEIGHTS, _FACTS = "model.weights.h5", "validation.json"
_METRIC = "spearman"
# Arguments of `train` that have no meaning in cycles, and why.
_WITHOUT_MEANING = (
    *("micro_batch_size", "gradient_accumulation_steps", "lora_rank", "freeze", "head_init"),
    *("train_only", "matryoshka_dimensions", "keep", "early_stopping_patience", "optimizer"),
    *("warmup_ratio", "schedule", "max_grad_norm", "evaluation_steps", "evaluate_epochs", "loss"),
    *("steps_per_execution", "prompts"),
)
_CYCLES = "pairs without a score are trained in cycles, unless a cross-encoder is the --teacher"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairIds:
    """Pairs of texts as ids, int32 `[pairs, length]`.

    `joined` has both texts in a row; `turned`, too, but the second before the first.
    """

    first: np.ndarray
    second: np.ndarray
    joined: np.ndarray
    turned: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of_texts(
        cls,
        tokenizer: Tokenizer,
        first: Sequence[str],
        second: Sequence[str],
        *,
        max_tokens: int,
        max_pair_tokens: int,
        pair_tokenizer: Tokenizer | None = None,
    ) -> Self:
        """The ids of texts, cut to `max_tokens`, and of both together to `max_pair_tokens`.

        `pair_tokenizer` makes the ids of pairs; None: `tokenizer`. If it cannot join two texts,
        `joined` and `turned` have no columns, and only models of single texts can read the pairs.
        """
        first_ids, second_ids = (
            np.asarray(tokenizer.padded(texts, max_tokens)) for texts in (first, second)
        )
        joined = turned = np.zeros((len(first), 0), np.int32)
        if join := getattr(pair_tokenizer or tokenizer, "padded_pairs", None):
            joined = np.asarray(join(first, second, max_pair_tokens))
            turned = np.asarray(join(second, first, max_pair_tokens))
        return cls(first=first_ids, second=second_ids, joined=joined, turned=turned)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistillationSettings:
    """The settings for training one kind of model on the scores of the other.

    Attributes:
        objective: "bce", the soft binary cross-entropy of Eq. 2, or "mse", the squared error of
            Eq. 3.
        learning_rate: The peak learning rate of AdamW.
        batch_size: Pairs of a step.
        epochs: Passes over the pairs.
        steps: Steps instead of epochs; None: the steps of the epochs.
        warmup_share: Share of the steps with a rising learning rate; then it falls linearly to 0.
        both_orders: Whether each pair is used in both orders.
        freeze: Parts of the model that are not trained, as in `frozen_parts`; for a cross-encoder,
            parts of the encoder below its head.
    """

    objective: PairObjective
    learning_rate: float
    batch_size: int
    epochs: float
    steps: int | None = None
    warmup_share: float = 0.0
    both_orders: bool = False
    freeze: tuple[ModelPart, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransEncoder:
    """The settings of Trans-Encoder; the defaults are those of the paper for STS and of its code.

    Attributes:
        cycles: Number of cycles; the result is the best model of each kind by the validation pairs.
        to_cross: The training of a cross-encoder on the bi-encoders' cosines.
        to_bi: The training of a bi-encoder on the cross-encoders' scores.
        refresh: Whether each model starts from its first weights in each cycle. If not, it starts
            from the weights of the other kind (the paper's Table 13).
        standard: Whether bi-encoders are trained on the scores of bi-encoders, without a
            cross-encoder: the standard self-distillation of the paper's Table 14.
        evaluate_every: Steps between two evaluations on the validation pairs; there is one more at
            the end of each epoch (section 4).
    """

    cycles: int = 3
    to_cross: DistillationSettings = DistillationSettings(
        objective="bce",
        learning_rate=2e-5,
        batch_size=32,
        epochs=1,
        warmup_share=0.1,
        both_orders=True,
    )
    to_bi: DistillationSettings = DistillationSettings(
        objective="mse", learning_rate=5e-5, batch_size=128, epochs=10
    )
    refresh: bool = True
    standard: bool = False
    evaluate_every: int = 200


@dataclasses.dataclass(frozen=True, kw_only=True)
class Student:
    """A bi-encoder that is trained, and a cross-encoder made of the same model.

    Attributes:
        name: Short name in files.
        bi: Makes the built bi-encoder with its first weights.
        cross: Makes the built cross-encoder with its first weights. None, for example for a
            USE-DAN: the bi-encoder is trained on the scores of the other cross-encoders.
        pairs: The pairs without labels, as its ids; the same pairs for all students.
        validation: The validation pairs, as its ids.
        bi_learning_rate_factor: Multiplies the learning rate of its bi-encoder. A small encoder
            that was trained from random weights needs a higher learning rate than a BERT.
    """

    name: str
    bi: Callable[[], keras.Model]
    cross: Callable[[], keras.Model] | None
    pairs: PairIds
    validation: PairIds
    bi_learning_rate_factor: float = 1.0


@dataclasses.dataclass(frozen=True)
class DistilledModel:
    """One trained model, and its score.

    Attributes:
        student: The name of the student.
        kind: "bi" or "cross".
        cycle: The cycle, from 1; 0 is the bi-encoder before the training.
        spearman: The rank correlation on the validation pairs, in −1 … 1.
        step: The step of the training with these weights.
        weights: Its weights, for `keras.Model.load_weights`; None in cycle 0.
    """

    student: str
    kind: Kind
    cycle: int
    spearman: float
    step: int
    weights: Path | None


def train_trans_encoder(
    students: Sequence[Student],
    validation_scores: np.ndarray,
    folder: Path,
    *,
    settings: TransEncoder | None = None,
    seed: int = 0,
    progress: bool = True,
    strategy: Any = None,
    steps_per_execution: int = STEPS_PER_EXECUTION,
    jit_compile: bool | None = None,
) -> list[DistilledModel]:
    """Runs the cycles of Trans-Encoder; an interrupted run continues to the same weights.

    Args:
        students: One for self-distillation, several for mutual distillation.
        validation_scores: float `[validation pairs]`, the labels of the validation pairs.
        folder: The folder of weights and checkpoints.
        settings: The settings; None: the paper's.
        seed: The seed of new weights, dropout and the order of the pairs.
        progress: Whether to show progress on the standard error output.
        strategy: As in `Trainer`; `bi` and `cross` of the students are called in its scope.
        steps_per_execution: As in `TrainingArguments`.
        jit_compile: As in `TrainingArguments`.

    Returns:
        All models, in the order in which they were made; `best` finds the ones to keep.
    """
    settings = settings or TransEncoder()
    if len({student.name for student in students}) != len(students):
        raise ValueError("Expected students of different names.")
    args = TrainingArguments(
        steps_per_execution=steps_per_execution, jit_compile=jit_compile, seed=seed
    )
    run = _Cycles(students, validation_scores, folder, settings, args, strategy, progress)
    with sole_writer(folder, inside=True):
        facts = {
            "settings": dataclasses.asdict(settings) | {"cycles": None},  # It may be raised later.
            "students": [student.name for student in students],
            "pairs": len(students[0].pairs),
            "seed": seed,
        }
        if (folder / "settings.json").exists():
            check_unchanged(folder / "settings.json", facts)
        write_json(folder / "settings.json", facts)
        bis = [run.new_model(student, "bi") for student in students]
        for student, (_, embed) in zip(students, bis, strict=True):
            spearman = run.correlation(embed, "bi", student)
            run.models.append(DistilledModel(student.name, "bi", 0, spearman, 0, None))
        for cycle in range(1, settings.cycles + 1):
            if settings.standard:
                bis = run.half_cycle(cycle, "bi", bis, "bi")
            else:
                crosses = run.half_cycle(cycle, "cross", bis, "bi")
                bis = run.half_cycle(cycle, "bi", crosses, "cross")
        return run.models


def best(models: Sequence[DistilledModel], student: str, kind: Kind) -> DistilledModel:
    """The best model of one kind and student by the validation pairs; if equal, the earlier one."""
    candidates = [model for model in models if (model.student, model.kind) == (student, kind)]
    return max(candidates, key=lambda model: (model.spearman, -model.cycle))


# A model, and its compiled form, which is made only once.
_Model = tuple[keras.Model, Embed]


class _Cycles:
    """One run of the cycles, with the models that exist."""

    def __init__(
        self,
        students: Sequence[Student],
        validation_scores: np.ndarray,
        folder: Path,
        settings: TransEncoder,
        args: TrainingArguments,
        strategy: Any,
        progress: bool,
    ) -> None:
        self.students, self.validation_scores, self.folder = students, validation_scores, folder
        self.settings, self.args = settings, args
        self.strategy, self.progress = strategy, progress
        self.models: list[DistilledModel] = []

    def half_cycle(
        self, cycle: int, kind: Kind, teachers: Sequence[_Model], teacher_kind: Kind
    ) -> list[_Model]:
        """Trains all models of one kind on the scores of the other, or reads the trained ones."""
        students, scorers = (
            [student for student in self.students if each == "bi" or student.cross is not None]
            for each in (kind, teacher_kind)
        )
        labels: np.ndarray | None = None
        models = []
        for number, student in enumerate(students):
            model, embed = self.new_model(student, kind, cycle)
            folder = self.folder / f"cycle_{cycle}" / f"{kind}_{student.name}"
            if not (folder / _BEST).exists():
                if labels is None:
                    pairs = zip(teachers, scorers, strict=True)
                    views = [scores(by, teacher_kind, scorer.pairs) for (_, by), scorer in pairs]
                    labels = np.mean(views, axis=0)
                if not self.settings.refresh:
                    teacher, _ = teachers[scorers.index(student)]
                    if kind == "cross":  # It keeps its own head.
                        model.encoder.set_weights(teacher.get_weights())
                    else:
                        model.set_weights(getattr(teacher, "encoder", teacher).get_weights())
                seed = self._seed_of(cycle, kind, number)
                self._train(student, kind, (model, embed), labels, folder, seed)
            # Only the best weights stay; a run of large models would fill the disk.
            shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)
            weights = folder / _BEST / _WEIGHTS
            model.load_weights(weights)
            remedy = "Give another folder."
            facts = read_record(folder / _BEST / _FACTS, dict[str, Any], remedy=remedy)
            self.models.append(
                DistilledModel(student.name, kind, cycle, facts[_METRIC], facts["step"], weights)
            )
            models.append((model, embed))
        return models

    def new_model(self, student: Student, kind: Kind, cycle: int = 0) -> _Model:
        """A model of a student with its first weights."""
        make = student.cross if kind == "cross" and student.cross else student.bi
        keras.utils.set_random_seed(self._seed_of(cycle, kind, self.students.index(student)))
        with strategy_scope(self.strategy):
            model = make()
        return model, inference(model)

    def correlation(self, embed: Embed, kind: Kind, student: Student) -> float:
        """The rank correlation of a model's scores on the validation pairs."""
        from scipy.stats import spearmanr

        found = scores(embed, kind, student.validation)
        return float(np.nan_to_num(spearmanr(found, self.validation_scores).statistic))

    def _seed_of(self, cycle: int, kind: Kind, number: int) -> int:
        """A seed of its own for each training."""
        parts = [self.args.seed, cycle, ("bi", "cross").index(kind), number]
        return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)

    def _train(
        self,
        student: Student,
        kind: Kind,
        built: _Model,
        labels: np.ndarray,
        folder: Path,
        seed: int,
    ) -> None:
        model, embed = built
        distillation, factor = self.settings.to_cross, 1.0
        if kind == "bi":
            distillation, factor = self.settings.to_bi, student.bi_learning_rate_factor
        loss, arrays = _loss_and_arrays(kind, distillation, student.pairs, labels)
        longest = max(array.shape[1] for array in arrays.values() if array.ndim > 1)
        data = ArrayData(arrays, buckets=_widths(longest))
        per_call = self.args.steps_per_execution or 1
        batch_size = min(distillation.batch_size, len(data))
        step_count = distillation.steps or distillation.epochs * len(data) / batch_size
        args = dataclasses.replace(
            self.args,
            optimizer=functools.partial(_optimizer, distillation, factor),
            batch_size=batch_size,
            # A multiple of the number of steps in a call.
            steps=per_call * max(1, round(step_count / per_call)),
            evaluation_steps=self.settings.evaluate_every,
            evaluate_epochs=distillation.steps is None,
            seed=seed,
        )
        with frozen_parts(model.encoder if kind == "cross" else model, distillation.freeze):
            history = Trainer(
                model,
                {f"{kind}_{student.name}": (data, loss)},
                args,
                evaluate=lambda _: {_METRIC: self.correlation(embed, kind, student)},
                # A bi-encoder that is worse than its start is not passed on.
                evaluate_start=kind == "bi",
                folder=folder / _CHECKPOINTS,
                strategy=self.strategy,
                progress=self.progress,
            ).train()
        with atomic_path(folder / _BEST) as temporary:
            temporary.mkdir()
            with saving_quietly():
                model.save_weights(temporary / _WEIGHTS)
            facts = {_METRIC: history.best_score, "step": history.best_step}
            write_json(temporary / _FACTS, facts)


def _optimizer(
    distillation: DistillationSettings, factor: float, steps: int
) -> keras.optimizers.Optimizer:
    """AdamW (section 4); decay and clipping are those of sentence-transformers, as in its code."""
    learning_rate = LinearWarmup(
        factor * distillation.learning_rate, steps, warmup_share=distillation.warmup_share
    )
    return adamw(learning_rate, weight_decay=0.01, global_clipnorm=1.0)


def _loss_and_arrays(
    kind: Kind, distillation: DistillationSettings, pairs: PairIds, labels: np.ndarray
) -> tuple[TaskLoss, dict[str, np.ndarray]]:
    """The loss of a kind, and the columns that it reads."""
    if kind == "bi":
        arrays = {"first": pairs.first, "second": pairs.second, "score": labels}
        return ScoredPairLoss(objective=distillation.objective), arrays
    arrays = {"pair": pairs.joined, "score": labels}
    if distillation.both_orders:
        both = _stacked(pairs.joined, pairs.turned)
        arrays = {"pair": both, "score": np.concatenate([labels, labels])}
    return PairLogitLoss(objective=distillation.objective), arrays


def scores(embed: Embed, kind: Kind, pairs: PairIds) -> np.ndarray:
    """The scores of pairs, float32 `[pairs]`: cosines, or a cross-encoder's `σ(logit)`."""
    if kind == "cross":
        return np.exp(-np.logaddexp(np.float32(0), -_vectors(embed, pairs.joined)[:, 0]))
    # Many texts are in several pairs.
    texts, places = np.unique(_stacked(pairs.first, pairs.second), axis=0, return_inverse=True)
    u, v = np.split(_vectors(embed, texts)[places.reshape(-1)], 2)
    lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    return (u * v).sum(axis=1) / np.maximum(lengths, 1e-12)


def _stacked(*ids: np.ndarray) -> np.ndarray:
    """Joins the rows of several arrays of ids, padded to the widest."""
    width = max(rows.shape[1] for rows in ids)
    return np.concatenate([np.pad(rows, [(0, 0), (0, width - rows.shape[1])]) for rows in ids])


def _widths(longest: int) -> tuple[int, ...]:
    """The widths of batches of similar lengths, up to one that holds the longest row."""
    narrow_widths = [width for width in _WIDTHS if width < longest]
    return (*narrow_widths, next((width for width in _WIDTHS if width >= longest), longest))


def _vectors(embed: Embed, ids: np.ndarray) -> np.ndarray:
    """A model's outputs for rows of ids, in batches of similar lengths: float32 `[rows, width]`."""
    lengths = row_lengths(ids)
    order = np.argsort(lengths, kind="stable")
    parts = []
    for start in range(0, len(order), _BATCH):
        rows = order[start : start + _BATCH]
        width = _widths(int(lengths[rows].max()))[-1]
        parts.append(keras.ops.convert_to_numpy(embed(ids[rows, :width])))
    return np.concatenate(parts)[np.argsort(order)]


def train_in_cycles(plan: TrainingPlan, work: Path, strategy: Any) -> History:
    """Trains the encoder of a plan in cycles, the steps of the history; the best cycle stays.

    The best cross-encoder is exported to `work/cross_encoder`.
    """
    # Here, because these need TensorFlow, as `train` does.
    from use_st5.models.cross_encoder.model import CrossEncoderModel
    from use_st5.trainable_encoder import TrainableEncoder
    from use_st5.training.model_loading import copy_of
    from use_st5.training.rows import training_table

    base = _reads_pairs(plan)

    def cross() -> CrossEncoderModel:
        model = CrossEncoderModel(copy_of(base.model))
        model.build()
        return model

    def ids(rows: Sequence[Row]) -> PairIds:
        length = plan.arguments.max_length or BI_LENGTH
        return PairIds.of_texts(
            plan.encoder.tokenizer,
            [row["sentence1"] for row in rows],
            [row["sentence2"] for row in rows],
            max_tokens=length,
            max_pair_tokens=2 * length,
            pair_tokenizer=base.tokenizer,
        )

    (validation,) = plan.sets
    rows = [row for file in plan.files for row in training_table(file, plan.held).to_pylist()]
    student = Student(
        name="encoder",
        bi=lambda: copy_of(plan.encoder.model),
        cross=cross,
        pairs=ids(rows),
        validation=ids(validation.rows),
    )
    models = train_trans_encoder(
        [student],
        np.array([row["score"] for row in validation.rows]),
        work / "checkpoints",
        settings=settings_of_cycles(plan.arguments),
        seed=plan.arguments.seed,
        strategy=strategy,
        jit_compile=False,
    )
    model, best_model = plan.encoder.model, best(models, "encoder", "bi")
    history = History(step=plan.steps, best_step=best_model.cycle, best_score=best_model.spearman)
    start = model.get_weights()

    def load(trained: DistilledModel) -> None:
        if trained.weights is None:  # The start.
            model.set_weights(start)
        else:
            model.load_weights(trained.weights)

    for trained in models:
        if trained.kind == "bi":
            load(trained)
            scores = validation.scores(plan.encoder.encode)
            history.evaluations.append({"step": trained.cycle, **scores})
    load(best_model)
    cross_encoder = TrainableEncoder(cross(), base.tokenizer)
    cross_encoder.model.load_weights(best(models, "encoder", "cross").weights)
    cross_encoder.export(work / "cross_encoder")
    return history


def settings_of_cycles(arguments: FileArguments) -> TransEncoder:
    """The settings of the cycles; those that no argument sets are the paper's (Table 16)."""
    defaults = FileArguments()
    if names := [n for n in _WITHOUT_MEANING if getattr(arguments, n) != getattr(defaults, n)]:
        raise ValueError(f"{', '.join(names)}: expected no value, as {_CYCLES}.")
    paper = TransEncoder()
    common: dict[str, Any] = {"steps": arguments.steps}
    if arguments.learning_rate is not None:
        common["learning_rate"] = arguments.learning_rate
    size = arguments.batch_size
    return TransEncoder(
        cycles=arguments.cycles,
        to_cross=dataclasses.replace(paper.to_cross, **common),
        to_bi=dataclasses.replace(paper.to_bi, epochs=arguments.epochs, batch_size=size, **common),
    )


def check_cycles(plan: TrainingPlan) -> None:
    """Checks that the encoder of a plan can be trained in cycles."""
    if tasks := {file.task.name for file in plan.files} - {UNSCORED_PAIRS.name}:
        others = ", ".join(sorted(tasks))
        raise ValueError(f"train: received also {others}, but {_CYCLES}. Train twice.")
    settings_of_cycles(plan.arguments)
    if len(plan.sets) != 1 or not plan.sets[0].task.stands_in_for(SCORED_PAIRS):
        raise ValueError(f"validation: expected one file of scored pairs, as {_CYCLES}.")
    _reads_pairs(plan)


def _reads_pairs(plan: TrainingPlan) -> TrainableEncoder:
    """The encoder that cross-encoders are made of: teacher or encoder, which must read pairs."""
    from use_st5.models.family import family_of
    from use_st5.trainable_encoder import TrainableEncoder

    base = plan.encoder if plan.teacher is None else plan.teacher
    if isinstance(base, TrainableEncoder):
        model = family_of(base.model).pair_model(base.model)
        if model is not None:
            return TrainableEncoder(model, base.tokenizer)
    name = type(getattr(base, "model", base)).__name__
    raise ValueError(
        f"Expected a BERT or RoBERTa, received a {name}, but {_CYCLES}. Give one with --teacher."
    )
