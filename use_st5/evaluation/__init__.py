"""How good the embeddings are: the protocols of the published papers.

A group of tasks is one folder, or one file where it is small (bias, geometry), with the same parts:

    readers.py    the files as published → the group's data sets, and where they come from
    protocol.py   data sets and an encode function → scores; cites what it reproduces
    tasks.py      TASKS, as `registry` and the command line know them, and SECTIONS, what reports
                  show of them

tasks over one encoder), `result_store` and `record` (what it keeps and leaves), `classifiers`
(SentEval's), `published` (the papers' tables), `report` (the page of several records),
`preparation` (`use-st5 data prepare`).

Example:
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
