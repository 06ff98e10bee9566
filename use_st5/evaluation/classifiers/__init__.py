"""The classifiers that SentEval puts on frozen embeddings, and how it validates them.

The protocol is that of facebookresearch/SentEval, senteval/tools/{classifier,validation}.py.
"""

from use_st5.evaluation.classifiers.classification import Classification
from use_st5.evaluation.classifiers.classifier import Classifier
from use_st5.evaluation.classifiers.features import Features
from use_st5.evaluation.classifiers.labelled_features import LabelledFeatures
from use_st5.evaluation.classifiers.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.classifiers.sklearn_classifier import SklearnClassifier
from use_st5.evaluation.classifiers.validation import inner_kfold, kfold, split

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
