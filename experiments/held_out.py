"""The sentences of the test sets and of the probe, which must not be in a training text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from use_st5.data import DataFolder, normalized
from use_st5.evaluation import (
    STS_SOURCES,
    TRANSFER_DATASETS,
    LabelledDataset,
    read_sts,
    select_tasks,
)

_STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B dev", "STS-B test", "SICK-R test")
_TRANSFER = ("MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC")
# In these sets, texts of one or two words are common phrases, such as MPQA's "good".
_FEWEST_WORDS = 3

Example = TypeVar("Example", bound=Mapping[str, Any])


def held_out_sentences(data: Path, *, required: bool = True) -> set[str]:
    """The sentences of the test sets in a folder, as `normalized` returns them.

    These are all sentences of the STS sets (including development splits), and the test texts of
    SentEval's transfer tasks that have three words or more; for a task that is tested by
    cross-validation these are all its texts. The sentences of the minimal pairs, which need no
    folder, are always included.

    Args:
        data: The data folder.
        required: Whether there must be an STS set.
    """
    folder = DataFolder(data)
    sources = [STS_SOURCES[name] for name in _STS]
    sets = [read_sts(folder, source) for source in sources if folder.has(source)]
    if required and not sets:
        missing = (" or ".join(source.places) for source in sources)
        raise FileNotFoundError(
            f"{folder.path}: expected at least one of {', '.join(missing)} there or up to two "
            "folders deeper, found none."
        )
    of_sts = {
        normalized(sentence)
        for each in sets
        for pair in each.pairs
        for sentence in (pair.first, pair.second)
    }
    datasets = [TRANSFER_DATASETS[name] for name in _TRANSFER]
    texts = {normalized(text) for each in datasets for text in _test_texts(each, folder)}
    of_transfer = {text for text in texts if text.count(" ") + 1 >= _FEWEST_WORDS}
    of_probe = {
        normalized(text)
        for items in probe_items(folder).values()
        for item in items
        for text in item
    }
    return of_sts | of_transfer | of_probe


def probe_items(folder: DataFolder) -> dict[str, list[list[str]]]:
    """The sentences of the minimal pairs."""
    (task,) = select_tasks("minimal_pairs")
    return task.read(folder)


def _test_texts(dataset: LabelledDataset, folder: DataFolder) -> Iterator[str]:
    """The test texts of a task; none if its files are missing."""
    for source, read in dataset.test or dataset.train:
        if folder.has(source):
            yield from (text for column in read(folder.find(source)).columns for text in column)


def without_held_out(examples: Iterable[Example], held_out: Collection[str]) -> Iterator[Example]:
    """The examples without held-out texts.

    Args:
        examples: Values by name; all values that are strings are compared.
        held_out: Sentences as `normalized` returns them.
    """
    for example in examples:
        texts = (value for value in example.values() if isinstance(value, str))
        if not any(normalized(text) in held_out for text in texts):
            yield example
