"""Sentence-T5 for English, the bundled model `st5_mini_en`.

The model is a T5 1.1 encoder of six layers over T5's own pieces, with mean pooling and the
projection to 768 dimensions (Ni et al. 2021, section 3.1). It has no T5 pre-training, because a few
minutes of an accelerator are not enough for it (`experiments.sentence_t5.two_stage`). It is trained
in the paper's two stages (section 3.3) with the paper's loss and temperature (equation 2):
questions with answers and dialogues, then inference triplets with hard negatives. In most steps it
learns instead from the teachers of `use_transformer_en`, with the same sentences.

    python -m experiments.bundled_models.st5_mini_en --data DATA --teacher TEACHER --out OUT

DATA holds the same files as for `use_dan_en`. The shipped model was trained on an H200 under JAX
(README of this folder): 575 seconds, while the runs of the ablation shared the device for four
minutes. The time on the device ended at step 32,120 of the second stage, with a tenth of the peak
learning rate. STS-B dev is 87.5 (Pearson). An earlier training with 2,000 and 11,000 steps had
85.9, also with twice the peak learning rate in the second stage.

Training starts near an average of the teachers' vectors of single pieces, as the training of
`use_transformer_en` starts near an average of those of single words.

The queries of attention have an eighth of the learning rate (`SlowQueries`). In the first trainings
all kernels had the same, and the attention became one-hot: on three sentences the mean entropy of
its weights was 0.09 to 0.36 nats in the six layers. With the lower learning rate it was 1.2 to 1.9
(measured once, by a script that was not kept, after 13,000 steps). Without it the scores on STS-B
dev were two points lower, and more steps did not help (Spearman 83.9 with 4,500 steps and a peak of
0.0005, 84.0 with 8,000 steps and 0.0008).

`--variant ablation` leaves out the teachers, the first stage or the second, on a sample of the
text: 240 steps a stage with small batches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from experiments.ablation import Ablation
from experiments.bundled_models.student import (
    NUM_SPECIAL,
    spelled_pieces,
    start_near_average,
    word_table,
)
from experiments.bundled_models.teacher_tasks import Related, TeacherSentences
from experiments.bundled_models.teacher_text import SHORT_TEXT, TextWithVectors
from experiments.bundled_models.training import (
    TEACHER_LOSS,
    BundledTraining,
    in_small_batches,
    model_scores,
    scored_task,
)
from experiments.command import main
from experiments.corpora import MEDQUAD, TRIVIA, dialogue_pairs, inference_triplets
from experiments.corpus_tasks import (
    STEPS_PER_CALL,
    CorpusTask,
    Examples,
    Stage,
)
from use_st5.data import PreparedColumn
from use_st5.losses import ContrastiveLoss
from use_st5.models import SentenceT5
from use_st5.training import Adam, TrainingArguments, adam_with_cosine

if TYPE_CHECKING:  # It needs TensorFlow.
    from use_st5.tokenizers import SentencePieceTokenizer

PRESET = "st5_mini_en"
DTYPE = "mixed_bfloat16"
IDS = PreparedColumn("token_ids", max_tokens=26)
PAIR = {"anchor": IDS, "positive": IDS}
TRIPLET = {**PAIR, "negative": IDS}
# A word has about 1.3 pieces, with its punctuation; a sentence ends with one more token.
LENGTHS = {"9_words": (1, 9, 17), "16_words": (10, 16, 27), "30_words": (17, 30, 44)}
RELATED_LENGTHS = LENGTHS | {"9_words": (4, 9, 17)}
LOWERCASE = 0.4
MAX_LENGTH = 128  # of the exported encoder: attention's cost grows with the square of the length


def dialogue_anchors(data: Path) -> Iterator[Mapping[str, Any]]:
    """Turns of dialogues and their answers."""
    for pair in dialogue_pairs(data):
        yield {"anchor": pair["input"], "positive": pair["response"]}


# The paper's temperature (section 4.3), in both directions as in its code.
CONTRASTIVE = partial(ContrastiveLoss, temperature=0.01, bidirectional=True)
WITH_NEGATIVES = partial(CONTRASTIVE, hard_negatives=True)


def _contrastive(
    name: str, loss: Any, read: Any, columns: Mapping[str, Any], *, every: int = 1
) -> CorpusTask:
    data = Examples(read, columns, every=every)
    return CorpusTask(name=name, loss=loss, data=data, weight=0.03, batch_size=128)


ANSWERS = (
    _contrastive("trivia", WITH_NEGATIVES, TRIVIA.examples, TRIPLET),
    _contrastive("medical", CONTRASTIVE, MEDQUAD.examples, PAIR),
    _contrastive("dialogues", CONTRASTIVE, dialogue_anchors, PAIR, every=3),
)
TRIPLETS = _contrastive("triplets", WITH_NEGATIVES, inference_triplets, TRIPLET)
TEACHER = CorpusTask(
    name="teacher",
    loss=TEACHER_LOSS,
    data=TeacherSentences(lengths=LENGTHS, ids="token_ids", hints=True, lowercase=LOWERCASE),
    weight=0.46,
    batch_size=1024,
    part_weights={"teacher_9_words": 0.7},
)
RELATED = CorpusTask(
    name="related",
    loss=TEACHER_LOSS,
    data=Related(lengths=RELATED_LENGTHS, ids="token_ids", hints=True, lowercase=LOWERCASE),
    weight=0.48,
    batch_size=1024,
)
SCORED = scored_task(IDS, batch_size=128)
TEACHERS = (TEACHER, RELATED)


# The root of the width of a head, T5's `key_value_dim` of 64.
QUERY_FACTOR = 8.0


class SlowQueries(Adam):
    """Adam with a lower rate for the kernels of attention's queries.

    T5 does not divide attention's scores by the root of a head's width. Instead the queries'
    kernels begin smaller by this factor. Adam's steps do not depend on the size of a kernel. With
    one rate for all kernels, the scores grow faster by this factor than in other Transformers.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """As in Keras; a variable of TensorFlow has no path, but a whole name."""
        if "/query/" in getattr(variable, "path", variable.name):
            learning_rate = learning_rate / QUERY_FACTOR
        super().update_step(gradient, variable, learning_rate)


def _arguments(steps: int) -> TrainingArguments:
    return TrainingArguments(
        optimizer=adam_with_cosine(1e-3, warmup_steps=1_000, adam=SlowQueries),
        steps=steps,
        steps_per_execution=STEPS_PER_CALL,
        evaluation_steps=5_000,
        jit_compile=False,
    )


QUESTIONS = Stage(name="questions", tasks=(*ANSWERS, *TEACHERS), args=_arguments(2_000))
INFERENCE = Stage(name="inference", tasks=(TRIPLETS, *TEACHERS, SCORED), args=_arguments(39_900))


@dataclasses.dataclass(frozen=True, kw_only=True)
class St5MiniEn(BundledTraining):
    """The training of `st5_mini_en`.

    Attributes:
        stages: The stages, trained one after the other.
    """

    name = PRESET
    max_length = MAX_LENGTH
    trainer_options: ClassVar = {"restore_best": False}
    stages: Sequence[Stage] = (QUESTIONS, INFERENCE)

    def _stages(self) -> Sequence[Stage]:
        return self.stages

    def _tokenizer(self, _text: TextWithVectors) -> SentencePieceTokenizer:
        from use_st5.tokenizers import SentencePieceTokenizer

        return SentencePieceTokenizer()

    def _words(self, _text: TextWithVectors) -> Sequence[str]:
        return spelled_pieces()

    def _initial_model(self, words: Sequence[str], text: TextWithVectors, seed: int) -> SentenceT5:
        """A model whose vectors are near the mean of the pieces' vectors."""
        model = SentenceT5.from_preset(PRESET, dtype=DTYPE)
        model.build()
        rows, dim = model.embedding.embeddings.shape
        table = word_table(text.vectors(words), rows=rows, dim=dim, first=NUM_SPECIAL, seed=seed)
        model.embedding.embeddings.assign(table)
        start_near_average(
            around=[model.projection],
            branches=(
                dense
                for block in model.encoder.blocks
                for dense in (block.attention.output_dense, block.feed_forward.outer)
            ),
            seed=seed,
        )
        return model


EXPERIMENT = St5MiniEn()


def _short(*stages: Stage, left_out: Sequence[CorpusTask] = ()) -> St5MiniEn:
    """A training on fewer texts in small batches, without some of the tasks."""
    small = [
        dataclasses.replace(
            stage,
            tasks=in_small_batches(task for task in stage.tasks if task not in left_out),
        )
        for stage in stages
    ]
    return St5MiniEn(stages=small, text=SHORT_TEXT)


ABLATION = Ablation(
    rows={
        "teachers": _short(Stage(tasks=TEACHERS, args=QUESTIONS.args)),
        "questions": _short(QUESTIONS),
        "inference": _short(INFERENCE),
        "no_teachers": _short(QUESTIONS, INFERENCE, left_out=TEACHERS),
        "two_stages": _short(QUESTIONS, INFERENCE),
    },
    steps=240,
    further=model_scores,
)
VARIANTS = {"ablation": ABLATION}


if __name__ == "__main__":
    main(EXPERIMENT, VARIANTS)
