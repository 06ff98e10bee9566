"""USE-DAN for English on three tasks and a teacher: the model that ships as `use_dan_en`.

The three tasks are the USE paper's (section "Encoders"): Skip-Thought-like on novels,
input-response on dialogues, classification on inference pairs. The fourth learns from
all-MiniLM-L6-v2.

    python -m use_st5.recipes._embed_teacher --data DATA --to TEACHER
    use-st5 train use_dan_en --data DATA --teacher TEACHER --out runs/use_dan_en

DATA holds the corpora of `_permissive_corpora.py` and, for the development metric, the STS
Benchmark (its development split alone is scored). Written are `checkpoints/`, `model/` (the
SavedModel, int8 table) and `scores.json`.

Measured with seed 0 on two cores of a Xeon with AMX that others used too: 35 minutes, 5 GB of
memory, STS-B dev Pearson 0.8233 and Spearman 0.8214 (best of 14 evaluations, at step 5,500); about
30 minutes for the teacher and 5 for the arrays before. The card in `saved_models/use_dan_en` has
the other scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from use_st5.models.use_dan.model import USEDAN
from use_st5.recipes._calibration import Calibration, calibrate
from use_st5.recipes._run_folder import alone
from use_st5.recipes._teacher_sentences import TEACHER_TEXTS
from use_st5.recipes._use_data import TASKS, DataSettings, UseData
from use_st5.recipes._use_recipe import UseRecipe
from use_st5.recipes._use_training import TrainingSettings
from use_st5.recipes._use_vocabulary import VocabularySettings
from use_st5.text.ngram_vectorizer import NGramVectorizer

PRESET = "use_dan_en"
DATA = DataSettings(
    text=TEACHER_TEXTS[PRESET],
    vectorizer=NGramVectorizer,
    vocabulary=VocabularySettings(
        num_unigrams=50_000,
        num_bigrams=29_000,
        unigram_buckets=3_000,
    ),
    ids="ids",
    max_tokens=28,  # the encoder itself has no limit
    teacher_lengths={"short": (1, 6, 8), "medium": (7, 13, 16), "long": (14, 27, 30)},
)
TRAINING = TrainingSettings(
    mixture={
        "skip_thought": (0.02, 128),
        "input_response": (0.05, 512),
        "inference": (0.05, 512),
        "teacher": (0.88, 2048),
    },
    # Single words and short spans are many and soon learnt.
    part_weights={"teacher_short": 0.5, "teacher_long": 1.5},
    learning_rate=5e-3,
    warmup_steps=200,
    evaluate_every=500,
)
STEPS = 7_000
# By hand, a factor at a time, on the training and development splits of the STS Benchmark, where
# they brought 2.7 and 2.0 points of Spearman's correlation.
CALIBRATION = Calibration(frequent=0.75, numbers=1.7, bigrams=0.5, unknown=2.0, skip=2.0)


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
    calibration: Calibration = CALIBRATION,
) -> dict[str, float]:
    """Trains, calibrates, exports and scores on the development split.

    Args:
        data: Folder of the corpora.
        output: Folder for checkpoints, the SavedModel and the scores.
        seed: Of the initial weights, the draw of tasks and the shuffling.
        steps: Optimizer steps; the recipe's own by default.
        teacher: Folder of the teacher's vectors; those that are missing are computed.
        resume: Whether an interrupted run in `output` continues.
        tasks: Which tasks to train on (rates are relative, so any subset will do; with none the
            model stays as it was drawn).
        prepared: Folder of vocabulary and id arrays, shared by runs; in `output` by default.
        calibration: Factors on groups of weights, applied after training.

    Returns:
        Development scores by name.
    """
    recipe = UseRecipe(
        PRESET, DATA, TRAINING, STEPS, _initial_model, partial(_finished, calibration)
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


def _initial_model(text: UseData, _seed: int) -> USEDAN:
    model = USEDAN.from_preset(PRESET, num_embeddings=text.vectorizer.vocabulary.size)
    model.build()
    return model


def _finished(calibration: Calibration, text: UseData, model: USEDAN) -> USEDAN:
    calibrate(model, text.vectorizer.vocabulary, calibration)
    return model
