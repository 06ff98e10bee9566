"""The classifiers that SentEval puts on frozen embeddings, and how it validates them.

The protocol is that of facebookresearch/SentEval, senteval/tools/{classifier,validation}.py.
"""

from use_st5.evaluation.classifiers.classifier import Classifier, Features, LabelledFeatures
from use_st5.evaluation.classifiers.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.classifiers.sklearn_classifier import SklearnClassifier
from use_st5.evaluation.classifiers.validation import Classification, inner_kfold, kfold, split

__all__ = [
    "Classification",
    "Classifier",
    "Features",
    "LabelledFeatures",
    "SentEvalClassifier",
    "SklearnClassifier",
    "inner_kfold",
    "kfold",
    "split",
]
