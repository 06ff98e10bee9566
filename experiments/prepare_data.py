"""Converts published data sets to the folders that the evaluation tasks read.

    python -m experiments.prepare_data sts --from downloads --to DATA
    python -m experiments.prepare_data glue/cola glue/rte --from ~/tensorflow_datasets --to DATA

"sts" makes STS12 to STS16, the STS Benchmark and SICK from SemEval's archives. "senteval" makes MR,
CR, SUBJ, MPQA, TREC and SST like SentEval's own script, with its tokenizer. Both read the downloads
in --from, packed or unpacked, and write the sets that they find. glue/cola, glue/sst2, glue/mrpc,
glue/stsb, glue/qqp, glue/mnli, glue/qnli and glue/rte come from TensorFlow Datasets: it downloads
them, or reads its data_dir in --from. A set with an existing file is skipped, unless --overwrite is
given; other files in its folder are never changed. The folders that were written are printed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import re
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from use_st5.io import atomic_path, sole_writer

_ZIP = (".zip",)
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
# Thirty times the largest file that is looked for; an archive may promise any size.
_LARGEST = 100_000_000

# SemEval: the subsets whose sentences and gold scores are both published. Each year's archive has
# another name for its folder, and that of 2016 also for its files.
_YEARS = {
    "12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "13": ("FNWN", "headlines", "OnWN"),
    "14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
_WHOLE = {
    "stsbenchmark": ("sts-train.csv", "sts-dev.csv", "sts-test.csv"),
    "sick2014": ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"),
}
# Folder → files.
SEMEVAL = {
    f"STS{year}-en-test": tuple(
        f"STS.{kind}.{subset}.txt" for subset in subsets for kind in ("input", "gs")
    )
    for year, subsets in _YEARS.items()
} | _WHOLE
# One sentence per line. SentEval tokenises these; the other sets are published as tokens.
_SENTENCES = {
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "SUBJ": ("subj.subjective", "subj.objective"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
}
_QUESTIONS = ("train_5500.label", "TREC_10.label")
_SPLITS = ("train", "dev", "test")
# The names of a set's files in the place from which SentEval's script downloads them.
_SENTIMENT = {"SST/binary": "sentiment-{}", "SST/fine": "stsa.fine.{}"}
# Folder → files.
SENTEVAL = {
    **_SENTENCES,
    "TREC": _QUESTIONS,
    **{place: tuple(f"sentiment-{split}" for split in _SPLITS) for place in _SENTIMENT},
}
_BREAKS = re.compile(r"[\t\r\n]+")
_ENTAILMENT = ("entailment", "not_entailment")


@dataclass(frozen=True)
class _Table:
    """One of GLUE's data sets.

    Attributes:
        place: GLUE's folder.
        columns: Heading in GLUE's file → key in TFDS, in GLUE's order; the last one is the label.
            Headings whose content TFDS does not have (numbers of articles, parse trees) are left
            out: nothing reads them. The key "" gives an empty field.
        classes: The labels as GLUE writes them; empty if it writes numbers.
        dev: GLUE's file → split of TFDS.
        header: Whether the file begins with the headings.
    """

    place: str
    columns: dict[str, str]
    classes: tuple[str, ...] = ()
    dev: dict[str, str] = field(default_factory=lambda: {"dev.tsv": "validation"})
    header: bool = True


_PAIR = {"sentence1": "sentence1", "sentence2": "sentence2"}
_TABLES = {
    # Source, judgement, the author's own mark, sentence.
    "cola": _Table("CoLA", {"0": "", "1": "label", "2": "", "3": "sentence"}, header=False),
    "sst2": _Table("SST-2", {"sentence": "sentence", "label": "label"}),
    "mrpc": _Table(
        "MRPC", {"Quality": "label", "#1 String": "sentence1", "#2 String": "sentence2"}
    ),
    "stsb": _Table("STS-B", {"index": "idx", **_PAIR, "score": "label"}),
    "qqp": _Table(
        "QQP",
        {
            "id": "idx",
            "question1": "question1",
            "question2": "question2",
            "is_duplicate": "label",
        },
    ),
    "mnli": _Table(
        "MNLI",
        {"index": "idx", "sentence1": "premise", "sentence2": "hypothesis", "gold_label": "label"},
        ("entailment", "neutral", "contradiction"),
        {
            "dev_matched.tsv": "validation_matched",
            "dev_mismatched.tsv": "validation_mismatched",
        },
    ),
    "qnli": _Table(
        "QNLI",
        {"index": "idx", "question": "question", "sentence": "sentence", "label": "label"},
        _ENTAILMENT,
    ),
    "rte": _Table("RTE", {"index": "idx", **_PAIR, "label": "label"}, _ENTAILMENT),
}
# Name in TFDS → folder → files.
GLUE = {f"glue/{name}": {table.place: ("train.tsv", *table.dev)} for name, table in _TABLES.items()}


class Downloads:
    """Looks files up in a folder of downloads; archives need not be unpacked.

    Nothing is unpacked to the disk: members of archives are read into memory when they are needed,
    and their paths are only compared.

    Args:
        folder: The folder; it is searched with all folders below it.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise FileNotFoundError(f"{folder}: expected a folder of downloads, found none.")
        # The folder a file is in (with the archive, if it is in one) and its name → where it is.
        self._places: dict[tuple[str, str], tuple[Path, str]] = {}
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                self._add(path)

    def folder_of(self, names: Iterable[str]) -> str | None:
        """The first folder, by its path, that has files of all these names; None if none has."""
        required_names = set(names)
        for folder in sorted({folder for folder, _ in self._places}):
            if all((folder, name) in self._places for name in required_names):
                return folder
        return None

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder that `folder_of` gave, sorted."""
        return sorted(name for each, name in self._places if each == folder)

    def read(self, folder: str, name: str) -> bytes:
        """The content of a file in a folder that `folder_of` gave."""
        path, member = self._places[folder, name]
        if not member:
            return path.read_bytes()
        with _readable(path):
            return _read_member(path, member)

    def _add(self, path: Path) -> None:
        inside = path.relative_to(self.folder).as_posix()
        if not path.name.endswith(_ZIP + _TAR):
            folder = path.parent.relative_to(self.folder).as_posix()
            self._places[folder, path.name] = (path, "")
            return
        with _readable(path):
            members = [*_members(path)]
        for member in members:
            place = PurePosixPath(inside, member)
            self._places[str(place.parent), place.name] = (path, member)


def _members(archive: Path) -> Iterator[str]:
    if archive.name.endswith(_ZIP):
        with zipfile.ZipFile(archive) as opened:
            yield from (each.filename for each in opened.infolist() if not each.is_dir())
    else:
        with tarfile.open(archive) as opened:
            yield from (each.name for each in opened if each.isfile())


def _read_member(archive: Path, member: str) -> bytes:
    if archive.name.endswith(_ZIP):
        with zipfile.ZipFile(archive) as opened:
            _check_size(member, opened.getinfo(member).file_size)
            return opened.read(member)
    with tarfile.open(archive) as opened:
        _check_size(member, opened.getmember(member).size)
        stream = opened.extractfile(member)
        if stream is None:
            raise ValueError(f"{archive}: expected {member} to be a file, found something else.")
        return stream.read()


def _check_size(member: str, size: int) -> None:
    if size > _LARGEST:
        raise ValueError(f"{member}: expected at most {_LARGEST:,} bytes, found {size:,}")


@contextmanager
def _readable(archive: Path) -> Iterator[None]:
    """Turns all errors of the libraries for damaged archives into one with the archive's name."""
    try:
        yield
    # BadZipFile, TarError, zlib.error, LZMAError, EOFError, RuntimeError (encrypted), KeyError …
    except Exception as error:
        raise ValueError(
            f"{archive}: expected an archive that can be read ({error}). Download it again."
        ) from error


def read_semeval(downloads: Downloads) -> dict[str, dict[str, bytes]]:
    """Reads the downloaded data sets of STS12 to STS16, the STS Benchmark and SICK.

    The layout is that of SentEval's script, but only names of folders and files change: the script
    also tokenises the sentences. Readmes and licences are included.

    Returns:
        Folder → file → content, for the sets that are complete.
    """
    contents = {}
    for year, subsets in _YEARS.items():
        for prefix in ("STS", f"STS20{year}"):
            names = {
                f"{prefix}.{kind}.{subset}.txt": f"STS.{kind}.{subset}.txt"
                for subset in subsets
                for kind in ("input", "gs")
            }
            folder = downloads.folder_of(names)
            if folder is not None:
                names |= {name: name for name in downloads.names(folder) if _is_about(name)}
                contents[f"STS{year}-en-test"] = {
                    new: downloads.read(folder, old) for old, new in names.items()
                }
                break
    for place, files in _WHOLE.items():
        # Each of SICK's three files is published in its own archive.
        folders = {
            name: each for name in files if (each := downloads.folder_of([name])) is not None
        }
        if len(folders) == len(files):
            last_folder = folders[files[-1]]
            folders |= {
                name: last_folder for name in downloads.names(last_folder) if _is_about(name)
            }
            contents[place] = {
                name: downloads.read(folder, name) for name, folder in folders.items()
            }
    return contents


def _is_about(name: str) -> bool:
    """Whether a file says what the others are and who may use them."""
    return "readme" in name.lower() or "license" in name.lower()


def read_senteval(downloads: Downloads) -> dict[str, dict[str, bytes]]:
    """Reads the downloaded transfer sets of SentEval, in the form that its script gives them.

    The script is data/downstream/get_transfer_data.bash of facebookresearch/SentEval. Its other
    sets need no preparation (MRPC) or have their own preparation (SICK, the STS Benchmark).

    Returns:
        Folder → file → content, for the sets that are complete.
    """
    contents = {}
    for place, names in _SENTENCES.items():
        if (folder := downloads.folder_of(names)) is not None:
            contents[place] = {name: _tokenised(downloads.read(folder, name)) for name in names}
    if (folder := downloads.folder_of(_QUESTIONS)) is not None:
        contents["TREC"] = {
            name: downloads.read(folder, name).translate(None, b"`'") for name in _QUESTIONS
        }
    for place, pattern in _SENTIMENT.items():
        new_names = {pattern.format(split): f"sentiment-{split}" for split in _SPLITS}
        if (folder := downloads.folder_of(new_names)) is not None:
            contents[place] = {new: downloads.read(folder, old) for old, new in new_names.items()}
    return contents


def _tokenised(content: bytes) -> bytes:
    lines = content.removesuffix(b"\n").split(b"\n")
    return b"".join(penn_tokens(line) + b"\n" for line in lines)


# The rules of the Penn Treebank's tokenizer.sed (R. MacIntyre, 1995) in its order, because the
# result depends on it: each rule is applied to the whole line before the next one.
_PUNCTUATION = (
    (r'^"', "`` "),
    (r'([ (\[{<])"', r"\1 `` "),
    (r"\.\.\.", " ... "),
    (r"[,;:@#$%&]", r" \g<0> "),
    # The full stop that ends the line, before closing brackets and quotes.
    (r"""([^.])\.([\])}>"']*)[ \t]*$""", r"\1 .\2 "),
    (r"[?!\[\](){}<>]", r" \g<0> "),
    ("--", " -- "),
    ("^|$", " "),  # so that the rules below find a space around every word
    ('"', " '' "),
    ("([^'])' ", r"\1 ' "),
)
_CLITICS = ("'[sSmMdD]", "'ll", "'re", "'ve", "n't", "'LL", "'RE", "'VE", "N'T")
_PAIRS = (
    ("[Cc]an", "not"),
    ("[Dd]'", "ye"),
    ("[Gg]im", "me"),
    ("[Gg]on", "na"),
    ("[Gg]ot", "ta"),
    ("[Ll]em", "me"),
    ("[Mm]ore", "'n"),
    ("'[Tt]", "is"),
    ("'[Tt]", "was"),
    ("[Ww]an", "na"),
)
_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        *_PUNCTUATION,
        *((f"{clitic} ", r" \g<0>") for clitic in _CLITICS),
        *((f" ({first}){second} ", rf" \1 {second} ") for first, second in _PAIRS),
        (" +", " "),
        ("^ ", ""),
    )
)


def penn_tokens(line: bytes) -> bytes:
    """Returns a line of text as SentEval writes it: after `cat -v | sed -f tokenizer.sed`.

    Args:
        line: A line in any encoding, without its line feed.

    Returns:
        ASCII: the tokens with single spaces between them and one after the last. A byte beyond
        ASCII is written as `cat -v` does ("é" in Latin-1 is "M-i"); SentEval's data, and so every
        published score, has them like this.
    """
    text = "".join(map(_visible, line))
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.encode("ascii")


def _visible(byte: int) -> str:
    """One byte as `cat -v` shows it; tabs stay."""
    if byte >= 128:
        byte -= 128
        return f"M-{_visible(byte)}" if byte != 9 else "M-^I"
    if byte == 9 or 32 <= byte < 127:
        return chr(byte)
    return f"^{chr(byte ^ 64)}"


def read_glue(name: str, data_dir: Path | None) -> dict[str, dict[str, bytes]]:
    """The train and dev files of one of GLUE's data sets, in GLUE's own tab-separated layout.

    The test splits have no labels and are left out. A tab or a line break inside a sentence becomes
    a space, because the layout has no quoting.

    Args:
        name: One of `GLUE`, for example "glue/cola".
        data_dir: The folder in which TFDS has prepared it; None: TFDS's default folder, with a
            download if it is not there.

    Returns:
        GLUE's folder → file → content.
    """
    table = _TABLES[name.removeprefix("glue/")]
    splits = {"train.tsv": "train", **table.dev}
    files = {
        file: _file(table, _rows(name, split, table, data_dir)) for file, split in splits.items()
    }
    return {table.place: files}


def _rows(name: str, split: str, table: _Table, data_dir: Path | None) -> Iterator[dict[str, Any]]:
    from use_st5.data import TFDSReader

    keys = {key: key for key in table.columns.values() if key}
    try:
        with _unheard_retries():
            reader = TFDSReader(
                name, split=split, columns=keys, data_dir=data_dir, download=data_dir is None
            )
    except (ImportError, ValueError):
        raise
    except Exception as error:  # each layer of TFDS's downloads has its own kinds of errors
        reason = (str(error).splitlines() or [""])[0]
        raise ConnectionError(
            f"{name}: TensorFlow Datasets could not download it ({type(error).__name__}: "
            f"{reason}). Prepare it where there is a network, and give the folder with --from."
        ) from error
    return iter(reader)


@contextmanager
def _unheard_retries() -> Iterator[None]:
    """Silences the warning for each attempt to connect; the last attempt's error is raised."""
    logger = logging.getLogger("urllib3")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _file(table: _Table, rows: Iterator[dict[str, Any]]) -> bytes:
    lines = ["\t".join(table.columns)] if table.header else []
    lines += ("\t".join(_field(table, key, row) for key in table.columns.values()) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _field(table: _Table, key: str, row: dict[str, Any]) -> str:
    if not key:
        return ""
    if key == "label":
        label = row[key]
        if table.classes:
            return table.classes[label]
        # The scores of STS-B are float32 in TFDS; their shortest text is the published number.
        return str(np.float32(label)) if isinstance(label, float) else str(label)
    return _BREAKS.sub(" ", str(row[key]))


@dataclass(frozen=True)
class Preparation:
    """The work of `python -m experiments.prepare_data NAME`.

    Attributes:
        name: NAME.
        writes: The folders it can write, relative to the data folder → their files.
        needs: The required content of the folder it reads from, in words.
        read: The folder it reads from → the folders that it can write now → their files →
            contents. If `reads_downloads` is False, None means TFDS's default folder.
        reads_downloads: Whether it needs a folder to read from.
    """

    name: str
    writes: Mapping[str, tuple[str, ...]]
    needs: str
    read: Callable[[Any], dict[str, dict[str, bytes]]]
    reads_downloads: bool


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
    """Writes the data sets that are available; each one appears when it is complete.

    Args:
        preparation: One of `PREPARATIONS`.
        to: The data folder; created if it is missing.
        source: The folder to read from.
        overwrite: Whether files that exist are replaced; otherwise a folder that holds any of a
            set's files stays as it is. Other files in a folder stay in either case.

    Returns:
        The folders that were written to, and those that were left as they are.
    """
    existing_folders = [
        to / place
        for place, names in preparation.writes.items()
        if not overwrite and any((to / place / name).exists() for name in names)
    ]
    if len(existing_folders) == len(preparation.writes):
        return [], existing_folders
    contents = preparation.read(source)
    if not contents:
        raise FileNotFoundError(f"{source}: expected {preparation.needs}; found no complete set.")
    written_folders = []
    for place, files in contents.items():
        folder = to / place
        if folder in existing_folders:
            continue
        with sole_writer(folder), atomic_path(folder) as temporary:
            if folder.exists():
                shutil.copytree(folder, temporary)
            else:
                temporary.mkdir()
            for name, content in files.items():
                (temporary / name).write_bytes(content)
        written_folders.append(folder)
    return written_folders, existing_folders


def main() -> None:
    """Reads the arguments and writes the data sets."""
    parser = argparse.ArgumentParser(description="Converts published data sets.")
    parser.add_argument("names", nargs="+", choices=[*PREPARATIONS], metavar="NAME")
    parser.add_argument("--from", dest="source", type=Path, help="the folder with the downloads")
    parser.add_argument("--to", type=Path, required=True, help="the data folder to write to")
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")
    options = parser.parse_args()
    chosen = [PREPARATIONS[name] for name in options.names]
    for each in chosen:
        if each.reads_downloads and options.source is None:
            parser.error(f"--from: expected a folder with {each.needs}, which {each.name} needs.")
    for each in chosen:
        # TFDS writes the progress of its downloads to standard output.
        with contextlib.redirect_stdout(sys.stderr):
            written, left = prepare(
                each, options.to, source=options.source, overwrite=options.overwrite
            )
        print(*written, sep="\n")
        for folder in left:
            print(f"not changed: {folder}; --overwrite replaces its files", file=sys.stderr)


if __name__ == "__main__":
    main()
