"""All preparations by name, and the writing of what they give."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path

from use_st5._files import atomic_path, sole_writer
from use_st5.evaluation.preparation import glue, semeval, senteval
from use_st5.evaluation.preparation.downloads import Downloads
from use_st5.evaluation.preparation.preparation import Preparation
from use_st5.evaluation.preparation.prepared_set import PreparedSet

_FOLDERS = (
    Preparation(
        "sts",
        semeval.WRITES,
        "the archives of SemEval, packed or not: STS2012-en-test.zip to STS2016-en-test.zip, "
        "Stsbenchmark.tar.gz, sick_train.zip, sick_trial.zip and sick_test_annotated.zip",
        lambda folder: semeval.semeval_sets(Downloads(folder)),
        reads_downloads=True,
    ),
    Preparation(
        "senteval",
        senteval.WRITES,
        "what SentEval's get_transfer_data.bash downloads, packed or not: datasmall_NB_ACL12.zip "
        "(MR, CR, SUBJ, MPQA), train_5500.label and TREC_10.label, sentiment-{train,dev,test}, "
        "stsa.fine.{train,dev,test}",
        lambda folder: senteval.senteval_sets(Downloads(folder)),
        reads_downloads=True,
    ),
)


def _glue_sets(name: str, folder: Path | None) -> Iterator[PreparedSet]:
    yield glue.glue_set(name, folder)


PREPARATIONS: dict[str, Preparation] = {each.name: each for each in _FOLDERS} | {
    name: Preparation(
        name,
        writes,
        "what TensorFlow Datasets has prepared (its data_dir)",
        functools.partial(_glue_sets, name),
        reads_downloads=False,
    )
    for name, writes in glue.WRITES.items()
}


def prepare(
    preparation: Preparation, to: Path, *, source: Path | None = None, overwrite: bool = False
) -> tuple[list[Path], list[Path]]:
    """Writes the data sets that are there; each appears when it is whole.

    Args:
        preparation: One of `PREPARATIONS`.
        to: The data folder; created where it is missing.
        source: The folder to read from.
        overwrite: Whether files that exist are replaced; otherwise a folder that holds any of a
            set's files stays as it is. Other files in a folder stay in either case.

    Returns:
        The folders that were written to, and those that were left as they are.

    Raises:
        FileNotFoundError: `source` is missing, or holds none of the sets.
        ValueError: `source` holds something damaged.
        ConnectionError: A download failed.
    """
    left = [
        to / place
        for place, names in preparation.writes.items()
        if not overwrite and any((to / place / name).exists() for name in names)
    ]
    if len(left) == len(preparation.writes):
        return [], left
    found = [*preparation.sets(source)]
    if not found:
        raise FileNotFoundError(
            f"{source}: expected {preparation.needs}; found none of them whole."
        )
    written = []
    for each in found:
        folder = to / each.place
        if folder in left:
            continue
        with sole_writer(folder), atomic_path(folder) as temporary:
            if folder.exists():
                shutil.copytree(folder, temporary)
            else:
                temporary.mkdir()
            for name, content in each.files.items():
                (temporary / name).write_bytes(content)
        written.append(folder)
    return written, left
