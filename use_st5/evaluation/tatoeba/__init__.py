"""Finding translations: the Tatoeba test set of 112 languages."""

from use_st5.evaluation.tatoeba.protocol import TatoebaScore, evaluate_tatoeba
from use_st5.evaluation.tatoeba.readers import ParallelSentences, read_tatoeba

__all__ = ["ParallelSentences", "TatoebaScore", "evaluate_tatoeba", "read_tatoeba"]
