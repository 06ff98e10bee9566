"""Reads the files of SentEval's transfer tasks, as its get_transfer_data.bash leaves them.

Tokens are what white space separates.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from use_st5.evaluation._text_files import (
    numbered_lines,
    read_columns,
    read_lines,
    split_fields,
)
from use_st5.evaluation.senteval.transfer_sample import TransferSample

_YES_NO = ("0", "1")
_TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


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
