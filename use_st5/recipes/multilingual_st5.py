"""m-ST5: mT5's encoder, LoRA, and inference triplets whose sentences are of different languages.

    use-st5 train multilingual_st5 --data DATA --out runs/multilingual_st5
    python -m use_st5.recipes.multilingual_st5 --size large --training en_nli --data DATA --out OUT

The recipe of Yano et al. 2024 (arXiv 2403.17528) in its three sizes: mean pooling over the
encoder's outputs, neither projection nor normalisation; adapters of rank 8 on query and value, or
with `--targets all_linear` on all linear layers; batch 128, one epoch; learning rate 5e-5 on XNLI
and 5e-4 on English NLI (Table 5). The paper's scores, on query and value:

| size | base | training | XSTS ar-ar | ar-en | es-es | es-en | tr-en | Tatoeba-14 | -36 | BUCC |
|---|---|---|---|---|---|---|---|---|---|---|
| large | mT5-large, 564M | xnli | 62.0 | 58.2 | 77.6 | 56.8 | 53.8 | | | |
| | | en_nli | 68.8 | 49.1 | 82.1 | 59.5 | 48.8 | | | |
| xl | mT5-xl, 1.7B | xnli | 71.8 | 71.7 | 81.7 | 68.0 | 66.3 | | | |
| | | en_nli | 78.2 | 73.9 | 87.3 | 76.8 | 72.1 | | | |
| xxl | mT5-xxl, 5.7B | xnli | 76.2 | 78.6 | 84.4 | 76.2 | 75.1 | 96.3 | 94.7 | 97.6 |
| | | en_nli | 83.2 | 79.5 | 87.7 | 84.9 | 79.2 | 93.9 | 92.9 | 96.6 |
| xxl, all linear | | xnli | 77.3 | 77.8 | 85.0 | 77.7 | 75.0 | 96.5 | 94.8 | 97.7 |
| | | en_nli | 84.5 | 82.9 | 89.2 | 86.3 | 79.7 | 94.0 | 93.1 | 96.7 |

DATA holds, in any folder, `mt5-SIZE/` (Hugging Face's google/mt5-SIZE: config.json, safetensors
files, spiece.model), and one of XNLI-MT 1.0's `multinli.train.XX.tsv` (15 languages; 1,963,485
triplets) or SimCSE's `nli_for_simcse.csv` (275,601); for the scores, the evaluation sets. The base
is frozen in bfloat16, a batch is encoded in 16 pieces; the merged model is exported in float32.

Not in the text of the paper that was at hand, and chosen here: alpha 32 (PEFT's example for mT0),
the temperature 0.05 (mSimCSE's), 64 tokens, AdamW without weight decay, a rate that falls in a line
to 0. Not run: neither the weights nor the training sets could be had.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args

from use_st5.convert.checkpoint import open_checkpoint
from use_st5.convert.sentencepiece_model import read_sentencepiece_model
from use_st5.data.triplet_reader import TripletReader
from use_st5.data.xnli_reader import read_xnli
from use_st5.models.t5.checkpoints import read_sentence_t5
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.recipes._lora_run import LoRASettings, export_and_score, train_adapters
from use_st5.recipes._run_folder import alone, checkpoints_folder
from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

Size = Literal["large", "xl", "xxl"]
Training = Literal["xnli", "en_nli"]
LoRATargets = Literal["query_value", "all_linear"]

LEARNING_RATES: dict[Training, float] = {"xnli": 5e-5, "en_nli": 5e-4}
DTYPE, PIECES = "bfloat16", 16
_XNLI_FILE = "multinli.train.*.tsv"
_SIMCSE_FILE = "nli_for_simcse.csv"


@alone
def run(
    data: Path,
    output: Path,
    *,
    seed: int = 0,
    steps: int | None = None,
    resume: bool = True,
    size: Size = "xxl",
    training: Training = "xnli",
    targets: LoRATargets = "query_value",
) -> dict[str, float]:
    """Trains the adapters, merges them, exports and scores.

    Args:
        data: Folder with the base, the training set and the evaluation sets.
        output: Folder for `checkpoints/`, `adapters.safetensors`, `model/` and the scores.
        seed: Of the adapters' first values, the languages drawn and the shuffling.
        steps: Optimizer steps; an epoch's by default.
        resume: Whether an interrupted run in `output` continues.
        size: Of the base.
        training: What to train on.
        targets: Where the adapters are.

    Returns:
        Main score of each evaluation set.

    Raises:
        FileNotFoundError: The base or the training set is missing.
        FileExistsError: `resume` is False, and the output folder holds checkpoints.
    """
    checkpoints_folder(output, resume=resume)  # May raise.
    folder = _found(data, f"mt5-{size}", f"the folder of google/mt5-{size}")[0]
    vectorizer = SentencePieceVectorizer(read_sentencepiece_model(folder))
    settings = LoRASettings(
        learning_rate=LEARNING_RATES[training], targets=targets, dtype=DTYPE, pieces=PIECES
    )
    examples = training_triplets(data, training, seed=seed)

    def base(dtype: str) -> SentenceT5:
        return read_sentence_t5(open_checkpoint(folder), dtype=dtype)

    train_adapters(base, vectorizer, examples, output, settings, seed=seed, steps=steps)
    facts = {"base": f"mt5-{size}", "training": training, "targets": targets, "seed": seed}
    return export_and_score(
        base,
        vectorizer,
        data,
        output,
        name=f"multilingual_st5_{size}",
        facts=facts,
        command=" ".join(sys.argv),
    )


def training_triplets(
    data: Path, training: Training, *, seed: int = 0
) -> Iterable[Mapping[str, str]]:
    """An epoch's triplets.

    Args:
        data: Folder with the training set.
        training: "xnli": three different languages. "en_nli": English alone.
        seed: Of the languages drawn.

    Raises:
        FileNotFoundError: The training set is missing.
    """
    if training == "en_nli":
        (file,) = _found(data, _SIMCSE_FILE, "SimCSE's triplets of SNLI and MultiNLI")[:1]
        return TripletReader(file, anchor="sent0", positive="sent1", negative="hard_neg")
    files = _found(data, _XNLI_FILE, "XNLI-MT 1.0")
    return _xnli_examples({file.name.split(".")[2]: file for file in files}, seed)


def _xnli_examples(files: Mapping[str, Path], seed: int) -> Iterator[Mapping[str, str]]:
    return read_xnli(files).examples(seed=seed)


def _found(data: Path, pattern: str, what: str) -> list[Path]:
    found = sorted(data.rglob(pattern))
    if not found:
        raise FileNotFoundError(f"Expected {pattern} below {data}, {what}. Found none.")
    return found


def main() -> None:
    """Reads the arguments and runs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of base and data")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--size", choices=get_args(Size), default="xxl")
    parser.add_argument("--training", choices=get_args(Training), default="xnli")
    parser.add_argument("--targets", choices=get_args(LoRATargets), default="query_value")
    parser.add_argument("--steps", type=int, help="optimizer steps; by default an epoch's")
    parser.add_argument("--seed", type=int, default=0)
    options = vars(parser.parse_args())
    run(options.pop("data"), options.pop("out"), **options)


if __name__ == "__main__":
    main()
