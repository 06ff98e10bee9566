"""m-ST5 from text to table, at a size that any machine can run; its scores mean nothing.

    python -m experiments.multilingual_st5.reduced --data DATA --out runs/multilingual_st5_reduced

The available data hold neither mT5's weights nor XNLI's training set. This run shows that the steps
of `multilingual_st5` fit together, with triplets of XNLI's development set in 15 languages, whose
three sentences are in different languages; mT5's real pieces with their real ids, as far as they
are available; an encoder of mT5's kind with random weights, 2 layers of width 32; and adapters on
all linear layers, which are merged, exported and evaluated on the same tasks. Random weights with
adapters of rank 8 are near chance: expect less than 2 % on Tatoeba, and correlations that are
explained by words that both sentences share.

DATA holds XTREME's `xnli/dev-XX.tsv`, `vocab/mt5-cn-subset/` (`sentencepiece_cn.model` and
`sentencepiece_cn_keep_tokens.json` of bojone/t5_in_bert4keras) and the evaluation sets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import keras

from experiments.command import main
from experiments.multilingual_st5 import train as multilingual_st5
from experiments.multilingual_st5.language_triplets import parallel_triplets
from experiments.nli_reader import nli_pairs
from experiments.published_corpus import Example
from experiments.run import read_json
from use_st5.models import SentenceT5
from use_st5.tokenizers import SentencePieceTokenizer


def dev_files(data: Path) -> dict[str, Path]:
    """XTREME's development files of XNLI by language."""
    files = {path.stem.removeprefix("dev-"): path for path in data.glob("xnli/dev-*.tsv")}
    if not files:
        raise FileNotFoundError(f"Expected xnli/dev-XX.tsv below {data}. Found none.")
    return dict(sorted(files.items()))


def subset_tokenizer(data: Path) -> SentencePieceTokenizer:
    """The part of mT5's vocabulary in the data folder; its pieces keep mT5's ids."""
    folder = data / "vocab" / "mt5-cn-subset"
    piece_ids = read_json(folder / "sentencepiece_cn_keep_tokens.json")
    return SentencePieceTokenizer(folder / "sentencepiece_cn.model", piece_ids=piece_ids)


def random_mt5(data: Path, dtype: str, seed: int) -> SentenceT5:
    """A small random encoder of mT5's kind, with as many rows in the token table as mT5."""
    del data
    keras.utils.set_random_seed(seed)
    model = SentenceT5.from_preset(
        "mt5_small",
        projection_dim=None,
        normalize=False,
        dtype=dtype,
        num_layers=2,
        hidden_dim=32,
        intermediate_dim=64,
        num_heads=2,
        key_value_dim=16,
    )
    model.build()
    return model


def triplets(data: Path, seed: int) -> Iterator[Example]:
    """Triplets of three different languages."""
    pairs = {language: [*nli_pairs(file)] for language, file in dev_files(data).items()}
    return parallel_triplets(pairs).examples(seed=seed)


EXPERIMENT = dataclasses.replace(
    multilingual_st5.EXPERIMENT,
    name="multilingual_st5_reduced",
    base=random_mt5,
    tokenizer=subset_tokenizer,
    required=dev_files,
    triplets=triplets,
    learning_rate=1e-2,
    targets="all_linear",
    dtype="float32",
    micro_batch_size=128,
    metadata={"note": "random base, for show"},
)


if __name__ == "__main__":
    main(EXPERIMENT)
