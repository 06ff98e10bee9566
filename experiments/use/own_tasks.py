"""USE-DAN on the paper's three tasks without a teacher: each task, all three, and the start.

    python -m experiments.use.own_tasks --data DATA --out runs/own_tasks
    python -m experiments.use.own_tasks --variant table --data DATA --out runs/own_tasks_table

The tasks are those of `use_dan_en`, on novels, dialogues and inference pairs, without sentences of
the test sets. `--variant table` trains each of them alone, all three, and none, with three seeds,
and scores each on data that was not used for choices: STS test sets, and transfer with SentEval's
usual settings.

Without a teacher, the dense layers must keep their random initial weights, and only the table of
words is trained. A random network keeps different inputs apart, and training all layers destroys
this before it learns anything better: an earlier ablation of `use_dan_en`, which trained both at
the learning rate of the teacher's task, ended at 12 to 28. `--variant unfrozen` trains all layers
as the paper does, at the learning rate of `use-st5 train` for a USE-DAN; it is a tenth of the rate
for the table alone, and the best of four by STS-B dev after 1,200 steps. `--variant bigrams` has
the words and as many bi-grams as `use_dan_en`. `--variant weighed` starts with words that are
weighted by their rank.

Measured (STS-B dev Pearson x 100), each row in half an hour on one core beside other work,
skip_thought in over an hour: untrained 54.4 with seed 0; with three seeds skip_thought 51.5 ± 0.9,
input_response 69.6 ± 0.7, inference 68.1 ± 0.6 and three_tasks 70.5 ± 0.7. With
`--steps 10000` and seed 0 input_response 66.8, inference 69.3, three_tasks 69.4,
weighed_three_tasks 69.7; weighed_untrained 72.5. Three seeds with `--steps 1200`: untrained
54.0 ± 1.1, skip_thought 49.4 ± 2.0, input_response 60.3 ± 0.4, inference 64.5 ± 0.7, three_tasks
61.1 ± 1.3, weighed_untrained 73.2 ± 0.6, weighed_three_tasks 65.8 ± 1.0.
The README discusses these results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras

from experiments.ablation import Ablation
from experiments.bundled_models import use_dan_en
from experiments.bundled_models.word_weights import weigh_words
from experiments.command import main
from experiments.corpus_tasks import (
    STEPS_PER_CALL,
    CorpusTask,
    Material,
    Stage,
    open_tasks,
    prepare_tasks,
    train_stages,
)
from experiments.held_out import held_out_sentences
from experiments.run import Run, Scores, read_json
from experiments.stsb_dev import stsb_development
from use_st5 import SentenceEncoder, TrainableEncoder
from use_st5.data import DataFolder
from use_st5.evaluation import evaluate, select_tasks, with_data
from use_st5.models import USEDAN
from use_st5.tokenizers import NGramTokenizer, NGramVocabulary, build_vocabulary
from use_st5.training import TrainingArguments

NUM_UNIGRAMS, NUM_BIGRAMS = 30_000, use_dan_en.VOCABULARY.num_bigrams
METADATA = {"languages": ["en"], "license": "Apache-2.0"}
# The tasks of the USE paper's Table 2 and the STS sets; those without data are left out.
FURTHER_TASKS = "stsb,sts12,sts13,sts14,sts15,sts16,sickr,mr,cr,subj,mpqa,trec,sst2"
# Inference and dialogues have a larger share of the steps than in `use_dan_en`, in smaller batches.
TASKS = (
    dataclasses.replace(use_dan_en.SKIP_THOUGHT, weight=0.1, batch_size=64),
    dataclasses.replace(use_dan_en.INPUT_RESPONSE, weight=0.45, batch_size=256),
    dataclasses.replace(use_dan_en.INFERENCE, weight=0.45, batch_size=256),
)
# These have other names, because the names of tasks identify prepared examples.
BIGRAM_TASKS = tuple(dataclasses.replace(task, name=f"{task.name}_bigrams") for task in TASKS)


def read_by_encoder(material: Material) -> Iterator[str]:
    """The texts that the encoder reads in training."""
    for task in TASKS:
        for read, columns in task.data.sources(task.name, material).values():
            names = [name for name, column in columns.items() if column.kind == "ids"]
            for example in read():
                yield from (example[name] for name in names)


def further_scores(data: Path, model: Path) -> Scores:
    """The main score on each of `FURTHER_TASKS` whose data is there.

    Args:
        data: The data folder.
        model: Folder of the encoder.
    """
    tasks = with_data(select_tasks(FURTHER_TASKS), DataFolder(data))
    if not tasks:
        return {}
    record = evaluate(SentenceEncoder(model), tasks, data)
    return {name: result["scores"][result["main"]] for name, result in record.tasks.items()}


def drawn_model(tokenizer: NGramTokenizer) -> USEDAN:
    """A model with random weights, and with a row for each of the vocabulary's ids."""
    model = USEDAN.from_preset("use_dan_en", num_embeddings=tokenizer.vocabulary.size)
    model.build()
    return model


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnTasks:
    """A USE-DAN that learns from its own tasks.

    Attributes:
        tasks: The tasks; without any, the model keeps its random weights.
        args: Settings of the training; Adam is that of `use-st5 train`.
        num_bigrams: Number of bi-grams in addition to the words.
        weighed: Whether rare words weigh more in the mean of the initial model.
    """

    tasks: Sequence[CorpusTask] = TASKS
    args: TrainingArguments = TrainingArguments(
        learning_rate=1e-3,
        steps=20_000,
        steps_per_execution=STEPS_PER_CALL,
        evaluation_steps=1_000,
        train_only="embedding",
    )
    num_bigrams: int = 0
    weighed: bool = False

    def run(self, data: Path, output: Path, **options: Any) -> Scores:
        """Counts words, prepares arrays, trains, exports, scores on the development split of STS-B.

        Args:
            data: As in `Run`.
            output: As in `Run`.
            **options: As in `Run`.
        """
        run = Run(data, output, **options)
        with run.begun():
            score = stsb_development(run.data)
            material = Material(run.data, held_out_sentences(run.data))
            tokenizer = self.tokenizer(run, material)
            if "prepare" in run.parts:
                prepare_tasks(run, self.tasks, tokenizer, material)
            if "train" in run.parts:
                self._train(run, tokenizer, score)
            if "export" not in run.parts:
                return {}
            encoder = TrainableEncoder(
                run.kept(),
                tokenizer,
                name="use_dan_own_tasks",
                metadata=read_json(run.output / "training.json"),
            )
            scores = score(encoder.encode)
            encoder.export(run.output / "model", precision="int8")
            return run.write("scores.json", scores)

    def tokenizer(self, run: Run, material: Material) -> NGramTokenizer:
        """A tokenizer of the words and bi-grams of the training texts, counted once and kept."""
        name = "vocabulary_bigrams.txt" if self.num_bigrams else "vocabulary.txt"
        if not (path := run.prepared / name).exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            build_vocabulary(
                read_by_encoder(material),
                num_unigrams=NUM_UNIGRAMS,
                num_bigrams=self.num_bigrams,
                unigram_buckets=500,
            ).save(path)
        return NGramTokenizer(NGramVocabulary.load(path))

    def _train(self, run: Run, tokenizer: NGramTokenizer, score: Any) -> None:
        arrays = open_tasks(run, self.tasks)
        keras.utils.set_random_seed(run.seed)
        with run.scope():
            model = drawn_model(tokenizer)
            if self.weighed:
                weigh_words(model, tokenizer.vocabulary)
        if self.tasks:
            encoder = TrainableEncoder(model, tokenizer)
            options = {"evaluate": score, "monitor": "stsb_dev_pearson", "restore_best": False}
            stage = Stage(tasks=self.tasks, args=self.args)
            train_stages(run, encoder, [stage], [arrays], **options)
        run.keep(model)
        tasks = [task.name for task in self.tasks]
        run.write("training.json", {**METADATA, "seed": run.seed, "tasks": tasks})


EXPERIMENT = OwnTasks()
WEIGHED = OwnTasks(weighed=True)
UNFROZEN = OwnTasks(args=dataclasses.replace(EXPERIMENT.args, learning_rate=1e-4, train_only=None))
BIGRAMS = OwnTasks(tasks=BIGRAM_TASKS, num_bigrams=NUM_BIGRAMS)
VARIANTS: dict[str, OwnTasks | Ablation] = {
    "weighed": WEIGHED,
    "unfrozen": UNFROZEN,
    "bigrams": BIGRAMS,
    "table": Ablation(
        rows={
            "untrained": OwnTasks(tasks=()),
            **{task.name: OwnTasks(tasks=(task,)) for task in TASKS},
            "three_tasks": EXPERIMENT,
            "weighed_untrained": dataclasses.replace(WEIGHED, tasks=()),
            "weighed_three_tasks": WEIGHED,
            "unfrozen_three_tasks": UNFROZEN,
            "bigrams_untrained": dataclasses.replace(BIGRAMS, tasks=()),
            "bigrams_three_tasks": BIGRAMS,
        },
        further=further_scores,
    ),
}


if __name__ == "__main__":
    main(EXPERIMENT, VARIANTS)
