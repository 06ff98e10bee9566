"""Trans-Encoder: bi- and cross-encoders that teach each other with their scores of pairs.

Liu et al. 2022, arXiv 2109.13059. A bi-encoder scores pairs of texts, a cross-encoder learns the
scores (section 2.2), scores the pairs anew, and the bi-encoder learns these (section 2.3): a cycle.
No pair has a label. Several models can do so side by side, each learning the mean of all their
scores (section 2.4). Nothing here reads a string: pairs come as ids, so it runs on every
backend and strategy that a training runs on.
"""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import keras
import numpy as np

from use_st5.io.files import atomic_path, sole_writer, write_json
from use_st5.io.records import read_record
from use_st5.losses.pair_logit_loss import Objective, PairLogitLoss
from use_st5.losses.scored_pair_loss import ScoredPairLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.models.inference import inference
from use_st5.training.arguments import STEPS_PER_EXECUTION, TrainingArguments
from use_st5.training.array_data import ArrayData
from use_st5.training.checkpoints import saving_quietly
from use_st5.training.frozen_parts import ModelPart, frozen_parts
from use_st5.training.optimizers import adamw
from use_st5.training.pair_scores import Embed, Kind, PairIds, scores, stacked, widths
from use_st5.training.run_folder import check_unchanged
from use_st5.training.schedules import LinearWarmup
from use_st5.training.trainer import Trainer, strategy_scope

# Ids of a text in training; pairs have both texts and the special tokens (Table 16).
BI_LENGTH, CROSS_LENGTH = 32, 64
# Folders of each model: one exists when its training is done, the other before that.
_BEST, _CHECKPOINTS = "best", "checkpoints"
_WEIGHTS, _FACTS = "model.weights.h5", "validation.json"
_METRIC = "spearman"


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

    objective: Objective
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

    Raises:
        ValueError: Students and pairs do not fit each other, or the folder has other settings.
        BlockingIOError: Another process is writing the folder.
    """
    settings = settings or TransEncoder()
    _check(students, validation_scores, settings)
    with sole_writer(folder, inside=True):
        _check_same_settings(folder, students, settings, seed)
        args = TrainingArguments(steps_per_execution=steps_per_execution, jit_compile=jit_compile)
        options = {"strategy": strategy, "progress": progress}
        return _Cycles(students, validation_scores, folder, settings, seed, args, options).run()


def best(models: Sequence[DistilledModel], student: str, kind: Kind) -> DistilledModel:
    """The best model of one kind and student by the validation pairs; if equal, the earlier one."""
    candidates = [each for each in models if (each.student, each.kind) == (student, kind)]
    return max(candidates, key=lambda each: (each.spearman, -each.cycle))


class _Model(NamedTuple):
    """A model, and its compiled form, which is made only once."""

    keras: keras.Model
    embed: Embed

    @classmethod
    def of(cls, model: keras.Model) -> Self:
        return cls(model, inference(model))


@dataclasses.dataclass
class _Cycles:
    """One run of the cycles: the models that exist, and the next one."""

    students: Sequence[Student]
    validation_scores: np.ndarray
    folder: Path
    settings: TransEncoder
    seed: int
    args: TrainingArguments
    options: Mapping[str, Any]
    models: list[DistilledModel] = dataclasses.field(default_factory=list)

    def run(self) -> list[DistilledModel]:
        bis = [_Model.of(self._new_model(student, "bi")) for student in self.students]
        for student, start in zip(self.students, bis, strict=True):
            spearman = _correlation(
                scores(start.embed, "bi", student.validation), self.validation_scores
            )
            self.models.append(DistilledModel(student.name, "bi", 0, spearman, 0, None))
        for cycle in range(1, self.settings.cycles + 1):
            teachers = bis
            kind: Kind = "bi"
            if not self.settings.standard:
                teachers, kind = self._half_cycle(cycle, "cross", bis, "bi"), "cross"
            bis = self._half_cycle(cycle, "bi", teachers, kind)
        return self.models

    def _half_cycle(
        self, cycle: int, kind: Kind, teachers: Sequence[_Model], of_kind: Kind
    ) -> list[_Model]:
        """One half of a cycle: trains all models of one kind on the scores of the other."""
        students = [each for each in self.students if kind == "bi" or each.cross is not None]
        scorers = [each for each in self.students if of_kind == "bi" or each.cross is not None]
        labels: np.ndarray | None = None
        models = []
        for number, student in enumerate(students):
            model = _Model.of(self._new_model(student, kind, cycle))
            folder = self.folder / f"cycle_{cycle}" / f"{kind}_{student.name}"
            if not (folder / _BEST).exists():
                if labels is None:
                    teacher_pairs = zip(teachers, scorers, strict=True)
                    views = [scores(each.embed, of_kind, by.pairs) for each, by in teacher_pairs]
                    labels = np.mean(views, axis=0)
                if not self.settings.refresh:
                    _start_from(model.keras, kind, teachers[scorers.index(student)].keras)
                self._train(
                    student, kind, model, labels, folder, self._seed_of(cycle, kind, number)
                )
            # Only the best weights stay; a run of large models would fill the disk.
            shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)
            model.keras.load_weights(folder / _BEST / _WEIGHTS)
            self.models.append(_distilled(folder / _BEST, student.name, kind, cycle))
            models.append(model)
        return models

    def _new_model(self, student: Student, kind: Kind, cycle: int = 0) -> keras.Model:
        make = student.cross if kind == "cross" and student.cross else student.bi
        keras.utils.set_random_seed(self._seed_of(cycle, kind, self.students.index(student)))
        strategy = self.options["strategy"]
        with strategy_scope(strategy):
            return make()

    def _seed_of(self, cycle: int, kind: Kind, number: int) -> int:
        """A seed of its own for each training."""
        parts = [self.seed, cycle, ("bi", "cross").index(kind), number]
        return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)

    def _train(
        self,
        student: Student,
        kind: Kind,
        model: _Model,
        labels: np.ndarray,
        folder: Path,
        seed: int,
    ) -> None:
        distillation, factor = self.settings.to_cross, 1.0
        if kind == "bi":
            distillation, factor = self.settings.to_bi, student.bi_learning_rate_factor
        loss, arrays = _loss_and_arrays(kind, distillation, student.pairs, labels)
        longest = max(each.shape[1] for each in arrays.values() if each.ndim > 1)
        data = ArrayData(arrays, buckets=widths(longest))
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
        encoder = model.keras.encoder if kind == "cross" else model.keras
        with frozen_parts(encoder, distillation.freeze):
            history = Trainer(
                model.keras,
                {f"{kind}_{student.name}": (data, loss)},
                args,
                evaluate=lambda _: {
                    _METRIC: _correlation(
                        scores(model.embed, kind, student.validation), self.validation_scores
                    )
                },
                # A bi-encoder that is worse than its start is not passed on.
                evaluate_start=kind == "bi",
                folder=folder / _CHECKPOINTS,
                **self.options,
            ).train()
        facts = {_METRIC: history.best_score, "step": history.best_step}
        with atomic_path(folder / _BEST) as temporary:
            temporary.mkdir()
            with saving_quietly():
                model.keras.save_weights(temporary / _WEIGHTS)
            write_json(temporary / _FACTS, facts)


def _optimizer(
    distillation: DistillationSettings, factor: float, steps: int
) -> keras.optimizers.Optimizer:
    """AdamW (section 4); decay and clipping are those of sentence-transformers, as in its code."""
    learning_rate = LinearWarmup(
        factor * distillation.learning_rate, steps, warmup_share=distillation.warmup_share
    )
    return adamw(learning_rate, weight_decay=0.01, global_clipnorm=1.0)


def _distilled(best: Path, student: str, kind: Kind, cycle: int) -> DistilledModel:
    facts = read_record(best / _FACTS, dict[str, Any], remedy="Give another folder.")
    return DistilledModel(student, kind, cycle, facts[_METRIC], facts["step"], best / _WEIGHTS)


def _loss_and_arrays(
    kind: Kind, distillation: DistillationSettings, pairs: PairIds, labels: np.ndarray
) -> tuple[TaskLoss, dict[str, np.ndarray]]:
    """The loss of a kind, and the columns that it reads."""
    if kind == "bi":
        arrays = {"first": pairs.first, "second": pairs.second, "score": labels}
        return ScoredPairLoss(objective=distillation.objective), arrays
    if not distillation.both_orders:
        return PairLogitLoss(objective=distillation.objective), {
            "pair": pairs.joined,
            "score": labels,
        }
    arrays = {
        "pair": stacked(pairs.joined, pairs.turned),
        "score": np.concatenate([labels, labels]),
    }
    return PairLogitLoss(objective=distillation.objective), arrays


def _start_from(model: keras.Model, kind: Kind, teacher: keras.Model) -> None:
    """Copies a teacher's encoder weights into a model; a cross-encoder keeps its own head."""
    if kind == "cross":
        model.encoder.set_weights(teacher.get_weights())
    else:
        model.set_weights(getattr(teacher, "encoder", teacher).get_weights())


def _correlation(predicted: np.ndarray, expected: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(np.nan_to_num(spearmanr(predicted, expected).statistic))


def _check(
    students: Sequence[Student], validation_scores: np.ndarray, settings: TransEncoder
) -> None:
    names = [student.name for student in students]
    if not students or len(set(names)) != len(names):
        raise ValueError(f"Expected students of different names, received {names}.")
    if settings.cycles < 1:
        raise ValueError(f"cycles: expected 1 or more, received {settings.cycles}.")
    if not settings.standard and all(student.cross is None for student in students):
        raise ValueError("Expected a student with a cross-encoder, received none.")
    if not settings.refresh and any(student.cross is None for student in students):
        raise ValueError(
            "Expected a cross-encoder for each student, because refresh=False copies weights from "
            "one kind to the other. Leave out students without one, or set refresh=True."
        )
    sizes = {len(student.pairs) for student in students}
    if len(sizes) > 1 or 0 in sizes:
        raise ValueError(f"Expected the same pairs for all students, received numbers {sizes}.")
    for student in students:
        if len(student.validation) != len(validation_scores):
            raise ValueError(
                f"{student.name}: expected {len(validation_scores)} validation pairs, one for each "
                f"score, received {len(student.validation)}."
            )


def _check_same_settings(
    folder: Path, students: Sequence[Student], settings: TransEncoder, seed: int
) -> None:
    """Writes the settings of the run, or compares them with the written ones."""
    path = folder / "settings.json"
    facts = {
        "settings": dataclasses.asdict(settings) | {"cycles": None},  # A later run may have more.
        "students": [student.name for student in students],
        "pairs": len(students[0].pairs),
        "seed": seed,
    }
    if path.exists():
        check_unchanged(path, facts)
    else:
        write_json(path, facts)
