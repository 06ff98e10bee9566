"""SentEval's nine transfer data sets: the files as its get_transfer_data.bash leaves them.

Tokens are what white space separates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation._text_files import (
    numbered_lines,
    read_columns,
    read_lines,
    split_fields,
)

_YES_NO = ("0", "1")
_TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


@dataclass(frozen=True)
class TransferSample:
    """What a classifier is to tell apart.

    Attributes:
        sentences: One or two, each in tokens joined by single spaces.
        label: The class, from 0.
    """

    sentences: tuple[str, ...]
    label: int

    def order(self) -> tuple[int, ...]:
        """What SentEval sorts by: the numbers of tokens, then the label."""
        return *(len(sentence.split()) for sentence in self.sentences), self.label


@dataclass(frozen=True)
class TransferSet:
    """Samples, in any order; which parts there are decides on the validation.

    Attributes:
        name: For example "MR".
        train: The training samples; all samples where there is no test set.
        dev: Where there are samples to choose the regularisation on.
        test: Where there is a test set.

    Raises:
        ValueError: A part is there without samples, or dev is there without test.
    """

    name: str
    train: Sequence[TransferSample]
    dev: Sequence[TransferSample] | None = None
    test: Sequence[TransferSample] | None = None

    def __post_init__(self) -> None:
        if empty := [part for part, samples in self.parts().items() if not samples]:
            raise ValueError(f"{self.name}: expected samples, received none for {empty}.")
        if self.dev is not None and self.test is None:
            raise ValueError(f"{self.name}: expected test samples beside dev samples.")

    def parts(self) -> dict[str, Sequence[TransferSample]]:
        """Those of "train", "dev" and "test" that there are."""
        every = {"train": self.train, "dev": self.dev, "test": self.test}
        return {part: samples for part, samples in every.items() if samples is not None}


def read_sentences(path: str | Path, *, label: int) -> list[TransferSample]:
    """Sentences of one class, one a line: MR, CR, SUBJ, MPQA.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It has no lines.
    """
    lines = read_lines(path, encoding="latin-1")
    return _some(path, (_sample(label, line) for line in lines if lines != [""]))


def read_binary_sentiment(path: str | Path) -> list[TransferSample]:
    """SST/binary: a sentence, a tab, 0 or 1.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not in the format, or there is none.
    """
    path = Path(path)
    return _some(path, _binary_sentiment(path))


def read_fine_sentiment(path: str | Path) -> list[TransferSample]:
    """SST/fine: a digit of 0 … 4, a space, a sentence.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not in the format, or there is none.
    """
    path = Path(path)
    return _some(path, _fine_sentiment(path))


def read_trec(path: str | Path) -> list[TransferSample]:
    """TREC: a coarse class, a colon, a fine class, a space, a question (ISO-8859-1).

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not in the format, or there is none.
    """
    path = Path(path)
    return _some(path, _trec(path))


def read_mrpc(path: str | Path) -> list[TransferSample]:
    """MRPC (Dolan and Brockett 2005): columns Quality, #1 String and #2 String.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A column is missing, a line is not in the format, or there is none.
    """
    path = Path(path)
    return _some(path, _pairs(path, ("#1 String", "#2 String", "Quality"), _YES_NO))


def read_entailment(path: str | Path) -> list[TransferSample]:
    """SICK-E: columns sentence_A, sentence_B and entailment_judgment.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A column is missing, a line is not in the format, or there is none.
    """
    path = Path(path)
    columns = ("sentence_A", "sentence_B", "entailment_judgment")
    return _some(path, _pairs(path, columns, ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")))


def _binary_sentiment(path: Path) -> Iterator[TransferSample]:
    for number, line in numbered_lines(path):
        sentence, label = split_fields(path, number, line, at_least=2)[:2]
        yield _sentence(path, number, sentence, _class(path, number, label, _YES_NO))


def _fine_sentiment(path: Path) -> Iterator[TransferSample]:
    for number, line in numbered_lines(path):
        label, _, sentence = line.partition(" ")
        yield _sentence(path, number, sentence, _class(path, number, label, tuple("01234")))


def _trec(path: Path) -> Iterator[TransferSample]:
    for number, line in numbered_lines(path, encoding="latin-1"):
        label, _, rest = line.partition(":")
        question = rest.partition(" ")[2]
        yield _sentence(path, number, question, _class(path, number, label, _TREC))


def _sentence(path: Path, number: int, text: str, label: int) -> TransferSample:
    if not text.strip():
        raise ValueError(f"{path}:{number}: expected a sentence, received none.")
    return _sample(label, text)


def _pairs(
    path: Path, columns: tuple[str, str, str], classes: tuple[str, ...]
) -> Iterator[TransferSample]:
    for number, (first, second, label) in read_columns(path, columns):
        yield _sample(_class(path, number, label, classes), first, second)


def _sample(label: int, *sentences: str) -> TransferSample:
    return TransferSample(tuple(" ".join(text.split()) for text in sentences), label)


def _class(path: Path, number: int, text: str, names: tuple[str, ...]) -> int:
    if (name := text.strip()) not in names:
        raise ValueError(
            f"{path}:{number}: expected a class of {', '.join(names)}, received {name[:40]!r}."
        )
    return names.index(name)


def _some(path: str | Path, samples: Iterator[TransferSample]) -> list[TransferSample]:
    if not (found := [*samples]):
        raise ValueError(f"{path}: expected labelled sentences, found none.")
    return found


Read = Callable[[Path], list[TransferSample]]


@dataclass(frozen=True)
class TransferDataset:
    """Files and how each is read; samples of several files of a part follow each other.

    Attributes:
        name: For example "MR".
        train: Files with their readers.
        dev: Likewise; empty where there is no such part.
        test: Likewise.
    """

    name: str
    train: tuple[tuple[DataSource, Read], ...]
    dev: tuple[tuple[DataSource, Read], ...] = ()
    test: tuple[tuple[DataSource, Read], ...] = ()

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """All files."""
        return tuple(source for source, _ in (*self.train, *self.dev, *self.test))

    def read(self, data: DataFolder) -> TransferSet:
        """Reads all files.

        Raises:
            MissingDataError: A file is missing; the message says how to get it.
            ValueError: A file is not in its format; the message names file and line.
        """
        parts = {
            part: [sample for source, read in files for sample in read(data.find(source))]
            for part, files in (("train", self.train), ("dev", self.dev), ("test", self.test))
            if files
        }
        return TransferSet(self.name, **parts)


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
