"""GLUE's data sets in its published tsv files, and where the same rows are published elsewhere.

Columns and the order of the classes are those of GLUE's files and of TensorFlow Datasets' `glue`.
"""

from __future__ import annotations

from use_st5.evaluation.glue.glue_dataset import GlueDataset
from use_st5.evaluation.glue.table_layout import TableLayout
from use_st5.evaluation.sts.readers import STSB_DEV, STSB_TRAIN

_ENTAILMENT = ("entailment", "not_entailment")
_NLI = ("entailment", "neutral", "contradiction")
_DUPLICATE = ("not_duplicate", "duplicate")
_EQUIVALENT = ("not_equivalent", "equivalent")
_SENTIMENT = ("negative", "positive")
# Source, judgement, the author's own mark, sentence; no header, in GLUE and as published first.
_COLA = TableLayout((3,), 1, ("unacceptable", "acceptable"))
_STSB = TableLayout((5, 6), 4)
_MNLI = TableLayout(("sentence1", "sentence2"), "gold_label", _NLI)
# Some of its questions hold line feeds, so GLUE's train file has about a dozen broken lines, which
# TensorFlow Datasets leaves out too.
_QQP = TableLayout(("question1", "question2"), "is_duplicate", _DUPLICATE, most_broken=50)

COLA = GlueDataset(
    "CoLA",
    ("CoLA/train.tsv", "cola_public/raw/in_domain_train.tsv"),
    ("CoLA/dev.tsv", "cola_public/raw"),
    (_COLA, _COLA),
    # GLUE's dev split is both of them in this order.
    parts=("in_domain_dev.tsv", "out_of_domain_dev.tsv"),
)
SST2 = GlueDataset(
    "SST-2",
    ("SST-2/train.tsv", "SST/binary/sentiment-train"),  # the second is SentEval's
    ("SST-2/dev.tsv", "SST/binary/sentiment-dev"),
    (TableLayout(("sentence",), "label", _SENTIMENT), TableLayout((0,), 1, _SENTIMENT)),
)
MRPC = GlueDataset(
    "MRPC",
    ("MRPC/train.tsv",),
    ("MRPC/dev.tsv",),
    (TableLayout(("#1 String", "#2 String"), "Quality", _EQUIVALENT),),
)
STSB = GlueDataset(
    "STS-B",
    ("STS-B/train.tsv", *STSB_TRAIN.places),
    ("STS-B/dev.tsv", *STSB_DEV.places),
    (TableLayout(("sentence1", "sentence2"), "score"), _STSB, _STSB),
)
QQP = GlueDataset("QQP", ("QQP/train.tsv",), ("QQP/dev.tsv",), (_QQP,))
MNLI_MATCHED = GlueDataset("MNLI-m", ("MNLI/train.tsv",), ("MNLI/dev_matched.tsv",), (_MNLI,))
MNLI_MISMATCHED = GlueDataset(
    "MNLI-mm", ("MNLI/train.tsv",), ("MNLI/dev_mismatched.tsv",), (_MNLI,)
)
QNLI = GlueDataset(
    "QNLI",
    ("QNLI/train.tsv",),
    ("QNLI/dev.tsv",),
    (TableLayout(("question", "sentence"), "label", _ENTAILMENT),),
)
RTE = GlueDataset(
    "RTE",
    ("RTE/train.tsv",),
    ("RTE/dev.tsv",),
    (TableLayout(("sentence1", "sentence2"), "label", _ENTAILMENT),),
)
