"""SentEval's transfer tasks: a small classifier on frozen sentence embeddings.

Source: Conneau and Kiela, SentEval (LREC 2018, arXiv 1803.05449), and facebookresearch/SentEval.
The files are those that its get_transfer_data.bash leaves; white space separates tokens.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation._text_files import numbered_lines, read_columns, read_lines, split_fields
from use_st5.evaluation.classifiers import (
    Classifier,
    LabelledFeatures,
    SklearnClassifier,
    inner_kfold,
    kfold,
    split,
)
from use_st5.evaluation.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.task import EvaluationTask, Progress, TaskContext, TaskResult
from use_st5.vector_store import Encode, VectorCache, as_cache

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
            raise ValueError(f"{self.name}: expected test samples too, received only dev samples.")

    def parts(self) -> dict[str, Sequence[TransferSample]]:
        """Those of "train", "dev" and "test" that there are."""
        every = {"train": self.train, "dev": self.dev, "test": self.test}
        return {part: samples for part, samples in every.items() if samples is not None}


Read = Callable[..., list[TransferSample]]


def _reader(samples: Callable[..., Iterator[TransferSample]]) -> Read:
    """A reader of files: raises FileNotFoundError, or ValueError with file and line."""

    @functools.wraps(samples)
    def read(path: str | Path, **options: Any) -> list[TransferSample]:
        if not (found := [*samples(Path(path), **options)]):
            raise ValueError(f"{path}: expected labelled sentences, found none.")
        return found

    return read


@_reader
def read_sentences(path: Path, *, label: int) -> Iterator[TransferSample]:
    """Sentences of one class, one a line (ISO-8859-1): MR, CR, SUBJ, MPQA."""
    lines = read_lines(path, encoding="latin-1")
    yield from (_sample(label, line) for line in lines if lines != [""])


@_reader
def read_binary_sentiment(path: Path) -> Iterator[TransferSample]:
    """SST/binary: a sentence, a tab, 0 or 1."""
    for number, line in numbered_lines(path):
        sentence, label = split_fields(path, number, line, at_least=2)[:2]
        yield _sentence(path, number, sentence, _class(path, number, label, _YES_NO))


@_reader
def read_fine_sentiment(path: Path) -> Iterator[TransferSample]:
    """SST/fine: a digit of 0 … 4, a space, a sentence."""
    for number, line in numbered_lines(path):
        label, _, sentence = line.partition(" ")
        yield _sentence(path, number, sentence, _class(path, number, label, tuple("01234")))


@_reader
def read_trec(path: Path) -> Iterator[TransferSample]:
    """TREC: a coarse class, a colon, a fine class, a space, a question (ISO-8859-1)."""
    for number, line in numbered_lines(path, encoding="latin-1"):
        label, _, rest = line.partition(":")
        question = rest.partition(" ")[2]
        yield _sentence(path, number, question, _class(path, number, label, _TREC))


@_reader
def read_mrpc(path: Path) -> Iterator[TransferSample]:
    """MRPC (Dolan and Brockett 2005): columns Quality, #1 String and #2 String."""
    yield from _pairs(path, ("#1 String", "#2 String", "Quality"), _YES_NO)


@_reader
def read_entailment(path: Path) -> Iterator[TransferSample]:
    """SICK-E: columns sentence_A, sentence_B and entailment_judgment."""
    columns = ("sentence_A", "sentence_B", "entailment_judgment")
    yield from _pairs(path, columns, ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"))


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
            _file(f"{name}/{file}", functools.partial(read_sentences, label=label), origin)
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


def evaluate_transfer(
    encode: Encode,
    data: TransferSet,
    *,
    classifier: Classifier | None = None,
    progress: Progress | None = None,
) -> TaskResult:
    """Trains a classifier on embeddings and tests it.

    Samples are sorted by their numbers of tokens and their labels first, as in the original: the
    folds depend on their order. Pairs have the features (|a − b|, a·b) (senteval/mrpc.py, sick.py).

    Args:
        encode: Sentences → embeddings `[sentences, dim]`; each distinct sentence is encoded once.
        data: Train alone is validated by `inner_kfold`, train and test by `kfold`, train, dev and
            test by `split`.
        classifier: `SklearnClassifier()` by default.
        progress: Shows how far the training is.

    Returns:
        "accuracy" on the test samples, and "f1" of class 1 where there are pairs of two classes,
        in 0 … 1; the details say what was chosen, once for each final classifier.

    Raises:
        ValueError: A class has fewer samples than there are folds, or `encode` gives another shape
            or numbers that are not finite.
    """
    classifier = classifier or SklearnClassifier()
    embed = as_cache(encode)
    parts = {part: _features(embed, samples) for part, samples in data.parts().items()}
    if data.test is None:
        found = inner_kfold(classifier, parts["train"], progress=progress)
    elif data.dev is None:
        found = kfold(classifier, **parts, progress=progress)
    else:
        found = split(classifier, **parts, progress=progress)
    labels = parts.get("test", parts["train"]).labels
    scores = {"accuracy": found.test_accuracy}
    if labels.max() < 2 and len(data.train[0].sentences) == 2:
        scores["f1"] = _f1(found.predictions, labels)
    return TaskResult(
        "accuracy",
        scores,
        {part: len(samples) for part, samples in data.parts().items()},
        {
            "classifier": found.protocol,
            "dev_accuracy": found.dev_accuracy,
            "regularization": [*found.regularization],
        },
    )


def _features(embed: VectorCache, samples: Sequence[TransferSample]) -> LabelledFeatures:
    ordered = sorted(samples, key=TransferSample.order)
    columns = zip(*(sample.sentences for sample in ordered), strict=True)
    # What the batchers of SentEval's examples give an encoder for no tokens.
    vectors = [embed([sentence or "." for sentence in column]) for column in columns]
    labels = np.array([sample.label for sample in ordered])
    return LabelledFeatures(classifier_features(vectors), labels)


def classifier_features(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """What SentEval's classifiers see: a sentence's vector; of two, |u − v| and u·v side by side.

    Args:
        vectors: One or two arrays `[samples, dim]`.

    Returns:
        `[samples, dim]`, or of pairs `[samples, 2·dim]`.
    """
    if len(vectors) == 1:
        return vectors[0]
    first, second = vectors
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def _f1(predictions: np.ndarray, labels: np.ndarray) -> float:
    """2·hits / (predicted + true) of class 1; 0 where there are neither."""
    hits = int(((predictions == 1) & (labels == 1)).sum())
    return 2 * hits / max(int((predictions == 1).sum() + (labels == 1).sum()), 1)


def transfer_task(
    dataset: TransferDataset, classifier: Classifier, *, suffix: str = ""
) -> EvaluationTask:
    """Accuracy of a classifier on frozen embeddings.

    Args:
        dataset: The files.
        classifier: What is trained; its seed is that of the run.
        suffix: What follows the names of the set and of the group, for another classifier.
    """
    folds = classifier.folds
    if dataset.dev:
        validation = "the dev set chooses the regularisation"
    elif dataset.test:
        validation = f"{folds} folds of the training set choose the regularisation"
    else:
        validation = (
            f"mean of {folds} folds, and {folds} folds inside each training part choose the "
            "regularisation"
        )

    def score(context: TaskContext, data: TransferSet) -> TaskResult:
        seeded = dataclasses.replace(classifier, seed=context.seed)
        return evaluate_transfer(context.embed, data, classifier=seeded, progress=context.progress)

    return EvaluationTask(
        f"{dataset.name.lower().replace('-', '')}{suffix}",
        f"senteval{suffix}",
        f"{dataset.name} ({suffix[1:]})" if suffix else dataset.name,
        f"Accuracy of {classifier.title} on frozen embeddings; {validation}",
        score=score,
        reader=dataset.read,
        sources=dataset.sources,
        options=classifier.settings(),
    )


# The classifier that the toolkit's README names as comparable with the literature, and then
# scikit-learn's: converged, without mini-batches, early stopping or held-out rows, and two to three
# times as quick where a task is two classes in two loops of folds.
TASKS = (
    *(transfer_task(dataset, SentEvalClassifier()) for dataset in DATASETS),
    *(transfer_task(dataset, SklearnClassifier(), suffix="_sklearn") for dataset in DATASETS),
)
