"""Preparation, training and export, which all bundled models share."""

from __future__ import annotations

import abc
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import keras

from experiments.bundled_models.teacher import HINT_DIM, TEACHER_DIM
from experiments.bundled_models.teacher_tasks import need_teacher, scored_pairs
from experiments.bundled_models.teacher_text import TEXT, TeacherText, TextWithVectors
from experiments.corpus_tasks import (
    CorpusTask,
    Examples,
    Stage,
    open_tasks,
    prepare_tasks,
    train_stages,
)
from experiments.run import Run, Scores, read_json, write_json
from experiments.stsb_dev import stsb_development
from use_st5.data import PreparedColumn
from use_st5.losses import ScoredPairLoss, TeacherLoss

if TYPE_CHECKING:  # It needs TensorFlow, and the part "train" does not.
    from use_st5 import TrainableEncoder

# The teachers' vectors, and the hints from an inner layer of one of them.
TEACHER_LOSS = partial(
    TeacherLoss,
    teacher_dim=TEACHER_DIM,
    similarity_weight=10.0,
    ranking_weight=1.0,
    temperature=0.1,
    hint_dim=HINT_DIM,
    hint_weight=1.5,
)
METADATA = {"languages": ["en"], "license": "Apache-2.0"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class BundledTraining(abc.ABC):
    """The training of a bundled model, which learns from teachers.

    Attributes:
        text: The text whose vectors the teachers compute.
    """

    name: ClassVar[str]
    max_length: ClassVar[int | None] = None
    # Further options of `Trainer`.
    trainer_options: ClassVar[Mapping[str, Any]] = {}
    text: TeacherText = TEXT

    @abc.abstractmethod
    def _stages(self) -> Sequence[Stage]:
        """The trainings, one after the other."""

    @abc.abstractmethod
    def _tokenizer(self, text: TextWithVectors) -> Any:
        """The encoder's tokenizer."""

    @abc.abstractmethod
    def _words(self, text: TextWithVectors) -> Sequence[str]:
        """The single words or pieces whose vectors initialize the table."""

    @abc.abstractmethod
    def _initial_model(self, words: Sequence[str], text: TextWithVectors, seed: int) -> keras.Model:
        """The model before the training."""

    def _finish(self, model: keras.Model, text: TextWithVectors) -> None:  # noqa: B027
        """Changes the trained model before its export; does nothing by default."""

    def run(
        self, data: Path, output: Path, *, teacher: Path | None = None, **options: Any
    ) -> Scores:
        """Prepares text and arrays, trains, exports, and scores on STS-B dev.

        Args:
            data: As in `Run`.
            output: As in `Run`.
            teacher: Folder of the teachers' vectors; by default `teacher` in `output`.
            **options: As in `Run`.
        """
        run, teacher = Run(data, output, **options), teacher or output / "teacher"
        text = self.text.opened(run, teacher)
        with run.begun():
            if "prepare" in run.parts:
                stsb_development(run.data)  # A missing file is reported before the work begins.
                prepare_tasks(run, self._tasks, self._tokenizer(text), text)
            if "prepare" in run.parts or "train" in run.parts:
                text.check(self._kept_words(run, text), sentences=need_teacher(self._tasks))
            if "train" in run.parts:
                self._train(run, text)
            return self._export(run, text) if "export" in run.parts else {}

    def _train(self, run: Run, text: TextWithVectors) -> None:
        stages = [stage for stage in self._stages() if stage.tasks]
        arrays = [open_tasks(run, stage.tasks, text) for stage in stages]
        keras.utils.set_random_seed(run.seed)
        with run.scope():
            encoder = self._encoder(run, text)
        options = {**self.trainer_options, **self._evaluation(run)}
        train_stages(run, encoder, stages, arrays, **options)
        run.keep(encoder if isinstance(encoder, keras.Model) else encoder.model)
        tasks = [task.name for task in self._tasks]
        run.write("training.json", {**METADATA, "seed": run.seed, "tasks": tasks})

    @property
    def _tasks(self) -> list[CorpusTask]:
        """The tasks of all stages, each once; stages share their data by the task's name."""
        return [*{task.name: task for stage in self._stages() for task in stage.tasks}.values()]

    def _kept_words(self, run: Run, text: TextWithVectors) -> list[str]:
        """The table's words; "prepare" writes them, since they may come from a tokenizer."""
        path = run.prepared / "words.json"
        if not path.exists():
            write_json(path, {"words": [*self._words(text)]})
        return json.loads(path.read_text(encoding="utf-8"))["words"]

    def _encoder(self, run: Run, text: TextWithVectors) -> TrainableEncoder | keras.Model:
        """The encoder before the training; without TensorFlow, only its model."""
        model = self._initial_model(self._kept_words(run, text), text, run.seed)
        if keras.config.backend() != "tensorflow":
            return model
        return self._with_tokenizer(model, text)

    def _with_tokenizer(
        self, model: keras.Model, text: TextWithVectors, **options: Any
    ) -> TrainableEncoder:
        from use_st5 import TrainableEncoder

        tokenizer = self._tokenizer(text)
        return TrainableEncoder(model, tokenizer, max_length=self.max_length, **options)

    def _evaluation(self, run: Run) -> dict[str, Any]:
        """Options of `Trainer`'s evaluation; none without TensorFlow, which makes ids of texts."""
        if keras.config.backend() != "tensorflow":
            return {}
        return {"evaluate": stsb_development(run.data), "monitor": "stsb_dev_pearson"}

    def _export(self, run: Run, text: TextWithVectors) -> Scores:
        """Exports the encoder in int8, and writes its scores before the export."""
        facts, model = read_json(run.output / "training.json"), run.kept()
        self._finish(model, text)
        encoder = self._with_tokenizer(model, text, name=self.name, metadata=facts)
        scores = stsb_development(run.data)(encoder.encode)
        encoder.export(run.output / "model", precision="int8")
        return run.write("scores.json", scores)


def model_scores(data: Path, model: Path) -> Scores:
    """`split_scores` of an exported encoder, for the tables of `Ablation`.

    Args:
        data: Folder of SentEval's files.
        model: Folder of the encoder.
    """
    import use_st5  # These need TensorFlow and scikit-learn.
    from experiments.bundled_models.training_splits import split_scores

    return split_scores(data, use_st5.load(model).encode)


def in_small_batches(tasks: Iterable[CorpusTask]) -> list[CorpusTask]:
    """The tasks with batches of at most 128; two cores then take a second a step."""
    return [dataclasses.replace(task, batch_size=min(task.batch_size, 128)) for task in tasks]


def scored_task(ids: PreparedColumn, *, batch_size: int) -> CorpusTask:
    """CoSENT on the scored pairs of STS-B's training split.

    Args:
        ids: The kind of column of the encoder's ids of a sentence.
        batch_size: The number of pairs of a step.
    """
    columns = {"first": ids, "second": ids, "score": PreparedColumn("score")}
    return CorpusTask(
        name="scored",
        loss=partial(ScoredPairLoss, objective="cosent"),
        data=Examples(scored_pairs, columns),
        weight=0.02,
        batch_size=batch_size,
    )
