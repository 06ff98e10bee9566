"""Sentence-T5 in its two stages: questions with answers, then inference triplets.

    python -m experiments.sentence_t5.pretrain --data DATA --out runs/pretrain_t5
    python -m experiments.sentence_t5.two_stage --data DATA --out runs/sentence_t5

This is the training of Ni et al. 2021 (section 4.3) on the T5 in the folder `pretrain_t5` beside
the output folder: Adafactor with decay rate 0.8 and a rate that falls linearly to 0 after a tenth
of the steps, temperature 0.01, each batch from one data set. DATA holds the English corpora of
`experiments.corpora` and, for the scores, the STS Benchmark (only its development split is used).

Measured on two shared cores of an EPYC (Zen 4), three seeds: 3 minutes of CPU time (5 of wall
time), Spearman's correlation on STS-B's development split 57.79 ± 0.55, not more than triplets
alone give; the text below the table explains this. These are batches, rates and steps for two
cores. `--variant published` has the paper's on the same small corpora: 32,500 passes over 61,524
pairs, so it does not reproduce the paper. `--pretrained FOLDER` names another T5, such as a larger
one: any folder with a `t5.keras`. The other variants are the rows of the paper's Table 3. The
stages also run under JAX without TensorFlow; a machine with TensorFlow does the other parts:

    python -m experiments.sentence_t5.two_stage --part prepare --data DATA --out runs/sentence_t5
    KERAS_BACKEND=jax python -m experiments.sentence_t5.two_stage --part train --out OUT
    python -m experiments.sentence_t5.two_stage --part export --data DATA --out runs/sentence_t5

`--variant table_3` trains the six rows of the paper's Table 3 on one pre-trained T5, with three
seeds each. `table.md` then gives mean and standard deviation over the seeds on the development
split of the STS Benchmark; complete runs are not repeated.

Measured on two shared cores of an EPYC (Zen 4), 19 minutes of CPU time after the 16 of
pre-training (correlations x 100; the last column has the paper's results of a Base model on STS-B's
test split):

| row | Pearson | Spearman | paper |
|---|---|---|---|
| raw_first | 23.22 ± 0.00 | 25.45 ± 0.00 | 16.71 |
| raw_mean | 31.51 ± 0.00 | 36.19 ± 0.00 | 57.51 |
| raw_decoder | 28.63 ± 0.00 | 33.41 ± 0.00 | 9.45 |
| nli_mean | 56.91 ± 0.80 | 58.27 ± 0.87 | 84.49 |
| nli_decoder | 30.43 ± 4.66 | 33.33 ± 4.93 | 84.98 |
| qa_nli_mean | 56.21 ± 0.32 | 57.79 ± 0.55 | 86.04 |

Two of the paper's results hold: the mean is the best of the raw vectors, and triplets improve it
greatly. Others do not: the answers before the triplets have no effect (12,800 of them, from 61,500
pairs that are mostly trivia and medicine, instead of 2 billion), and the decoder, which learned
little from 4.5 million tokens, does not learn to pool in 150 steps. The results do not come from
pre-training either: a T5 with random weights has 53.61 raw (Spearman, mean of its outputs, near to
a mean of random word vectors) and 58.48 ± 1.89 after the same triplets. The raw rows depend on no
seed, and the pre-training has only one; the learning rate was chosen on the split that is shown.
The training works, but a model of a quarter of an hour is not good enough to ship.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import keras

from experiments.ablation import Ablation
from experiments.command import main
from experiments.corpora import MEDQUAD, STACK_EXCHANGE, TRIVIA, inference_triplets
from experiments.corpus_tasks import (
    STEPS_PER_CALL,
    CorpusTask,
    Examples,
    Material,
    Stage,
    open_tasks,
    prepare_tasks,
    train_stages,
)
from experiments.published_corpus import Example
from experiments.run import Options, Run, Scores
from experiments.sentence_t5.pretrain import DTYPE, MODEL_NAME, XLA
from use_st5._remote_files import as_written, exists, open_local
from use_st5.data import PreparedColumn
from use_st5.losses import ContrastiveLoss
from use_st5.models import SentenceT5
from use_st5.models.t5.sentence_t5 import PROJECTION_DIM, Pooling
from use_st5.training import TrainingArguments

# Modules that need TensorFlow are imported in the functions that use them: training works without.

PAIR = ("anchor", "positive")
TRIPLET = (*PAIR, "negative")
# The limit for a text in training, as in T5: the end-of-sentence token counts, and is kept. Most
# medical and Stack Exchange answers are cut; the paper does not give its own limit.
MAX_TOKENS = 24
# Equation 2, in both directions: the loss also finds the question of an answer.
PAIRS_LOSS = partial(ContrastiveLoss, temperature=0.01, bidirectional=True, hard_negatives=False)
TRIPLETS_LOSS = partial(PAIRS_LOSS, hard_negatives=True)
METADATA = {"languages": ["en"], "license": "Apache-2.0"}


def _task(
    name: str,
    loss: Callable[[], ContrastiveLoss],
    read: Callable[[Path], Iterable[Example]],
    columns: tuple[str, ...],
) -> CorpusTask:
    # The width is the same in every data set, so that one compiled step serves all.
    ids = PreparedColumn("token_ids", max_tokens=MAX_TOKENS)
    data = Examples(read, dict.fromkeys(columns, ids))
    return CorpusTask(name=name, loss=loss, data=data, batch_size=64)


# Questions and their answers; premises, each with an entailed and a contradicting hypothesis.
ANSWERS = (
    _task("medical", PAIRS_LOSS, MEDQUAD.examples, PAIR),
    _task("trivia", TRIPLETS_LOSS, TRIVIA.examples, TRIPLET),
    _task("stack_exchange", PAIRS_LOSS, STACK_EXCHANGE.examples, PAIR),
)
TRIPLETS = (_task("nli", TRIPLETS_LOSS, inference_triplets, TRIPLET),)


def stage(
    name: str,
    tasks: Sequence[CorpusTask],
    *,
    steps: int,
    batch_size: int,
    pieces: int,
    learning_rate: float,
) -> Stage:
    """A training on data sets that are drawn by their sizes.

    Args:
        name: The name of the folder of its checkpoints.
        tasks: The data sets.
        steps: Optimizer steps.
        batch_size: Examples of a step.
        pieces: The number of parts of a batch, which are encoded one after the other (GradCache).
        learning_rate: Adafactor's rate; it falls linearly to 0 after a tenth of the steps.
    """
    args = TrainingArguments(
        optimizer="adafactor",
        learning_rate=learning_rate,
        batch_size=batch_size,
        micro_batch_size=batch_size // pieces,
        steps=steps,
        steps_per_execution=STEPS_PER_CALL,
        evaluation_steps=500,
        jit_compile=XLA,
    )
    tasks = [dataclasses.replace(task, batch_size=batch_size) for task in tasks]
    return Stage(name=name, tasks=tasks, args=args)


def pretrained_folder(pretrained: Path | None, output: Path) -> Path:
    """The folder that `pretrain` wrote: the given one, or else `pretrain_t5` beside the output.

    Raises:
        FileNotFoundError: There is no model in it.
    """
    folder = pretrained or output.parent / "pretrain_t5"
    if not exists(folder / MODEL_NAME):
        raise FileNotFoundError(
            f"Expected a pre-trained T5, {as_written(folder / MODEL_NAME)}. Make one: "
            "python -m experiments.sentence_t5.pretrain --data DATA "
            f"--out {as_written(folder)}"
        )
    return folder


def sentence_encoder(folder: Path, *, pooling: Pooling, projection_dim: int | None) -> SentenceT5:
    """A Sentence-T5 with the weights of a pre-trained T5; a projection is new."""
    with open_local(folder / MODEL_NAME) as path:
        t5 = keras.saving.load_model(path, compile=False)
    model = SentenceT5(t5.config, pooling=pooling, projection_dim=projection_dim, dtype=DTYPE)
    model.build()
    for name in ("embedding", "encoder", "decoder"):
        if (part := getattr(model, name)) is not None:
            part.set_weights(getattr(t5, name).get_weights())
    return model


# With so few steps the paper's rate hardly moves the weights: after 50 steps of 64 triplets, on a
# T5 of 400 steps, Spearman's correlation was 40.9 with 0.01, 50.4 with 0.03 and 39.0 with 0.1; on
# one of 200 steps, 32.4 with 0.001 and 36.4 with 0.01.
QA = stage("qa", ANSWERS, steps=100, batch_size=128, pieces=1, learning_rate=3e-2)
NLI = stage("nli", TRIPLETS, steps=150, batch_size=64, pieces=1, learning_rate=3e-2)
# The paper's batches and rate (section 4.3). It does not give its numbers of steps: these are one
# pass over its 2 billion pairs, and three over its 275,601 triplets.
PUBLISHED = (
    stage("qa", ANSWERS, steps=976_560, batch_size=2048, pieces=16, learning_rate=1e-3),
    stage("nli", TRIPLETS, steps=1_610, batch_size=512, pieces=4, learning_rate=1e-3),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoStage:
    """A Sentence-T5, trained in stages.

    Attributes:
        stages: The stages in order; without any, the T5's own outputs are pooled.
        pooling: How the outputs become a vector.
        projection_dim: The length of the vector; None: no projection (section 6.1).
        expected: The measured scores.
    """

    stages: tuple[Stage, ...] = (QA, NLI)
    pooling: Pooling = "mean"
    projection_dim: int | None = PROJECTION_DIM
    expected: dict[str, float] = dataclasses.field(default_factory=dict)

    def run(
        self,
        data: Path,
        output: Path,
        *,
        pretrained: Path | None = None,
        **options: Unpack[Options],
    ) -> Scores:
        """Prepares the corpora, trains, exports and scores on the development split of STS-B.

        Args:
            data: As in `Run`; the options are also as there.
            output: As in `Run`.
            pretrained: Folder of a pre-trained T5; by default `pretrain_t5` beside the output.
        """
        run = Run(data, output, **options)
        with run.begun():
            if run.does("train"):
                pretrained = pretrained_folder(pretrained, output)
            if run.does("prepare"):
                self._prepare(run)
            if run.does("train") and pretrained:
                self._train(run, pretrained)
            return self._export(run) if run.does("export") else {}

    def _prepare(self, run: Run) -> None:
        from experiments.held_out import held_out_sentences
        from experiments.stsb_dev import stsb_development
        from use_st5.tokenizers import SentencePieceTokenizer

        stsb_development(run.data)  # A missing file is reported before the work begins.
        material = Material(run.data, held_out_sentences(run.data))
        for stage in self.stages:
            prepare_tasks(run, stage.tasks, SentencePieceTokenizer(), material)

    def _train(self, run: Run, pretrained: Path) -> None:
        arrays = [open_tasks(run, stage.tasks) for stage in self.stages]
        keras.utils.set_random_seed(run.seed)
        with run.scope():
            model = sentence_encoder(
                pretrained, pooling=self.pooling, projection_dim=self.projection_dim
            )
        train_stages(run, model, self.stages, arrays)
        facts: dict[str, Any] = {**METADATA, "pooling": self.pooling}
        facts["tasks"] = [task.name for stage in self.stages for task in stage.tasks]
        run.write_facts(**facts, stages=[stage.name for stage in self.stages])

    def _export(self, run: Run) -> Scores:
        from experiments.stsb_dev import stsb_development
        from use_st5 import TrainableEncoder
        from use_st5.tokenizers import SentencePieceTokenizer

        facts = run.facts()
        encoder = TrainableEncoder(
            run.kept(), SentencePieceTokenizer(), name="sentence_t5_mini_en", metadata=facts
        )
        scores = stsb_development(run.data)(encoder.encode)
        encoder.export(run.output / "model")
        return run.write_scores(scores)


EXPERIMENT = TwoStage(expected={"stsb_dev_pearson": 0.5621, "stsb_dev_spearman": 0.5779})
ROWS = {
    "raw_first": TwoStage(stages=(), pooling="first", projection_dim=None),
    "raw_mean": TwoStage(stages=(), pooling="mean", projection_dim=None),
    "raw_decoder": TwoStage(stages=(), pooling="decoder", projection_dim=None),
    "nli_mean": TwoStage(stages=(NLI,), pooling="mean"),
    "nli_decoder": TwoStage(stages=(NLI,), pooling="decoder"),
    "qa_nli_mean": TwoStage(stages=(QA, NLI), pooling="mean"),
}
VARIANTS: dict[str, TwoStage | Ablation] = {
    "published": TwoStage(stages=PUBLISHED),
    **ROWS,
    "table_3": Ablation(rows=ROWS),
}


if __name__ == "__main__":
    main(EXPERIMENT, VARIANTS)
