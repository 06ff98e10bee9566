"""Finding translations: Tatoeba and BUCC, with their readers and tasks (`tasks.py`)."""

from use_st5.evaluation.retrieval.bucc import evaluate_bucc
from use_st5.evaluation.retrieval.bucc_data import read_bucc
from use_st5.evaluation.retrieval.tatoeba import evaluate_tatoeba
from use_st5.evaluation.retrieval.tatoeba_data import read_tatoeba

__all__ = ["evaluate_bucc", "evaluate_tatoeba", "read_bucc", "read_tatoeba"]
