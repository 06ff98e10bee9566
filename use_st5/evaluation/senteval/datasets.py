"""The nine transfer data sets, in the folders and under the names that SentEval gives them."""

from __future__ import annotations

from functools import partial

from use_st5.evaluation.data_folder import DataSource
from use_st5.evaluation.senteval.readers import (
    read_binary_sentiment,
    read_entailment,
    read_fine_sentiment,
    read_mrpc,
    read_sentences,
    read_trec,
)
from use_st5.evaluation.senteval.transfer_dataset import Read, TransferDataset

_SCRIPT = "data/downstream/get_transfer_data.bash of https://github.com/facebookresearch/SentEval"


def _file(place: str, read: Read, origin: str) -> tuple[DataSource, Read]:
    return DataSource(place, (place,), f"{origin}, or {_SCRIPT}", "research use"), read


def _two_classes(name: str, first: str, second: str, origin: str) -> TransferDataset:
    """Class 1 in the first file, class 0 in the second (senteval/binary.py)."""
    files = ((first, 1), (second, 0))
    return TransferDataset(
        name,
        tuple(
            _file(f"{name}/{file}", partial(read_sentences, label=label), origin)
            for file, label in files
        ),
    )


def _sentiment(name: str, folder: str, read: Read, origin: str) -> TransferDataset:
    train, dev, test = (
        (_file(f"SST/{folder}/sentiment-{part}", read, origin),)
        for part in ("train", "dev", "test")
    )
    return TransferDataset(name, train, dev, test)


def _sick(part: str) -> tuple[tuple[DataSource, Read]]:
    file = f"SICK_{part}.txt"
    source = DataSource(
        f"SICK/{file}",
        (f"sick2014/{file}", f"SICK/{file}"),
        "SemEval-2014 task 1, https://zenodo.org/records/2787612",
        "CC BY-NC-SA 3.0",
    )
    return ((source, read_entailment),)


_MOVIES = "https://www.cs.cornell.edu/people/pabo/movie-review-data"
_QUESTIONS = "https://cogcomp.seas.upenn.edu/Data/QA/QC"
_PARAPHRASES = "https://www.microsoft.com/en-us/download/details.aspx?id=52398"

MR = _two_classes("MR", "rt-polarity.pos", "rt-polarity.neg", _MOVIES)
CR = _two_classes(
    "CR",
    "custrev.pos",
    "custrev.neg",
    "https://www.cs.uic.edu/~liub/FBS/sentiment-analysis.html",
)
SUBJ = _two_classes("SUBJ", "subj.objective", "subj.subjective", _MOVIES)
MPQA = _two_classes("MPQA", "mpqa.pos", "mpqa.neg", "https://mpqa.cs.pitt.edu")
SST2 = _sentiment(
    "SST-2", "binary", read_binary_sentiment, "https://github.com/PrincetonML/SIF/tree/master/data"
)
SST5 = _sentiment(
    "SST-5",
    "fine",
    read_fine_sentiment,
    "https://github.com/AcademiaSinicaNLPLab/sentiment_dataset/tree/master/data",
)
TREC = TransferDataset(
    "TREC",
    train=(_file("TREC/train_5500.label", read_trec, _QUESTIONS),),
    test=(_file("TREC/TREC_10.label", read_trec, _QUESTIONS),),
)
MRPC = TransferDataset(
    "MRPC",
    train=(_file("MRPC/msr_paraphrase_train.txt", read_mrpc, _PARAPHRASES),),
    test=(_file("MRPC/msr_paraphrase_test.txt", read_mrpc, _PARAPHRASES),),
)
SICK_E = TransferDataset("SICK-E", _sick("train"), _sick("trial"), _sick("test_annotated"))

DATASETS = (MR, CR, SUBJ, MPQA, SST2, SST5, TREC, MRPC, SICK_E)
