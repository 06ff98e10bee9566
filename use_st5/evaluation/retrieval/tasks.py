"""The tasks of the groups "tatoeba" and "bucc"."""

from __future__ import annotations

from use_st5.evaluation.retrieval.bucc_task import BUCCTask
from use_st5.evaluation.retrieval.tatoeba_task import TatoebaTask

TASKS = (TatoebaTask(), *(BUCCTask(language) for language in ("de", "fr", "ru", "zh")))
