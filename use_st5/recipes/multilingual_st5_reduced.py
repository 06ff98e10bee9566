"""m-ST5's pipeline from text to table at a size that any machine runs; its scores mean nothing.

    use-st5 train multilingual_st5_reduced --data DATA --out runs/multilingual_st5_reduced

The data at hand hold neither mT5's weights nor XNLI's training set. What is left shows that the
steps of `multilingual_st5` fit together: triplets of XNLI's development set in 15 languages, no two
sentences of a triplet in one; mT5's real pieces with their real ids, as far as there are any; an
encoder of mT5's shape with random weights, 2 layers of width 32; adapters on all linear layers,
merged, exported and evaluated through the same tasks. Random weights that adapters of rank 8 may
turn a little are near chance: expect Tatoeba below 2 %, and correlations that words shared between
the two sentences explain.

DATA holds XTREME's `xnli/dev-XX.tsv`, `vocab/mt5-cn-subset/` (`sentencepiece_cn.model` and
`sentencepiece_cn_keep_tokens.json` of bojone/t5_in_bert4keras) and the evaluation sets.
"""

from __future__ import annotations

import sys
from pathlib import Path

import keras

from use_st5._records import Count, read_record
from use_st5.data.xnli_reader import read_xnli
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.recipes._lora_run import LoRASettings, export_and_score, train_adapters
from use_st5.recipes._run_folder import alone, checkpoints_folder
from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

SETTINGS = LoRASettings(learning_rate=1e-2, targets="all_linear")
LAYERS, WIDTH, HEADS, HEAD_WIDTH = 2, 32, 2, 16
_VOCABULARY = Path("vocab", "mt5-cn-subset")


@alone
def run(
    data: Path, output: Path, *, seed: int = 0, steps: int | None = None, resume: bool = True
) -> dict[str, float]:
    """Trains the adapters, merges them, exports and scores.

    Args:
        data: Folder with the triplets, the vocabulary and the evaluation sets.
        output: Folder for `checkpoints/`, `adapters.safetensors`, `model/` and the scores.
        seed: Of the base's weights, the adapters, the languages drawn and the shuffling.
        steps: Optimizer steps; an epoch's, 97, by default.
        resume: Whether an interrupted run in `output` continues.

    Returns:
        Main score of each evaluation set.

    Raises:
        FileNotFoundError: A file is missing.
        FileExistsError: `resume` is False, and the output folder holds checkpoints.
    """
    checkpoints_folder(output, resume=resume)  # May raise.
    files = {path.stem.removeprefix("dev-"): path for path in data.glob("xnli/dev-*.tsv")}
    if not files:
        raise FileNotFoundError(f"Expected xnli/dev-XX.tsv below {data}. Found none.")
    triplets = read_xnli(dict(sorted(files.items())))
    vectorizer = subset_vectorizer(data / _VOCABULARY)

    def base(dtype: str) -> SentenceT5:
        keras.utils.set_random_seed(seed)
        return random_mt5(dtype)

    train_adapters(
        base, vectorizer, triplets.examples(seed=seed), output, SETTINGS, seed=seed, steps=steps
    )
    facts = {"languages": [*triplets.languages], "seed": seed, "note": "random base, for show"}
    return export_and_score(
        base,
        vectorizer,
        data,
        output,
        name="multilingual_st5_reduced",
        facts=facts,
        command=" ".join(sys.argv),
    )


def subset_vectorizer(folder: Path) -> SentencePieceVectorizer:
    """The part of mT5's vocabulary in a folder, its pieces with their ids in the whole.

    Raises:
        FileNotFoundError: A file is missing.
    """
    path = folder / "sentencepiece_cn_keep_tokens.json"
    kept = read_record(path, list[Count], remedy="Fetch it again.", limit=2**24)
    return SentencePieceVectorizer(folder / "sentencepiece_cn.model", piece_ids=kept)


def random_mt5(dtype: str) -> SentenceT5:
    """An encoder of mT5's kind, all its rows of the table, and little else."""
    model = SentenceT5.from_preset(
        "mt5_small",
        projection_dim=None,
        normalize=False,
        dtype=dtype,
        num_layers=LAYERS,
        hidden_dim=WIDTH,
        intermediate_dim=2 * WIDTH,
        num_heads=HEADS,
        key_value_dim=HEAD_WIDTH,
    )
    model.build()
    return model
