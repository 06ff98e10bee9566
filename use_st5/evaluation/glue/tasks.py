"""The tasks of SentGLUE, in the order of the Sentence-T5 paper's table 6, and of pairs by AUC."""

from __future__ import annotations

from use_st5.evaluation.glue import datasets
from use_st5.evaluation.glue.pair_task import PairTask
from use_st5.evaluation.glue.sentglue_task import SentGlueTask
from use_st5.evaluation.senteval.datasets import MRPC

((_MRPC_TEST, _),) = MRPC.test
_ONE = "u"
_TWO = "u, v, |u − v|, u·v"
_ACCURACY = ("accuracy",)
_ACCURACY_F1 = ("accuracy", "f1")

TASKS = (
    SentGlueTask("sentglue_cola", datasets.COLA, ("matthews", "accuracy"), _ONE),
    SentGlueTask("sentglue_sst2", datasets.SST2, _ACCURACY, _ONE),
    SentGlueTask("sentglue_mrpc", datasets.MRPC, _ACCURACY_F1, _TWO),
    SentGlueTask("sentglue_stsb", datasets.STSB, ("pearson", "spearman"), _TWO),
    SentGlueTask("sentglue_qqp", datasets.QQP, _ACCURACY_F1, _TWO),
    SentGlueTask("sentglue_mnli_m", datasets.MNLI_MATCHED, _ACCURACY, _TWO),
    SentGlueTask("sentglue_mnli_mm", datasets.MNLI_MISMATCHED, _ACCURACY, _TWO),
    SentGlueTask("sentglue_qnli", datasets.QNLI, _ACCURACY, _TWO),
    SentGlueTask("sentglue_rte", datasets.RTE, _ACCURACY, _TWO),
    PairTask(
        "pairs_qqp",
        "QQP",
        datasets.QQP.dev_source,
        datasets.QQP.layouts[0],
        positive="duplicate",
        split="GLUE's whole dev split (the paper's 10,000 test pairs are not listed)",
    ),
    PairTask(
        "pairs_qnli",
        "QNLI",
        datasets.QNLI.dev_source,
        datasets.QNLI.layouts[0],
        positive="entailment",
        split="GLUE's dev split without its first 1,000 pairs, which are the paper's dev set",
        skipped=1000,
    ),
    PairTask(
        "pairs_mrpc",
        "MRPC",
        _MRPC_TEST,
        datasets.MRPC.layouts[0],
        positive="equivalent",
        split="the corpus's own test split",
    ),
)
