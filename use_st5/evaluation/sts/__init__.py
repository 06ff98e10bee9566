"""Semantic textual similarity: readers, sets, the protocol, and its tasks (`tasks.py`)."""

from use_st5.evaluation.sts.protocol import evaluate_sts
from use_st5.evaluation.sts.readers import read_semeval_sts, read_sick, read_stsb
from use_st5.evaluation.sts.sts_pair import STSPair
from use_st5.evaluation.sts.sts_score import STSScore
from use_st5.evaluation.sts.sts_set import STSSet
from use_st5.evaluation.sts.suite import sts_suite

__all__ = [
    "STSPair",
    "STSScore",
    "STSSet",
    "evaluate_sts",
    "read_semeval_sts",
    "read_sick",
    "read_stsb",
    "sts_suite",
]
