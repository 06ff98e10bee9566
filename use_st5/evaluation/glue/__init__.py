"""SentGLUE (Sentence-T5 paper, section 8): GLUE's tasks on frozen sentence embeddings."""

from use_st5.evaluation.glue.protocol import glue_scores, pair_auc, predict_classes, predict_scores
from use_st5.evaluation.glue.readers import GlueDataset, LabelledTexts

__all__ = [
    "GlueDataset",
    "LabelledTexts",
    "glue_scores",
    "pair_auc",
    "predict_classes",
    "predict_scores",
]
