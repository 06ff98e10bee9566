"""SentEval's transfer tasks: a simple classifier on frozen sentence embeddings.

Source: Conneau and Kiela, SentEval (LREC 2018, arXiv 1803.05449), and facebookresearch/SentEval.
"""

from use_st5.evaluation.senteval.protocol import evaluate_transfer
from use_st5.evaluation.senteval.transfer_dataset import TransferDataset
from use_st5.evaluation.senteval.transfer_sample import TransferSample
from use_st5.evaluation.senteval.transfer_score import TransferScore
from use_st5.evaluation.senteval.transfer_set import TransferSet

__all__ = [
    "TransferDataset",
    "TransferSample",
    "TransferScore",
    "TransferSet",
    "evaluate_transfer",
]
