"""The ways to bring published data sets into the folders that the evaluation tasks look for."""

from __future__ import annotations

import fnmatch
import functools
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from use_st5._files import atomic_path, sole_writer
from use_st5.data.data_folder import DataSource
from use_st5.evaluation.preparation.downloads import Downloads
from use_st5.evaluation.preparation.glue import GLUE, read_glue
from use_st5.evaluation.preparation.semeval import SEMEVAL, read_semeval
from use_st5.evaluation.preparation.senteval import SENTEVAL, read_senteval


@dataclass(frozen=True)
class Preparation:
    """What `use-st5 data prepare NAME` does.

    Attributes:
        name: NAME.
        writes: The folders it can write, relative to the data folder → their files.
        needs: What the folder it reads from has to hold, for people.
        read: The folder it reads from → of those folders that it can write now, their files and
            contents. None, where `reads_downloads` is False: where they lie by default.
        reads_downloads: Whether it cannot do without a folder to read from.
    """

    name: str
    writes: Mapping[str, tuple[str, ...]]
    needs: str
    read: Callable[[Any], dict[str, dict[str, bytes]]]
    reads_downloads: bool

    def gives(self, source: DataSource) -> bool:
        """Whether a data set is among what it can write."""
        files = [f"{folder}/{name}" for folder, names in self.writes.items() for name in names]
        return any(fnmatch.fnmatchcase(file, place) for file in files for place in source.places)


_FOLDERS = (
    Preparation(
        "sts",
        SEMEVAL,
        "the archives of SemEval, packed or not: STS2012-en-test.zip to STS2016-en-test.zip, "
        "Stsbenchmark.tar.gz, sick_train.zip, sick_trial.zip and sick_test_annotated.zip",
        lambda folder: read_semeval(Downloads(folder)),
        reads_downloads=True,
    ),
    Preparation(
        "senteval",
        SENTEVAL,
        "what SentEval's get_transfer_data.bash downloads, packed or not: datasmall_NB_ACL12.zip "
        "(MR, CR, SUBJ, MPQA), train_5500.label and TREC_10.label, sentiment-{train,dev,test}, "
        "stsa.fine.{train,dev,test}",
        lambda folder: read_senteval(Downloads(folder)),
        reads_downloads=True,
    ),
)


PREPARATIONS: dict[str, Preparation] = {each.name: each for each in _FOLDERS} | {
    name: Preparation(
        name,
        writes,
        "what TensorFlow Datasets has prepared (its data_dir)",
        functools.partial(read_glue, name),
        reads_downloads=False,
    )
    for name, writes in GLUE.items()
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
    found = preparation.read(source)
    if not found:
        raise FileNotFoundError(
            f"{source}: expected {preparation.needs}; found none of them whole."
        )
    written = []
    for place, files in found.items():
        folder = to / place
        if folder in left:
            continue
        with sole_writer(folder), atomic_path(folder) as temporary:
            if folder.exists():
                shutil.copytree(folder, temporary)
            else:
                temporary.mkdir()
            for name, content in files.items():
                (temporary / name).write_bytes(content)
        written.append(folder)
    return written, left
