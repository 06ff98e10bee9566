"""SentEval's transfer tasks: a simple classifier on frozen sentence embeddings.

Source: Conneau and Kiela, SentEval (LREC 2018, arXiv 1803.05449), and facebookresearch/SentEval.
"""

from use_st5.evaluation.senteval.protocol import TransferScore, evaluate_transfer
from use_st5.evaluation.senteval.readers import TransferDataset, TransferSample, TransferSet

__all__ = [
    "TransferDataset",
    "TransferSample",
    "TransferScore",
    "TransferSet",
    "evaluate_transfer",
]
