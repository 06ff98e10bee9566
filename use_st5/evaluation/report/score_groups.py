"""The papers' tables: which tasks they have, in which order, and which of them they average."""

from __future__ import annotations

from use_st5.evaluation.report.score_group import ScoreGroup

_STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
_TRANSFER = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
_PROBING = tuple(
    f"probing_{name}"
    for name in (
        "length",
        "word_content",
        "depth",
        "top_constituents",
        "bigram_shift",
        "tense",
        "subject_number",
        "object_number",
        "odd_man_out",
        "coordination_inversion",
    )
)
_BUCC = ("bucc_de-en", "bucc_fr-en", "bucc_ru-en", "bucc_zh-en")
# The tracks of the paper that averages them.
_XSTS = ("xsts_ar-ar", "xsts_ar-en", "xsts_es-es", "xsts_es-en", "xsts_tr-en")
_SBERT = "fine-tuned on SNLI and MNLI"
_NLI = "fine-tuned on NLI"
_TWO_STAGES = "fine-tuned on CommunityQA, then NLI"
# The systems that this library builds, at the size that most people run, and the largest.
_FEATURED = (
    ("USE_T", ""),
    ("USE", ""),
    ("SBERT-NLI", _SBERT),
    ("BERT-base DefSent", ""),
    ("SimCSE-BERT", _NLI),
    ("SimCSE-BERT-base + TENC (bi)", "bi-encoder"),
    ("ST5-Enc mean", _NLI),
    ("ST5-Enc mean", _TWO_STAGES),
    ("ST5-Enc mean (11B)", _TWO_STAGES),
)
MULTILINGUAL = (
    ("LaBSE", "supervised by parallel sentences"),
    ("mSimCSE", "full fine-tuning on XNLI"),
    ("m-ST5", "LoRA on all linear layers, XNLI"),
    ("m-ST5", "LoRA on all linear layers, English NLI"),
)


def _transfer(group: str, suffix: str, title: str) -> ScoreGroup:
    return ScoreGroup(
        group,
        order=tuple(name + suffix for name in (*_TRANSFER, "sst5", "sicke")),
        average=tuple(name + suffix for name in _TRANSFER),
        title=title,
        suffix=suffix,
        benchmarks=("senteval",),
        featured=_FEATURED,
    )


def _probing(group: str, suffix: str, title: str) -> ScoreGroup:
    tasks = tuple(name + suffix for name in _PROBING)
    return ScoreGroup(group, order=tasks, average=tasks, title=title)


# By the names that the sections of a report have for them.
SCORE_GROUPS = {
    "sts": ScoreGroup(
        "sts",
        order=_STS,
        average=_STS,
        apart=("sts_sources", "sts_dice"),
        benchmarks=("sts",),
        featured=_FEATURED,
    ),
    "sts_angular": ScoreGroup(
        "sts",
        order=("stsb_dev", "stsb"),
        only=True,
        score="pearson_angular_all",
        title="The STS Benchmark as in the Universal Sentence Encoder’s paper",
        benchmarks=("stsb_pearson",),
        featured=_FEATURED,
    ),
    "senteval": _transfer("senteval", "", "The original classifier"),
    "senteval_sklearn": _transfer("senteval_sklearn", "_sklearn", "scikit-learn's classifier"),
    "probing": _probing("probing", "", "Logistic regression"),
    "probing_mlp": _probing("probing_mlp", "_mlp", "One hidden layer"),
    # No mean: the paper's own is of no choice of its printed cells that is known.
    "sentglue": ScoreGroup(
        "sentglue",
        benchmarks=("sentglue",),
        featured=(
            ("InferSent", _NLI),
            ("SBERT (RoBERTa Base)", _SBERT),
            ("SimCSE (RoBERTa Base)", _NLI),
            ("ST5 Enc (Base)", _TWO_STAGES),
            ("ST5 Enc (11B)", _TWO_STAGES),
        ),
    ),
    "pairs": ScoreGroup(
        "pairs",
        benchmarks=("pairs",),
        featured=(
            ("SimCSE-BERT-base", "bi-encoder"),
            ("SimCSE-BERT-base + TENC (bi)", "bi-encoder"),
            ("SimCSE-RoBERTa-base + TENC-mutual (bi)", "bi-encoder"),
        ),
    ),
    "bucc": ScoreGroup(
        "bucc",
        order=_BUCC,
        average=_BUCC,
        benchmarks=("bucc",),
        featured=MULTILINGUAL,
    ),
    "xsts": ScoreGroup(
        "multilingual_sts",
        order=(*_XSTS, "xsts_es-en-wmt", "xsts_en-en"),
        average=_XSTS,
        only=True,
        title="Across languages (XSTS)",
        benchmarks=("xsts",),
        featured=MULTILINGUAL,
    ),
    "monolingual_sts": ScoreGroup(
        "multilingual_sts",
        order=("jsts", "korsts", "sts_zh"),
        only=True,
        title="Within one language",
        benchmarks=("monolingual_sts",),
        featured=MULTILINGUAL,
    ),
    "translated_sts": ScoreGroup(
        "multilingual_sts",
        apart=(*_XSTS, "xsts_es-en-wmt", "xsts_en-en", "jsts", "korsts", "sts_zh"),
        title="The translated STS Benchmark",
    ),
}
# Groups that sections show in other ways.
SHOWN_OTHERWISE = ("geometry", "weat", "seat", "little_data", "tatoeba")
