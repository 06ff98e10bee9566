"""Trans-Encoder: bi- and cross-encoders that teach each other with their scores of pairs.

Liu et al. 2022, arXiv 2109.13059. A bi-encoder scores pairs of texts, a cross-encoder learns the
scores (section 2.2), scores the pairs anew, and the bi-encoder learns these (section 2.3): a cycle.
No pair has a label. Several models can do so side by side, each learning the mean of all their
scores (section 2.4). Nothing here reads a string: pairs come as ids, so that the course runs on
every backend and strategy that a training runs on.
"""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import keras
import numpy as np

from use_st5._files import atomic_path, sole_writer, write_json
from use_st5._records import read_record
from use_st5.losses.pair_logit_loss import PairLogitLoss
from use_st5.losses.scored_pair_loss import ScoredPairLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.models.inference import inference
from use_st5.training.arguments import STEPS_PER_EXECUTION, TrainingArguments
from use_st5.training.array_data import ArrayData
from use_st5.training.checkpoints import saving_quietly
from use_st5.training.frozen_parts import frozen_parts
from use_st5.training.optimizers import adamw
from use_st5.training.pair_scores import Embed, Kind, PairIds, scores, stacked, widths
from use_st5.training.run_checks import check_begun_with
from use_st5.training.schedules import LinearWarmup
from use_st5.training.trainer import Trainer, strategy_scope
from use_st5.training.trans_encoder import Learner, Lesson, Taught, TransEncoder

# Of each model: what is there when it is done, and before.
_BEST, _CHECKPOINTS = "best", "checkpoints"
_WEIGHTS, _FACTS = "model.weights.h5", "development.json"
_METRIC = "spearman"


def teach(
    learners: Sequence[Learner],
    gold: np.ndarray,
    folder: Path,
    *,
    course: TransEncoder | None = None,
    seed: int = 0,
    progress: bool = True,
    strategy: Any = None,
    steps_per_execution: int = STEPS_PER_EXECUTION,
    jit_compile: bool | None = None,
) -> list[Taught]:
    """Runs the cycles of Trans-Encoder; an interrupted run continues to the same weights.

    Args:
        learners: One for self-distillation, several for mutual distillation.
        gold: float `[validation pairs]`, the scores of the validation pairs.
        folder: The folder of weights and checkpoints.
        course: The settings; None: the paper's.
        seed: Of new weights, dropout and the order of the pairs.
        progress: Whether to show progress on the standard error output.
        strategy: As in `Trainer`; `bi` and `cross` of the learners are called in its scope.
        steps_per_execution: As in `TrainingArguments`.
        jit_compile: As in `TrainingArguments`.

    Returns:
        All models, in the order in which they were made; `best` finds the ones to keep.

    Raises:
        ValueError: Learners and pairs do not fit each other, or the folder has other settings.
        BlockingIOError: Another process is writing the folder.
    """
    course = course or TransEncoder()
    _check(learners, gold, course)
    with sole_writer(folder, inside=True):
        _check_same_course(folder, learners, course, seed)
        args = TrainingArguments(steps_per_execution=steps_per_execution, jit_compile=jit_compile)
        options = {"strategy": strategy, "progress": progress}
        return _Course(learners, gold, folder, course, seed, args, options).all()


class _Model(NamedTuple):
    """A model, and the same compiled, which is done once."""

    keras: keras.Model
    embed: Embed

    @classmethod
    def of(cls, model: keras.Model) -> Self:
        return cls(model, inference(model))


class _Course:
    """One run of the cycles: the models that exist, and the next one."""

    def __init__(
        self,
        learners: Sequence[Learner],
        gold: np.ndarray,
        folder: Path,
        course: TransEncoder,
        seed: int,
        args: TrainingArguments,
        options: Mapping[str, Any],
    ) -> None:
        self._learners = learners
        self._gold = gold
        self._folder = folder
        self._course = course
        self._seed = seed
        self._args = args
        self._options = options
        self._taught: list[Taught] = []

    def all(self) -> list[Taught]:
        bis = [_Model.of(self._made(learner, "bi")) for learner in self._learners]
        for learner, start in zip(self._learners, bis, strict=True):
            spearman = _correlation(scores(start.embed, "bi", learner.development), self._gold)
            self._taught.append(Taught(learner.name, "bi", 0, spearman, 0, None))
        for cycle in range(1, self._course.cycles + 1):
            teachers = bis
            kind: Kind = "bi"
            if not self._course.standard:
                teachers, kind = self._half(cycle, "cross", bis, "bi"), "cross"
            bis = self._half(cycle, "bi", teachers, kind)
        return self._taught

    def _half(
        self, cycle: int, kind: Kind, teachers: Sequence[_Model], of_kind: Kind
    ) -> list[_Model]:
        """One half of a cycle: trains all models of one kind on the scores of the other."""
        pupils = [each for each in self._learners if kind == "bi" or each.cross is not None]
        masters = [each for each in self._learners if of_kind == "bi" or each.cross is not None]
        labels: np.ndarray | None = None
        models = []
        for number, learner in enumerate(pupils):
            model = _Model.of(self._made(learner, kind, cycle))
            home = self._folder / f"cycle_{cycle}" / f"{kind}_{learner.name}"
            if not (home / _BEST).exists():
                if labels is None:
                    given = zip(teachers, masters, strict=True)
                    views = [scores(each.embed, of_kind, by.pairs) for each, by in given]
                    labels = np.mean(views, axis=0)
                if not self._course.refresh:
                    _continue(model.keras, kind, teachers[masters.index(learner)].keras)
                self._train(learner, kind, model, labels, home, self._draw(cycle, kind, number))
            # What goes on is the best alone; a course of large models would fill the disk.
            shutil.rmtree(home / _CHECKPOINTS, ignore_errors=True)
            model.keras.load_weights(home / _BEST / _WEIGHTS)
            self._taught.append(_taught(home / _BEST, learner.name, kind, cycle))
            models.append(model)
        return models

    def _made(self, learner: Learner, kind: Kind, cycle: int = 0) -> keras.Model:
        make = learner.cross if kind == "cross" and learner.cross else learner.bi
        keras.utils.set_random_seed(self._draw(cycle, kind, self._learners.index(learner)))
        strategy = self._options["strategy"]
        with strategy_scope(strategy):
            return make()

    def _draw(self, cycle: int, kind: Kind, number: int) -> int:
        """A seed of its own for each training."""
        parts = [self._seed, cycle, ("bi", "cross").index(kind), number]
        return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)

    def _train(
        self,
        learner: Learner,
        kind: Kind,
        model: _Model,
        labels: np.ndarray,
        home: Path,
        seed: int,
    ) -> None:
        lesson, rate = self._course.to_cross, 1.0
        if kind == "bi":
            lesson, rate = self._course.to_bi, learner.bi_rate
        loss, arrays = _material(kind, lesson, learner.pairs, labels)
        longest = max(each.shape[1] for each in arrays.values() if each.ndim > 1)
        data = ArrayData(arrays, buckets=widths(longest))
        per_call = self._args.steps_per_execution or 1
        batch_size = min(lesson.batch_size, len(data))
        wanted = lesson.steps or lesson.epochs * len(data) / batch_size
        args = dataclasses.replace(
            self._args,
            optimizer=functools.partial(_optimizer, lesson, rate),
            batch_size=batch_size,
            # What a call makes divides all numbers of steps.
            steps=per_call * max(1, round(wanted / per_call)),
            evaluation_steps=self._course.evaluate_every,
            evaluate_epochs=lesson.steps is None,
            seed=seed,
        )
        with frozen_parts(model.keras.encoder if kind == "cross" else model.keras, lesson.freeze):
            history = Trainer(
                model.keras,
                {f"{kind}_{learner.name}": (data, loss)},
                args,
                evaluate=lambda _: {
                    _METRIC: _correlation(
                        scores(model.embed, kind, learner.development), self._gold
                    )
                },
                # No bi-encoder is handed on that is worse than what it began with.
                evaluate_start=kind == "bi",
                folder=home / _CHECKPOINTS,
                **self._options,
            ).train()
        facts = {_METRIC: history.best_score, "step": history.best_step}
        with atomic_path(home / _BEST) as temporary:
            temporary.mkdir()
            with saving_quietly():
                model.keras.save_weights(temporary / _WEIGHTS)
            write_json(temporary / _FACTS, facts)


def _optimizer(lesson: Lesson, rate: float, steps: int) -> keras.optimizers.Optimizer:
    """AdamW (section 4); decay and clipping are those of sentence-transformers, as in its code."""
    return adamw(
        LinearWarmup(rate * lesson.learning_rate, steps, warmup_share=lesson.warmup_share),
        weight_decay=0.01,
        global_clipnorm=1.0,
    )


def _taught(best: Path, learner: str, kind: Kind, cycle: int) -> Taught:
    facts = read_record(best / _FACTS, dict[str, Any], remedy="Give another folder.")
    return Taught(learner, kind, cycle, facts[_METRIC], facts["step"], best / _WEIGHTS)


def _material(
    kind: Kind, lesson: Lesson, pairs: PairIds, labels: np.ndarray
) -> tuple[TaskLoss, dict[str, np.ndarray]]:
    """The loss of a kind, and the columns that it reads."""
    if kind == "bi":
        arrays = {"first": pairs.first, "second": pairs.second, "score": labels}
        return ScoredPairLoss(objective=lesson.objective), arrays
    if not lesson.both_orders:
        return PairLogitLoss(objective=lesson.objective), {"pair": pairs.joined, "score": labels}
    arrays = {
        "pair": stacked(pairs.joined, pairs.turned),
        "score": np.concatenate([labels, labels]),
    }
    return PairLogitLoss(objective=lesson.objective), arrays


def _continue(model: keras.Model, kind: Kind, teacher: keras.Model) -> None:
    """Starts from the weights of the other kind: a cross-encoder from those of its encoder."""
    if kind == "cross":
        model.encoder.set_weights(teacher.get_weights())
    else:
        model.set_weights(getattr(teacher, "encoder", teacher).get_weights())


def _correlation(predicted: np.ndarray, gold: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(np.nan_to_num(spearmanr(predicted, gold).statistic))


def _check(learners: Sequence[Learner], gold: np.ndarray, course: TransEncoder) -> None:
    names = [learner.name for learner in learners]
    if not learners or len(set(names)) != len(names):
        raise ValueError(f"Expected learners of different names, received {names}.")
    if course.cycles < 1:
        raise ValueError(f"cycles: expected 1 or more, received {course.cycles}.")
    if not course.standard and all(learner.cross is None for learner in learners):
        raise ValueError("Expected a learner with a cross-encoder, received none.")
    if not course.refresh and any(learner.cross is None for learner in learners):
        raise ValueError(
            "Expected a cross-encoder for each learner, because refresh=False copies weights from "
            "one kind to the other. Leave out learners without one, or set refresh=True."
        )
    sizes = {len(learner.pairs) for learner in learners}
    if len(sizes) > 1 or 0 in sizes:
        raise ValueError(f"Expected the same pairs for all learners, received numbers {sizes}.")
    for learner in learners:
        if len(learner.development) != len(gold):
            raise ValueError(
                f"{learner.name}: expected {len(gold)} validation pairs, one for each score, "
                f"received {len(learner.development)}."
            )


def _check_same_course(
    folder: Path, learners: Sequence[Learner], course: TransEncoder, seed: int
) -> None:
    """Writes what the course is, or holds it against what is written."""
    path = folder / "course.json"
    facts = {
        "course": dataclasses.asdict(course) | {"cycles": None},  # More of them may follow.
        "learners": [learner.name for learner in learners],
        "pairs": len(learners[0].pairs),
        "seed": seed,
    }
    if path.exists():
        check_begun_with(path, facts)
    else:
        write_json(path, facts)
