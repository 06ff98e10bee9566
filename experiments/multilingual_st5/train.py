"""m-ST5: mT5's encoder, LoRA, and inference triplets whose sentences are of different languages.

    python -m experiments.multilingual_st5.train --data DATA --out runs/multilingual_st5
    python -m experiments.multilingual_st5.train --variant large_en_nli --data DATA --out OUT

The recipe of Yano et al. 2024 (arXiv 2403.17528) in its three sizes: mean pooling over the
encoder's outputs, neither projection nor normalisation; adapters of rank 8 on query and value (in
the variants `…_all_linear` on all linear layers); batch 128, one epoch; learning rate 5e-5 on XNLI
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

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import keras

from experiments.command import main
from experiments.corpora import SIMCSE_NLI, XNLI_MT, xnli_mt
from experiments.published_corpus import Example
from use_st5._files import atomic_path
from use_st5._remote_files import open_local
from use_st5.convert import open_checkpoint
from use_st5.convert.sentencepiece_model import read_sentencepiece_model
from use_st5.data import DataFolder, PreparedColumn
from use_st5.data.held_out import without_held_out
from use_st5.evaluation import evaluate, select_tasks
from use_st5.evaluation.held_out import held_out_sentences
from use_st5.evaluation.report import markdown_tables
from use_st5.losses import ContrastiveLoss
from use_st5.models import SentenceT5, apply_lora, load_lora
from use_st5.models.lora import Targets
from use_st5.models.t5.checkpoint import read_sentence_t5
from use_st5.tokenizers import SentencePieceTokenizer
from use_st5.training import LinearDecay, Recipe, RecipeTask, Run, Stage
from use_st5.training.recipe import Encode, Scores, Source

ADAPTERS, LISTING = "adapters.safetensors", "adapters.txt"
EVALUATED = "tatoeba,bucc,multilingual_sts"
IDS = PreparedColumn("token_ids", max_tokens=64)  # in training; the encoder itself has no limit


@dataclasses.dataclass(frozen=True)
class Triplets:
    """Anchors, positives and negatives, without the sentences of the test sets.

    Attributes:
        read: Run → triplets, drawn with its seed.
        group_size: As in `TaskData`, and so are the buckets.
    """

    read: Callable[[Run], Iterable[Example]]
    group_size: int = 1
    buckets: Sequence[int] = ()

    def sources(self, task: str, run: Run) -> dict[str, Source]:
        """One part, of the task's name."""

        def examples() -> Iterator[Example]:
            yield from without_held_out(self.read(run), run.held_out)

        return {task: (examples, dict.fromkeys(("anchor", "positive", "negative"), IDS))}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoRA:
    """What is adapted, and how.

    Attributes:
        base: Run, dtype → the model, with the same weights at every call.
        targets: As for `apply_lora`, and so are rank and alpha.
        dtype: Of the base in training; it is merged and exported in float32.
    """

    base: Callable[[Run, str], SentenceT5]
    targets: Targets = "query_value"
    rank: int = 8
    alpha: float = 32.0
    dtype: str = "float32"

    def opened(self, run: Run) -> Adapted:
        """The adapters of a run."""
        return Adapted(self, run)


class Adapted:
    """A base and its adapters, from their first values to their end in the base.

    Args:
        settings: What is adapted, and how.
        run: Whose folder keeps them.
    """

    def __init__(self, settings: LoRA, run: Run) -> None:
        self.settings = settings
        self._run = run

    def model(self) -> SentenceT5:
        """The base with new adapters."""
        lora = self.settings
        model = lora.base(self._run, lora.dtype)
        self._adapters = apply_lora(
            model, targets=lora.targets, rank=lora.rank, alpha=lora.alpha, seed=self._run.seed
        )
        return model

    def keep(self) -> None:
        """Writes `adapters.safetensors`, and `adapters.txt`, which lists the adapted layers."""
        with atomic_path(self._run.output / LISTING) as listing:
            listing.write_text(f"{self._adapters}\n", encoding="utf-8")
        self._adapters.save(self._run.output / ADAPTERS)

    def merged(self) -> SentenceT5:
        """The base in float32 with the adapters that `keep` wrote in it."""
        model = self.settings.base(self._run, "float32")
        with open_local(self._run.output / ADAPTERS) as path:
            load_lora(model, path).merge()
        return model


def adamw(learning_rate: float) -> Callable[[int], keras.optimizers.Optimizer]:
    """Number of steps → AdamW without weight decay, whose rate falls in a line to 0."""
    return lambda steps: keras.optimizers.AdamW(
        LinearDecay(learning_rate, steps, constant_share=0.0), weight_decay=0.0
    )


def multilingual_scores(run: Run) -> Callable[[Encode], Scores]:
    """The main score of each evaluation set that is in the data folder.

    Written are `record.json` (what `use-st5 report` reads) and `table.md`.
    """
    folder = DataFolder(run.data)

    def scores(encode: Encode) -> Scores:
        tasks = [task for task in select_tasks(EVALUATED) if all(map(folder.has, task.sources))]
        name, command = run.recipe.name, " ".join(sys.argv)
        record = evaluate(encode, tasks, run.data, name=name, command=command)
        record.write(run.output / "record.json")
        with atomic_path(run.output / "table.md") as temporary:
            temporary.write_text(markdown_tables([record]), encoding="utf-8")
        return {task: result["scores"][result["main"]] for task, result in record.tasks.items()}

    return scores


def training(read: Callable[[Run], Iterable[Example]], learning_rate: float, pieces: int) -> Stage:
    """An epoch of triplets.

    Args:
        read: As in `Triplets`.
        learning_rate: At the start.
        pieces: In how many parts a batch is encoded, one after the other.
    """
    triplets = RecipeTask(
        name="triplets",
        loss=partial(ContrastiveLoss, temperature=0.05, hard_negatives=True),
        data=Triplets(read),
        batch_size=128,
    )
    return Stage(
        tasks=(triplets,),
        optimizer=adamw(learning_rate),
        steps=None,
        options={
            "steps_per_call": 1,
            "gradient_cache": pieces,
            "checkpoint_every": 1_000,
            "keep_checkpoints": 1,
        },
    )


def base_folder(run: Run, size: str) -> Path:
    """Google's mT5 of a size, anywhere in the data folder.

    Raises:
        FileNotFoundError: It is not there.
    """
    found = sorted(run.data.rglob(f"mt5-{size}"))
    if not found:
        raise FileNotFoundError(
            f"Expected mt5-{size} below {run.data}, the folder of google/mt5-{size}. Found none."
        )
    return found[0]


def xnli_triplets(run: Run) -> Iterable[Example]:
    """Triplets of three different languages."""
    return xnli_mt(XNLI_MT.files(run.data)).examples(seed=run.seed)


def english_triplets(run: Run) -> Iterable[Example]:
    """English triplets."""
    return SIMCSE_NLI.examples(run.data)


# Name → corpus, its triplets, and the rate of the paper's Table 5.
TRAININGS = {
    "xnli": (XNLI_MT, training(xnli_triplets, learning_rate=5e-5, pieces=16)),
    "en_nli": (SIMCSE_NLI, training(english_triplets, learning_rate=5e-4, pieces=16)),
}


def recipe(size: str, training_name: str, targets: Targets) -> Recipe:
    """The paper's recipe for a size of mT5, a training set and a place of the adapters."""
    corpus, stage = TRAININGS[training_name]

    def base(run: Run, dtype: str) -> SentenceT5:
        return read_sentence_t5(open_checkpoint(base_folder(run, size)), dtype=dtype)

    return Recipe(
        name=f"multilingual_st5_{size}",
        material=LoRA(base=base, targets=targets, dtype="bfloat16").opened,
        tokenizer=lambda run: SentencePieceTokenizer(
            read_sentencepiece_model(base_folder(run, size))
        ),
        check=lambda run: (base_folder(run, size), corpus.files(run.data)),
        model=lambda run: run.material.model(),
        stages=(stage,),
        keep=lambda run, _model: run.material.keep(),
        finished=lambda run: run.material.merged(),
        measure=multilingual_scores,
        held_out=partial(held_out_sentences, required=False),
        metadata={"base": f"mt5-{size}", "training": training_name, "targets": targets},
    )


RECIPE = recipe("xxl", "xnli", "query_value")
VARIANTS = {
    f"{size}_{name}{suffix}": recipe(size, name, targets)
    for size, name, (suffix, targets) in product(
        ("large", "xl", "xxl"), TRAININGS, (("", "query_value"), ("_all_linear", "all_linear"))
    )
}


if __name__ == "__main__":
    main(RECIPE, VARIANTS)
