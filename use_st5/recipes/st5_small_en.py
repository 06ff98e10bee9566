"""Sentence-T5 for English, taught by a teacher: `st5_small_en`.

A T5 encoder of four layers over T5's own pieces, mean pooling and the projection to 768 dimensions
(Ni et al. 2021, section 3.1), without T5's pre-training: hours of two cores do not carry it
(`sentence_t5_ablation`). Instead it learns from all-MiniLM-L6-v2, by the sentences of
`use_transformer_en` and its related ones, with hints for these alone, beside Sentence-T5's own loss
(equation 2) on trivia with its wrong answers and on inference triplets.

    python -m use_st5.recipes._embed_teacher --data DATA --to TEACHER --recipe st5_small_en
    use-st5 train st5_small_en --data DATA --teacher TEACHER --out runs/st5_small_en

DATA holds the corpora of `_permissive_corpora.py` and, for the development metric, the STS
Benchmark (its development split alone is scored). Written are `checkpoints/`, `model/` (the
SavedModel, int8 table) and `scores.json`.

Training starts near an average of the teacher's vectors of single pieces, as that of
`use_transformer_en` does of single words.

Measured with seed 0 on two cores of a Xeon with AMX that tests used now and then: 51 minutes, 8 GB
of memory, STS-B dev Pearson 0.8384 and Spearman 0.8350, 33.2 MB; 25 minutes for the teacher and 3
for the arrays before. `use-st5 evaluate` of the model, its test sets read once: mean Spearman of
five STS sets 74.4, SentEval's mean of five 78.8, TREC 82.4. It does not ship: `use_transformer_en`
is as fast and has 77.5, 81.0 and 88.8 (the README has both, and `use_dan_en`). What may hold it
back: hints for the related sentences alone, and one sum of 320 dimensions, which the projection to
768 cannot widen; the answers to trivia can hardly be guessed (chance has a loss of 10.4, step 250
one of 9.8 and the last one of 9.3); case costs half a point (on the split in lowercase, as the
teacher reads it, the model has 0.8433); T5's 32,000 pieces serve four languages, so that more
English words fall into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.recipes._piece_names import NUM_SPECIAL, spelled_pieces
from use_st5.recipes._run_folder import alone
from use_st5.recipes._student import in_float32, start_near_average
from use_st5.recipes._teacher_sentences import TEACHER_TEXTS
from use_st5.recipes._use_data import DataSettings, UseData
from use_st5.recipes._use_recipe import UseRecipe
from use_st5.recipes._use_training import TrainingSettings
from use_st5.recipes._word_table import word_table
from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

PRESET = "st5_small_en"
DATA = DataSettings(
    text=TEACHER_TEXTS[PRESET],
    vectorizer=SentencePieceVectorizer,
    vocabulary=None,
    ids="token_ids",
    max_tokens=26,
    # A word is 1.3 pieces and its punctuation, a sentence ends in a token of its own.
    teacher_lengths={
        "3_words": (1, 3, 9),
        "6_words": (4, 6, 13),
        "9_words": (7, 9, 17),
        "13_words": (10, 13, 23),
        "19_words": (14, 19, 31),
        "30_words": (20, 30, 44),
    },
    lowercase=0.4,
)
TRAINING = TrainingSettings(
    mixture={
        "answers": (0.03, 128),
        "triplets": (0.03, 128),
        "teacher": (0.46, 512),
        "related": (0.48, 512),
    },
    part_weights={
        "teacher_3_words": 0.5,
        "teacher_6_words": 0.8,
        "related_19_words": 0.8,
        "related_30_words": 0.7,
    },
    learning_rate=2e-3,
    warmup_steps=200,
    evaluate_every=250,
    best=False,
    xla=False,
)
DTYPE = "mixed_bfloat16"
TASKS = tuple(TRAINING.mixture)
STEPS = 3_500
# Of the exported model. Attention takes the square of the length.
MAX_LENGTH = 128


@alone
def run(
    data: Path,
    output: Path,
    *,
    seed: int = 0,
    steps: int | None = None,
    teacher: Path | None = None,
    resume: bool = True,
    tasks: Sequence[str] = TASKS,
    prepared: Path | None = None,
) -> dict[str, float]:
    """Trains, exports and scores on the development split.

    Args:
        data: Folder of the corpora.
        output: Folder for checkpoints, the SavedModel and the scores.
        seed: Of the initial weights, the draw of tasks and the shuffling.
        steps: Optimizer steps; the recipe's own by default.
        teacher: Folder of the teacher's vectors; those that are missing are computed.
        resume: Whether an interrupted run in `output` continues.
        tasks: Which tasks to train on (rates are relative, so any subset will do; with none the
            model stays as it was initialized).
        prepared: Folder of id arrays, shared by runs; in `output` by default.

    Returns:
        Development scores by name.
    """
    recipe = UseRecipe(
        PRESET, DATA, TRAINING, STEPS, _initial_model, _finished, max_length=MAX_LENGTH
    )
    return recipe.run(
        data,
        output,
        seed=seed,
        steps=steps,
        teacher=teacher,
        resume=resume,
        tasks=tasks,
        prepared=prepared,
    )


def _initial_model(text: UseData, seed: int) -> SentenceT5:
    """Made near the mean of the pieces' vectors."""
    model = SentenceT5.from_preset(PRESET, dtype=DTYPE)
    model.build()
    rows, dim = model.embedding.embeddings.shape
    table = word_table(
        text.word_vectors(spelled_pieces()),
        rows=rows,
        dim=dim,
        first=NUM_SPECIAL,
        seed=seed,
    )
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


def _finished(_text: UseData, model: SentenceT5) -> SentenceT5:
    return in_float32(model)
