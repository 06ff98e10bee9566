"""Evaluation of embeddings by the protocols of the published papers.

A module holds one kind of evaluation, from the published files to the scores: how the files are
read, the protocol with its source, and `TASKS`. `task` defines a task and lists all of them,
`runner` runs tasks on one encoder and records the results, `report` compares several records,
`labelled_texts` reads labelled texts, and `classifiers` learn from embeddings.

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
    from use_st5.evaluation.classification import TRANSFER_DATASETS as TRANSFER_DATASETS
    from use_st5.evaluation.classification import transfer_task as transfer_task
    from use_st5.evaluation.classifiers import LabelledFeatures as LabelledFeatures
    from use_st5.evaluation.classifiers import SentEvalClassifier as SentEvalClassifier
    from use_st5.evaluation.labelled_texts import LabelledDataset as LabelledDataset
    from use_st5.evaluation.labelled_texts import LabelledTexts as LabelledTexts
    from use_st5.evaluation.report import write_report as write_report
    from use_st5.evaluation.retrieval import RetrievalSet as RetrievalSet
    from use_st5.evaluation.retrieval import retrieval_scores as retrieval_scores
    from use_st5.evaluation.retrieval import retrieve as retrieve
    from use_st5.evaluation.runner import EvaluationRecord as EvaluationRecord
    from use_st5.evaluation.runner import evaluate as evaluate
    from use_st5.evaluation.sts import STS_SOURCES as STS_SOURCES
    from use_st5.evaluation.sts import STSPair as STSPair
    from use_st5.evaluation.sts import STSSet as STSSet
    from use_st5.evaluation.sts import evaluate_sts as evaluate_sts
    from use_st5.evaluation.sts import read_sts as read_sts
    from use_st5.evaluation.sts import score_similarities as score_similarities
    from use_st5.evaluation.task import EvaluationTask as EvaluationTask
    from use_st5.evaluation.task import TaskContext as TaskContext
    from use_st5.evaluation.task import TaskResult as TaskResult
    from use_st5.evaluation.task import select_tasks as select_tasks
    from use_st5.evaluation.task import with_data as with_data

__getattr__, __dir__, __all__ = public_names(__name__)
