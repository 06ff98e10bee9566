"""The files of the BUCC 2018 shared task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from use_st5.evaluation._text_files import check_new_id, numbered_lines


@dataclass(frozen=True)
class BUCCSet:
    """One part of a BUCC 2018 language pair.

    Attributes:
        foreign: Id → sentence in the language that is not English.
        english: Id → English sentence.
        gold: The ids of the translations, foreign and English.
    """

    foreign: dict[str, str]
    english: dict[str, str]
    gold: frozenset[tuple[str, str]]


def read_bucc(folder: str | Path, language: str, part: str) -> BUCCSet:
    """Reads a part of a language pair: both texts and the gold pairs.

    `xx-en.PART.xx` and `xx-en.PART.en` hold an id, a tab and a sentence per line, and
    `xx-en.PART.gold` the ids of a foreign sentence and of its translation.

    Args:
        folder: The folder with the three files.
        language: xx: "de", "fr", "ru" or "zh".
        part: "sample" and "training" as the organisers named them, or "dev" and "test" as XTREME
            renamed these two.

    Raises:
        FileNotFoundError: One of the files is missing.
        ValueError: A line has not two fields, an id stands twice or is unknown, or there are no
            gold pairs.
    """
    stem = Path(folder) / f"{language}-en.{part}"
    foreign, english = (_sentences(Path(f"{stem}.{side}")) for side in (language, "en"))
    path = Path(f"{stem}.gold")
    gold = set()
    for number, line in numbered_lines(path):
        pair = _two_fields(path, number, line)
        for one, sentences, side in zip(pair, (foreign, english), (language, "en"), strict=True):
            if one not in sentences:
                raise ValueError(
                    f"{path}:{number}: expected an id of {stem.name}.{side}, received {one!r}."
                )
        gold.add(pair)
    if not gold:
        raise ValueError(f"{path}: expected pairs of ids, received none.")
    return BUCCSet(foreign, english, frozenset(gold))


def _sentences(path: Path) -> dict[str, str]:
    sentences: dict[str, str] = {}
    for number, line in numbered_lines(path):
        one, sentence = _two_fields(path, number, line)
        check_new_id(path, number, one, sentences)
        sentences[one] = sentence
    if not sentences:
        raise ValueError(f"{path}: expected sentences, received none.")
    return sentences


def _two_fields(path: Path, number: int, line: str) -> tuple[str, str]:
    fields = tuple(field.strip() for field in line.split("\t"))
    if len(fields) != 2 or not all(fields):
        raise ValueError(
            f"{path}:{number}: expected two tab-separated fields that are not empty, received "
            f"{line[:80]!r}."
        )
    return fields
