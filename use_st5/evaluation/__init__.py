"""How good the embeddings are: the protocols of the published papers.

Example:
    >>> import use_st5
    >>> from use_st5.evaluation import evaluate, select_tasks
    >>> record = evaluate(use_st5.load("use_dan_en"), select_tasks("weat"))
    >>> record.tasks["weat1"]["scores"]["effect_size"] > 1
    True
"""

from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.registry import select_tasks
from use_st5.evaluation.runner import evaluate

__all__ = ["EvaluationRecord", "evaluate", "select_tasks"]
