"""Mining translations out of two texts: the BUCC 2018 shared task."""

from use_st5.evaluation.bucc.protocol import BUCCScore, evaluate_bucc
from use_st5.evaluation.bucc.readers import BUCCSet, read_bucc

__all__ = ["BUCCScore", "BUCCSet", "evaluate_bucc", "read_bucc"]
