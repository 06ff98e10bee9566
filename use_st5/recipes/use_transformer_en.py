"""USE Transformer for English on three tasks and a teacher: ships as `use_transformer_en`.

The tasks, the teacher and the trainer are those of `use_dan_en`; the model is the USE paper's
Transformer (section "Transformer"), small enough for 40 MB. Five things are its own:

- Unknown words fall into pieces (`PieceVectorizer`). With 50,000 words and hash buckets, half of
  the sentences of SST and of news held an unknown one, and came to a cosine of 0.7 with the
  teacher, against 0.83 of the others.
- A task of related sentences (`_related_sentences.py`): a batch of random ones says little of what
  tells near ones apart.
- Generated questions among the sentences (`generate_questions`), of which the corpora hold few.
- Hints: the mean of the teacher's fourth layer. By the training and development splits of TREC,
  SST-2 and MRPC a linear classifier reads more from it and the last layer side by side than from
  the last alone (89.3, 81.0 and 75.3 % against 85.1, 79.6 and 72.6 %).
- Two sums: the outputs of the second block are summed beside those of the last, and 512 numbers are
  made of both. One sum fills 320 dimensions at most, and of the teacher's two layers a classifier
  on TREC reads less from 320 components than from 512 (86.0 against 88.7 %;
  `python benchmarks/training_splits.py --data DATA --teacher` gave these figures).

    python -m use_st5.recipes._embed_teacher --data DATA --to TEACHER --recipe use_transformer_en
    use-st5 train use_transformer_en --data DATA --teacher TEACHER --out runs/use_transformer_en

DATA holds the corpora of `_permissive_corpora.py`, `vocab/bert-base-uncased/vocab.txt` and, for the
development metric, the STS Benchmark (its development split alone is scored). Written are
`checkpoints/`, `model/` (the SavedModel, int8 table) and `scores.json`.

Measured with seed 0 on two cores of an Intel Xeon with AMX that tests used now and then: 87
minutes, 11 GB of memory, STS-B dev Pearson 0.8570 and Spearman 0.8545; half an hour for the teacher
and 7 minutes for the arrays before. The card in `saved_models/use_transformer_en` has the other
scores.

Training starts near an average of the teacher's vectors of single words: the table holds them (see
`_word_table.py`), the layers around the blocks keep cosines, and what the blocks add is small.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from use_st5.models.use_transformer.config import USE_TRANSFORMER_PRESETS
from use_st5.models.use_transformer.model import USETransformer
from use_st5.recipes._run_folder import alone
from use_st5.recipes._student import in_float32, start_near_average
from use_st5.recipes._teacher_sentences import TEACHER_TEXTS
from use_st5.recipes._use_data import DataSettings, UseData
from use_st5.recipes._use_recipe import UseRecipe
from use_st5.recipes._use_training import TrainingSettings
from use_st5.recipes._use_vocabulary import VocabularySettings
from use_st5.recipes._word_table import spelled, word_table
from use_st5.text.ngram_vocabulary import FIRST_TERM_ID
from use_st5.text.piece_vectorizer import PieceVectorizer

PRESET = "use_transformer_en"
DATA = DataSettings(
    text=TEACHER_TEXTS[PRESET],
    vectorizer=PieceVectorizer,
    vocabulary=VocabularySettings(
        num_unigrams=52_800,
        num_bigrams=0,
        unigram_buckets=200,
        pieces="vocab/bert-base-uncased/vocab.txt",
    ),
    ids="token_ids",
    max_tokens=20,
    teacher_lengths={
        "3_words": (1, 3, 6),
        "6_words": (4, 6, 9),
        "9_words": (7, 9, 13),
        "13_words": (10, 13, 17),
        "19_words": (14, 19, 24),
        "30_words": (20, 30, 36),
    },
)
TRAINING = TrainingSettings(
    mixture={
        "skip_thought": (0.01, 64),
        "input_response": (0.02, 128),
        "inference": (0.03, 128),
        "teacher": (0.46, 512),
        "related": (0.48, 512),
    },
    part_weights={
        "teacher_3_words": 0.5,
        "teacher_6_words": 0.7,
        "teacher_9_words": 0.9,
        "related_6_words": 0.7,
        "related_19_words": 0.8,
        "related_30_words": 0.7,
    },
    learning_rate=2e-3,
    warmup_steps=200,
    evaluate_every=250,
    hint_weight=1.5,
    # From step 4,500 on the development score stays within 0.3 points, while the teacher's losses
    # fall by 6 to 19 %.
    best=False,
    # Measured on two cores with AVX512-BF16, batches of 512 x 16: mixed bfloat16 without XLA 7,400
    # tokens/s, with it 4,300; float32 4,700 either way.
    xla=False,
)
DTYPE = "mixed_bfloat16"
TASKS = tuple(TRAINING.mixture)
STEPS = 6_800


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
        prepared: Folder of vocabulary and id arrays, shared by runs; in `output` by default.

    Returns:
        Development scores by name.
    """
    recipe = UseRecipe(PRESET, DATA, TRAINING, STEPS, _initial_model, _finished)
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


def _initial_model(text: UseData, seed: int) -> USETransformer:
    """Made near the mean of the words' vectors."""
    vocabulary = text.vectorizer.vocabulary
    config = dataclasses.replace(USE_TRANSFORMER_PRESETS[PRESET], num_embeddings=vocabulary.size)
    model = USETransformer(config, dtype=DTYPE)
    model.build()
    table = word_table(
        text.word_vectors(spelled(vocabulary.unigrams)),
        rows=vocabulary.size,
        dim=config.embedding_dim,
        first=FIRST_TERM_ID,
        seed=seed,
    )
    model.embedding.embeddings.assign(table)
    start_near_average(
        around=(model.widen, model.projection),
        branches=(
            dense for block in model.blocks for dense in (block.attention.output_dense, block.outer)
        ),
        seed=seed,
    )
    return model


def _finished(_text: UseData, model: USETransformer) -> USETransformer:
    return in_float32(model)
