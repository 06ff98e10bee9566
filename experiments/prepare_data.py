"""Converts published data sets to the folders that the evaluation tasks read.

    python -m experiments.prepare_data sts --from downloads --to DATA
    python -m experiments.prepare_data glue/cola glue/rte --from ~/tensorflow_datasets --to DATA

"sts" makes STS12 to STS16, the STS Benchmark and SICK from SemEval's archives. "senteval" makes MR,
CR, SUBJ, MPQA, TREC and SST like SentEval's own script, with its tokenizer. Both read the unpacked
downloads in --from, and write the sets that they find. glue/cola, glue/sst2, glue/mrpc,
glue/stsb, glue/qqp, glue/mnli, glue/qnli and glue/rte come from TensorFlow Datasets: it downloads
them, or reads its data_dir in --from. A set with an existing file is skipped, unless --overwrite is
given; other files in its folder are never changed. The folders that were written are printed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.io import atomic_path, sole_writer

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


def folder_of(downloads: Path, names: Iterable[str]) -> Path | None:
    """The first folder of the downloads, by its path, that has files of all these names."""
    required = set(names)
    folders = sorted({path.parent for path in downloads.rglob("*") if path.name in required})
    return next((each for each in folders if all((each / n).is_file() for n in required)), None)


def read_semeval(downloads: Path) -> dict[str, dict[str, bytes]]:
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
            if (folder := folder_of(downloads, names)) is not None:
                names |= _about(folder)
                contents[f"STS{year}-en-test"] = {
                    new: (folder / old).read_bytes() for old, new in names.items()
                }
                break
    for place, files in _WHOLE.items():
        # Each of SICK's three files is published in its own archive.
        folders = [each for name in files if (each := folder_of(downloads, [name]))]
        if len(folders) == len(files):
            paths = [folder / name for folder, name in zip(folders, files, strict=True)]
            paths += [folders[-1] / name for name in _about(folders[-1])]
            contents[place] = {path.name: path.read_bytes() for path in paths}
    return contents


def _about(folder: Path) -> dict[str, str]:
    """The files that say what the others are and who may use them, each by its own name."""
    names = (path.name for path in folder.iterdir() if path.is_file())
    return {n: n for n in names if "readme" in n.lower() or "license" in n.lower()}


def read_senteval(downloads: Path) -> dict[str, dict[str, bytes]]:
    """Reads the downloaded transfer sets of SentEval, in the form that its script gives them.

    The script is data/downstream/get_transfer_data.bash of facebookresearch/SentEval. Its other
    sets need no preparation (MRPC) or have their own preparation (SICK, the STS Benchmark).

    Returns:
        Folder → file → content, for the sets that are complete.
    """
    contents = {}
    for place, names in _SENTENCES.items():
        if (folder := folder_of(downloads, names)) is not None:
            contents[place] = {name: _tokenised((folder / name).read_bytes()) for name in names}
    if (folder := folder_of(downloads, _QUESTIONS)) is not None:
        contents["TREC"] = {
            name: (folder / name).read_bytes().translate(None, b"`'") for name in _QUESTIONS
        }
    for place, pattern in _SENTIMENT.items():
        new_names = {pattern.format(split): f"sentiment-{split}" for split in _SPLITS}
        if (folder := folder_of(downloads, new_names)) is not None:
            contents[place] = {new: (folder / old).read_bytes() for old, new in new_names.items()}
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
    return iter(
        TFDSReader(name, split=split, columns=keys, data_dir=data_dir, download=data_dir is None)
    )


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


# Name → the folders that it can write and their files; the required content of --from; its reader.
PREPARATIONS: dict[str, tuple[Mapping[str, tuple[str, ...]], str, Callable[..., Any]]] = {
    "sts": (
        SEMEVAL,
        "the unpacked archives of SemEval: STS2012-en-test to STS2016-en-test, Stsbenchmark, "
        "sick_train, sick_trial and sick_test_annotated",
        read_semeval,
    ),
    "senteval": (
        SENTEVAL,
        "what SentEval's get_transfer_data.bash downloads, unpacked: datasmall_NB_ACL12 "
        "(MR, CR, SUBJ, MPQA), train_5500.label and TREC_10.label, sentiment-{train,dev,test}, "
        "stsa.fine.{train,dev,test}",
        read_senteval,
    ),
    **{
        name: (
            files,
            "what TensorFlow Datasets has prepared (its data_dir)",
            functools.partial(read_glue, name),
        )
        for name, files in GLUE.items()
    },
}


def prepare(
    name: str, to: Path, *, source: Path | None = None, overwrite: bool = False
) -> tuple[list[Path], list[Path]]:
    """Writes the data sets that are available; each one appears when it is complete.

    Args:
        name: One of `PREPARATIONS`.
        to: The data folder; created if it is missing.
        source: The folder to read from; None: TFDS's default folder.
        overwrite: Whether files that exist are replaced; otherwise a folder that holds any of a
            set's files stays as it is. Other files in a folder stay in either case.

    Returns:
        The folders that were written to, and those that were left as they are.
    """
    writes, needs, read = PREPARATIONS[name]
    left = [
        to / place
        for place, names in writes.items()
        if not overwrite and any((to / place / name).exists() for name in names)
    ]
    if len(left) == len(writes):
        return [], left
    contents = read(source)
    if not contents:
        raise FileNotFoundError(f"{source}: expected {needs}; found no complete set.")
    written = []
    for folder, files in ((to / place, files) for place, files in contents.items()):
        if folder in left:
            continue
        with sole_writer(folder), atomic_path(folder) as temporary:
            if folder.exists():
                shutil.copytree(folder, temporary)
            else:
                temporary.mkdir()
            for file, content in files.items():
                (temporary / file).write_bytes(content)
        written.append(folder)
    return written, left


def main() -> None:
    """Reads the arguments and writes the data sets."""
    parser = argparse.ArgumentParser(description="Converts published data sets.")
    parser.add_argument("names", nargs="+", choices=[*PREPARATIONS], metavar="NAME")
    parser.add_argument("--from", dest="source", type=Path, help="the folder with the downloads")
    parser.add_argument("--to", type=Path, required=True, help="the data folder to write to")
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")
    options = parser.parse_args()
    for name in options.names:
        if options.source is None and name not in GLUE:
            parser.error(f"--from: expected a folder with {PREPARATIONS[name][1]}.")
    for name in options.names:
        # TFDS writes the progress of its downloads to standard output.
        with contextlib.redirect_stdout(sys.stderr):
            written, left = prepare(
                name, options.to, source=options.source, overwrite=options.overwrite
            )
        print(*written, sep="\n")
        for folder in left:
            print(f"not changed: {folder}; --overwrite replaces its files", file=sys.stderr)


if __name__ == "__main__":
    main()
