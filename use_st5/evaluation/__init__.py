"""Evaluation of embeddings by the protocols of the published papers.

A module holds one kind of evaluation, from the published files to the scores: how the files are
read, the protocol with its source, and `TASKS`, which `registry` lists. `task` defines a task,
`runner` runs tasks on one encoder, `record` is the result file of a run, `report` compares several
records, with the intervals of `differences`, `labelled_texts` reads labelled texts, and
`classifiers` and `senteval_classifier` learn from embeddings.

Examples:
    >>> import use_st5
    >>> from use_st5.evaluation import evaluate, select_tasks
    >>> record = evaluate(use_st5.load("use_dan_en"), select_tasks("weat"))
    >>> record.tasks["weat1"]["scores"]["effect_size"] > 1
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.evaluation.record import EvaluationRecord as EvaluationRecord
    from use_st5.evaluation.registry import select_tasks as select_tasks
    from use_st5.evaluation.runner import evaluate as evaluate
    from use_st5.evaluation.task import EvaluationTask as EvaluationTask

__getattr__, __dir__, __all__ = public_names(__name__)
