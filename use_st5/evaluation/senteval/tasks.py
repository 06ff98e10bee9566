"""SentEval's nine transfer tasks, with its own classifier and with scikit-learn's."""

from __future__ import annotations

from use_st5.evaluation.classifiers.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.classifiers.sklearn_classifier import SklearnClassifier
from use_st5.evaluation.senteval.datasets import DATASETS
from use_st5.evaluation.senteval.transfer_task import TransferTask

# What the toolkit's README names as comparable with the literature; these are the defaults.
_ORIGINAL = tuple(
    TransferTask(data.name.lower().replace("-", ""), "senteval", data, SentEvalClassifier())
    for data in DATASETS
)

# Not what papers report: converged, without mini-batches, early stopping or held-out rows; two to
# three times as quick where a task is two classes in two loops of folds.
_SKLEARN = tuple(
    TransferTask(f"{task.name}_sklearn", "senteval_sklearn", task.dataset, SklearnClassifier())
    for task in _ORIGINAL
)

TASKS = _ORIGINAL + _SKLEARN
