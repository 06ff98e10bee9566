"""Semantic textual similarity: readers, sets, the protocol, and its tasks (`tasks.py`)."""

from use_st5.evaluation.sts.protocol import STSScore, evaluate_sts
from use_st5.evaluation.sts.readers import (
    STSB_DEV,
    STSPair,
    STSSet,
    read_semeval_sts,
    read_sick,
    read_sts,
    read_stsb,
    sts_suite,
)

__all__ = [
    "STSB_DEV",
    "STSPair",
    "STSScore",
    "STSSet",
    "evaluate_sts",
    "read_semeval_sts",
    "read_sick",
    "read_sts",
    "read_stsb",
    "sts_suite",
]
